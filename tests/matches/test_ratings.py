"""Ratings: directions by hand, simulated players of known strength, anchors, ties, errors."""

import numpy as np
import pytest

from diplomacy_engine.matches.ratings import DEVIATION, MEAN, bootstrap_errors, rate_games
from diplomacy_engine.matches.tournament import balanced_seats

BETA = 25 / 6


def newcomers(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(count, MEAN), np.full(count, DEVIATION)


def simulate(strength, powers: int, num_games: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return seats and ranks of games between players of known strength (Plackett-Luce)."""
    rng = np.random.default_rng(seed)
    seats = balanced_seats(len(strength), powers, num_games, rng)
    luck = rng.gumbel(size=seats.shape)
    score = np.asarray(strength)[seats] / (BETA * np.sqrt(powers)) + luck
    return seats, (-score).argsort(1).argsort(1) + 1.0


def test_one_game_of_two_by_hand():
    """Weng and Lin's algorithm 4 for two newcomers: the winner is ahead with probability 1/2."""
    seats, ranks = np.array([[1, 0]]), np.array([[1.0, 2.0]])
    mean, deviation = rate_games(*newcomers(2), seats, ranks, np.random.default_rng(0))
    c = np.sqrt(2 * (DEVIATION**2 + BETA**2))
    gain = DEVIATION**2 / c * 0.5
    np.testing.assert_allclose(mean, [MEAN - gain, MEAN + gain])
    np.testing.assert_allclose(deviation, DEVIATION * np.sqrt(1 - DEVIATION**2 / c**2 * 0.25))


def test_two_seats_of_one_player_add_up():
    """Of three equal seats the middle one gets nothing from the two of the other player."""
    seats, ranks = np.array([[0, 1, 0]]), np.array([[1.0, 2.0, 3.0]])
    mean, _ = rate_games(*newcomers(2), seats, ranks, np.random.default_rng(0))
    c = np.sqrt(3 * (DEVIATION**2 + BETA**2))
    # First stage: 1/3 each; second stage, without the winner: 1/2 each.
    changes = np.array([1 - 1 / 3, -1 / 3 + 1 / 2, -1 / 3 - 1 / 2]) * DEVIATION**2 / c
    np.testing.assert_allclose(mean - MEAN, [changes[0] + changes[2], changes[1]])


def test_an_anchor_never_moves_and_the_arguments_stay():
    seats, ranks = simulate([25, 40, 55], 3, 300, seed=1)
    mean, deviation = newcomers(3)
    deviation[0] = 0
    found, spread = rate_games(mean, deviation, seats, ranks, np.random.default_rng(0))
    assert found[0] == MEAN and spread[0] == 0
    assert abs(found[1] - 40) < 4 * spread[1] + 1 and abs(found[2] - 55) < 4 * spread[2] + 1
    assert (mean == MEAN).all() and deviation.tolist() == [0, DEVIATION, DEVIATION]


@pytest.mark.parametrize("powers", [2, 3, 7])
def test_simulated_players_are_rated_by_their_strength(powers):
    strength = np.array([10.0, 18.0, 25.0, 32.0, 40.0])
    seats, ranks = simulate(strength, powers, 600, seed=powers)
    found, spread = rate_games(*newcomers(5), seats, ranks, np.random.default_rng(0))
    error = found - found.mean() - (strength - strength.mean())
    # Twenty seeds gave at most 3.1 deviations (7 powers); a wrong scale would give tens.
    assert (np.abs(error) < 5 * spread).all(), (found, spread)


def test_ties_are_worth_half_a_win():
    rng = np.random.default_rng(0)
    seats = np.tile([0, 1], (600, 1))
    even, _ = rate_games(*newcomers(2), seats, np.full((600, 2), 1.5), rng)
    assert abs(even[0] - even[1]) < 3
    # Two always lose to the first and tie with each other: they must stay together.
    ranks = np.tile([1.0, 2.5, 2.5], (600, 1))
    mean, _ = rate_games(*newcomers(3), np.tile([0, 1, 2], (600, 1)), ranks, rng)
    assert mean[0] > mean[1] + 10 and abs(mean[1] - mean[2]) < 4


def test_bootstrap_errors():
    seats, ranks = simulate([20.0, 25.0, 30.0], 3, 400, seed=5)
    few = bootstrap_errors(3, seats[:100], ranks[:100], np.random.default_rng(1), 60)
    many = bootstrap_errors(3, seats, ranks, np.random.default_rng(1), 60)
    assert (few > many).all() and (many > 0).all()
    # A quarter of the games, twice the error.
    assert 1.4 < (few / many).mean() < 2.8
    again = bootstrap_errors(3, seats, ranks, np.random.default_rng(1), 60)
    assert np.array_equal(many, again)
