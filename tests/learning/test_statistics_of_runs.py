"""Sums of games and episodes, and figures of them."""

import types

import numpy as np
import pytest

from diplomacy_engine import load_map
from diplomacy_engine.constants import NONE, SOLO, YEAR_LIMIT
from diplomacy_engine.learning import statistics
from diplomacy_engine.learning.experience import Batch


def test_a_tie_of_two_powers_of_the_learner_is_no_win():
    mine = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
    centers = np.array([[5, 5, 0], [0, 6, 5], [0, 7, 0]], np.int8)
    result = types.SimpleNamespace(
        centers=centers,
        ended=np.full(3, YEAR_LIMIT, np.int8),
        winner=np.full(3, NONE, np.int8),
        alive=np.ones((3, 3), bool),
        year=np.full(3, 4),
    )
    member = np.where(mine, 0, 4)
    results, rows = statistics.Results(load_map("three")), np.arange(3)
    result.year += results.game_map.board.first_year
    pool = types.SimpleNamespace(frozen_at={3: 100, 4: 250}, copies=[3, 4])
    sums = results.of_games(result, rows, member, mine, pool)
    assert (sums["games"], sums["win"], sums["solo"], sums["draw"]) == (3, 1, 0, 3)
    assert sums["centers"] == 5 + 6 + 0 and sums["years"] == 15
    assert sums["side_games"].tolist() == [2, 2, 2] and sums["side_wins"].tolist() == [0, 1, 0]
    assert sums["copy_games"].tolist() == [0, 3] and sums["copy_score"].tolist() == [0, 2.0]
    # Ahead of a copy: two of its powers with five centers, one with six of two, none with seven.
    assert sums["duels"].tolist() == [0, 6] and sums["duels_ahead"].tolist() == [0, 4.0]
    assert (sums["opponents"], sums["frozen_at"]) == (3, 750)
    figures = statistics.selfplay_figures({n: sums[n] for n in statistics.SELFPLAY}, 1000)
    assert figures["opponent_age"] == 750 and figures["centers"] == 11 / 3
    assert figures["centers_behind"] == (0 + 0 + 7) / 3
    assert figures["win"] == 1 / 3
    pool = types.SimpleNamespace(frozen_at={3: 100}, copies=[3])
    bots = results.of_games(result, rows, member, mine, pool)
    assert "opponent_age" not in statistics.selfplay_figures(
        {n: bots[n] for n in statistics.SELFPLAY}, 9
    )


def test_who_won_by_a_concession_is_ahead_of_who_has_more_centers():
    result = types.SimpleNamespace(
        centers=np.array([[3, 5, 0]], np.int8),
        ended=np.array([SOLO], np.int8),
        winner=np.zeros(1, np.int8),
        alive=np.array([[True, False, False]]),
        year=np.array([1904]),
    )
    mine, pool = (
        np.array([[True, False, False]]),
        types.SimpleNamespace(frozen_at={3: 1}, copies=[3]),
    )
    results = statistics.Results(load_map("three"))
    sums = results.of_games(result, np.arange(1), np.where(mine, 0, 3), mine, pool)
    assert sums["duels"].tolist() == sums["duels_ahead"].tolist() == [2]


def test_explained_variance():
    """Of returns by values; each rank has a part of the transitions."""
    rng = np.random.default_rng(0)
    returns, error = rng.normal(5, 2, 1000), rng.normal(0, 1, 1000)

    def sums(returns: np.ndarray, values: np.ndarray) -> np.ndarray:
        arrays = (array.astype(np.float32) for array in (values, values, values, returns))
        return Batch(None, *arrays).sums()["batch"]

    whole = sum(sums(returns[p], (returns + error)[p]) for p in np.split(np.arange(1000), [300]))
    expected = 1 - error.var() / returns.var()
    assert statistics.explained_variance(whole) == pytest.approx(expected, rel=1e-4)
    assert statistics.explained_variance(sums(np.ones(3), np.zeros(3))) == 0
