"""Sums of games and episodes, and figures of them."""

import types

import numpy as np
import pytest

from diplomacy_engine.constants import NONE, YEAR_LIMIT
from diplomacy_engine.learning import statistics
from diplomacy_engine.learning.ranks import Ranks


def test_a_tie_of_two_powers_of_the_learner_is_no_win():
    mine = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
    centers = np.array([[5, 5, 0], [0, 6, 5], [0, 7, 0]], np.int8)
    result = types.SimpleNamespace(
        centers=centers,
        ended=np.full(3, YEAR_LIMIT, np.int8),
        winner=np.full(3, NONE, np.int8),
        alive=np.ones((3, 3), bool),
        year=np.full(3, 1905),
    )
    member = np.where(mine, 0, 4)
    sums = statistics.finished_games(
        result, np.arange(3), member, mine, np.arange(3), 1901, {3: 100, 4: 250}, [3, 4]
    )
    assert (sums["games"], sums["win"], sums["solo"], sums["draw"]) == (3, 1, 0, 3)
    assert sums["centers"] == 5 + 6 + 0 and sums["years"] == 15
    assert sums["side_games"].tolist() == [2, 2, 2] and sums["side_wins"].tolist() == [0, 1, 0]
    assert sums["copy_games"].tolist() == [0, 3] and sums["copy_score"].tolist() == [0, 2.0]
    assert (sums["opponents"], sums["frozen_at"]) == (3, 750)
    figures = statistics.selfplay_figures({n: sums[n] for n in statistics.SELFPLAY}, 1000)
    assert figures["opponent_age"] == 750 and figures["centers"] == 11 / 3
    assert figures["centers_behind"] == (0 + 0 + 7) / 3
    assert figures["win"] == 1 / 3 and figures["games"] == 3
    bots = statistics.finished_games(
        result, np.arange(3), member, mine, np.arange(3), 1901, {3: 100}, [3]
    )
    assert "opponent_age" not in statistics.selfplay_figures(
        {n: bots[n] for n in statistics.SELFPLAY}, 9
    )


def test_episodes_are_counted_when_they_end():
    episodes = statistics.Episodes(2, ("score", "leader"))
    for paid in (np.float32([1, 2]), np.float32([4, 8])):
        episodes.decide(np.arange(2))
        parts = {"score": np.ones(2, np.float32), "leader": paid / 2}
        episodes.pay(np.arange(2), paid, parts)
    episodes.end(np.array([0]))
    mine = episodes.figures(sums := episodes.take())
    assert mine == {
        "episodic_length": 2,
        "episodic_return": 5,
        "episodic_return_score": 2,
        "episodic_return_leader": 2.5,
    }
    # Another rank has had three episodes that add up to as much.
    both = {"episodes": sums["episodes"] + [3, *sums["episodes"][1:]]}
    assert episodes.figures(both) == {name: mine[name] / 2 for name in mine}
    assert episodes.figures(episodes.take()) == {}
    episodes.end(np.array([1]))
    assert episodes.figures(episodes.take())["episodic_return"] == 10
    alone = statistics.Episodes(1, ("score",))
    alone.end(np.array([0]))
    assert alone.figures(alone.take()).keys() == {"episodic_length", "episodic_return"}


def test_explained_variance():
    rng = np.random.default_rng(0)
    returns, error = rng.normal(5, 2, 1000), rng.normal(0, 1, 1000)
    values = (returns + error).astype(np.float32)
    parts = np.split(np.arange(1000), [300])
    sums = sum(statistics.variance_sums(returns.astype(np.float32)[p], values[p]) for p in parts)
    assert statistics.explained_variance(sums) == pytest.approx(
        1 - error.var() / returns.var(), rel=1e-4
    )
    assert statistics.explained_variance(statistics.variance_sums(np.ones(3), np.zeros(3))) == 0


def test_moments_are_those_of_each_minibatch_of_all_ranks():
    advantages = np.random.default_rng(1).normal(3, 2, 20).astype(np.float32)
    splits = [[np.arange(15), np.arange(15, 16), np.arange(0)], [np.arange(19, 9, -1)] * 3]
    found = statistics.moments(advantages, splits, Ranks())
    assert found.shape == (2, 3, 3) and found[0, :, 0].tolist() == [15, 1, 0]
    own = advantages[:15]
    np.testing.assert_allclose(found[0, 0], [15, own.mean(), own.std(ddof=1)], rtol=1e-5)
    np.testing.assert_allclose(found[0, 1], [1, advantages[15], 1], rtol=1e-6)
    assert found[0, 2].tolist() == [0, 0, 1]

    class Two:
        def sum(self, sums):  # as if another rank had the same
            return {name: 2 * value for name, value in sums.items()}

    both = statistics.moments(advantages, splits, Two())
    twice = np.concatenate([own, own])
    np.testing.assert_allclose(both[0, 0], [30, own.mean(), twice.std(ddof=1)], rtol=1e-5)
