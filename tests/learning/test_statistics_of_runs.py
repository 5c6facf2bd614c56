"""Sums of games and episodes, and figures of them."""

import types

import numpy as np
import pytest

from diplomacy_engine import load_map
from diplomacy_engine.constants import NONE, SOLO, YEAR_LIMIT
from diplomacy_engine.learning import statistics
from diplomacy_engine.learning.experience import Batch


def sums_of(mine: list, centers: list, other: int, copies: dict, **more) -> dict:
    """Return the sums of games that are over, against the copy or bot numbered `other`."""
    mine, results = np.array(mine, bool), statistics.Results(load_map("three"))
    count, member = len(mine), np.where(mine, 0, other)
    result = types.SimpleNamespace(centers=np.array(centers, np.int8), alive=mine | True)
    result.year = np.full(count, results.game_map.board.first_year + 4)
    result.ended, result.winner = np.full((2, count), [[YEAR_LIMIT], [NONE]], np.int8)
    vars(result).update(more)
    pool = types.SimpleNamespace(frozen_at=copies, copies=[*copies])
    return results.of_games(result, np.arange(count), member, mine, pool)


def test_a_tie_of_two_powers_of_the_learner_is_no_win():
    mine, centers = [[1, 1, 0], [0, 1, 1], [1, 0, 1]], [[5, 5, 0], [0, 6, 5], [0, 7, 0]]
    sums = sums_of(mine, centers, 4, {3: 100, 4: 250})
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
    bots = sums_of(mine, centers, 4, {3: 100})
    assert "opponent_age" not in statistics.selfplay_figures(
        {n: bots[n] for n in statistics.SELFPLAY}, 9
    )


def test_who_won_by_a_concession_is_ahead_of_who_has_more_centers():
    over = {"ended": [SOLO], "winner": [0], "alive": [[True, False, False]]}
    over = {name: np.array(value) for name, value in over.items()}
    sums = sums_of([[1, 0, 0]], [[3, 5, 0]], 3, {3: 1}, **over)
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
