"""Tournaments: balance of seats, cross tables by hand, order of the bots, the command."""

import numpy as np
import pytest

from diplomacy_engine.matches.tournament import balanced_seats, cross_table


def test_a_small_block_of_seats_by_hand():
    """Three players and two powers: every pair meets, and then with the powers exchanged."""
    for seed in range(8):
        seats = balanced_seats(3, 2, 6, np.random.default_rng(seed))
        pairs = sorted(map(tuple, seats.tolist()))
        assert pairs == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


@pytest.mark.parametrize("powers", [2, 7])
@pytest.mark.parametrize("players", [3, 9])
@pytest.mark.parametrize("num_games", [9, 100])
def test_seats_are_balanced(players, powers, num_games):
    seats = balanced_seats(players, powers, num_games, np.random.default_rng(num_games))
    assert seats.shape == (num_games, powers)
    counts = (seats[:, :, None] == np.arange(players)).sum(0)  # (P, players)
    assert counts.min() >= 1 and np.ptp(counts, axis=1).max() <= 1
    if num_games % players == 0:
        assert (counts == num_games // players).all()
    at_table = (seats[:, :, None] == np.arange(players)).sum(1)  # (E, players)
    assert np.ptp(at_table, axis=1).max() <= 1
    if players >= powers:
        assert at_table.max() == 1


def test_cross_table_by_hand():
    seats = np.array([[0, 1, 1], [1, 0, 2], [2, 2, 0]])
    ranks = np.array([[2, 1, 3], [1.5, 1.5, 3], [1, 3, 2]])
    solo = np.array([[0, 1, 0], [0, 0, 0], [1, 0, 0]])
    found = cross_table(seats, ranks, solo, 4)
    assert found["games"].tolist() == [[0, 2, 2, 0], [2, 0, 1, 0], [2, 1, 0, 0], [0] * 4]
    # 0 and 1: one of two pairs of seats in game 0, a tie in game 1. 0 and 2: ahead in game 1,
    # one of two pairs in game 2. 1 and 2: ahead in game 1.
    expected = [[0, 0.5 + 0.5, 1 + 0.5, 0], [0.5 + 0.5, 0, 1, 0], [0.5, 0, 0, 0], [0] * 4]
    assert found["above"].tolist() == expected
    assert found["solos"].tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0] * 4]
