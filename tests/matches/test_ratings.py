"""Ratings: directions by hand, simulated players of known strength, anchors, ties, errors."""

import numpy as np
import pytest

from diplomacy_engine.matches.ratings import DEVIATION, MEAN, bootstrap_errors, fit_ratings
from diplomacy_engine.matches.tournament import balanced_seats

BETA = 25 / 6


def newcomers(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(count, MEAN), np.full(count, DEVIATION)


def simulate(strength, powers: int, num_games: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    seats = balanced_seats(len(strength), powers, num_games, rng)
    luck = rng.gumbel(size=seats.shape)
    score = np.asarray(strength)[seats] / (BETA * np.sqrt(powers)) + luck
    return seats, (-score).argsort(1).argsort(1) + 1.0


def test_one_game_of_two_by_hand():
    """At the mode the pull of the prior equals that of the game: d / DEVIATION^2 = p(loss) / c."""
    seats, ranks = np.array([[1, 0]]), np.array([[1.0, 2.0]])
    mean, _ = fit_ratings(*newcomers(2), seats, ranks, np.random.default_rng(0))
    gain, c = mean[1] - MEAN, BETA * np.sqrt(2)
    assert mean[0] == pytest.approx(MEAN - gain) and gain > 1
    assert gain / DEVIATION**2 == pytest.approx(1 / (1 + np.exp(2 * gain / c)) / c)


def test_two_seats_of_one_player_add_up():
    """The slope is that of the log-likelihood, whoever has which seats."""
    seats, ranks = np.array([[0, 1, 0]]), np.array([[1.0, 2.0, 3.0]])
    mean, _ = fit_ratings(*newcomers(2), seats, ranks, np.random.default_rng(0))

    def posterior(gap: float) -> float:
        """Return the log of the posterior where the two are `gap` above and below the middle."""
        one, other = np.exp(np.array([gap, -gap]) / (BETA * np.sqrt(3)))
        likelihood = one / (2 * one + other) * other / (one + other)
        return np.log(likelihood) - (gap / DEVIATION) ** 2

    gaps = np.linspace(-10, 10, 200_001)
    best = gaps[np.argmax(np.vectorize(posterior)(gaps[::100])) * 100]
    assert mean[0] - MEAN == pytest.approx(best, abs=0.02)
    assert mean[0] + mean[1] == pytest.approx(2 * MEAN)


def test_an_anchor_never_moves_and_the_arguments_stay():
    seats, ranks = simulate([25, 40, 55], 3, 300, seed=1)
    mean, deviation = newcomers(3)
    deviation[0] = 0
    found, spread = fit_ratings(mean, deviation, seats, ranks, np.random.default_rng(0))
    assert found[0] == MEAN and spread[0] == 0
    assert abs(found[1] - 40) < 4 * spread[1] + 1 and abs(found[2] - 55) < 4 * spread[2] + 1
    assert (mean == MEAN).all() and deviation.tolist() == [0, DEVIATION, DEVIATION]


@pytest.mark.parametrize("powers", [2, 3, 7])
def test_simulated_players_are_rated_by_their_strength(powers):
    strength = np.array([10.0, 18.0, 25.0, 32.0, 40.0])
    seats, ranks = simulate(strength, powers, 600, seed=powers)
    found, spread = fit_ratings(*newcomers(5), seats, ranks, np.random.default_rng(0))
    error = found - found.mean() - (strength - strength.mean())
    assert (np.abs(error) < 4.5 * spread).all() and 0.2 < spread.max() < 2, (found, spread)
    # In another order they say the same.
    order = np.random.default_rng(1).permutation(len(seats))
    again, _ = fit_ratings(*newcomers(5), seats[order], ranks[order], np.random.default_rng(0))
    np.testing.assert_allclose(again, found)


def test_without_games_ratings_stay():
    mean, deviation = np.array([20.0, 2.0]), np.array([3.0, 0.0])
    none = np.zeros((0, 2), np.int64), np.zeros((0, 2))
    found = fit_ratings(mean, deviation, *none, np.random.default_rng(0))
    np.testing.assert_allclose(found, [mean, deviation])


def test_a_game_that_counts_twice_is_two_games():
    seats, ranks = simulate([20.0, 25.0, 30.0], 3, 50, seed=6)
    rng, twice = np.random.default_rng(0), (np.repeat(seats, 2, 0), np.repeat(ranks, 2, 0))
    one = fit_ratings(*newcomers(3), *twice, rng)
    other = fit_ratings(*newcomers(3), seats, ranks, rng, np.full(len(seats), 2.0))
    np.testing.assert_allclose(one, other)


def test_ties_are_worth_half_a_win():
    rng = np.random.default_rng(0)
    seats = np.tile([0, 1], (600, 1))
    even, _ = fit_ratings(*newcomers(2), seats, np.full((600, 2), 1.5), rng)
    assert abs(even[0] - even[1]) < 3
    # Two always lose to the first and tie with each other: they must stay together.
    ranks = np.tile([1.0, 2.5, 2.5], (600, 1))
    mean, _ = fit_ratings(*newcomers(3), np.tile([0, 1, 2], (600, 1)), ranks, rng)
    assert mean[0] > mean[1] + 10 and abs(mean[1] - mean[2]) < 4


def test_bootstrap_errors():
    seats, ranks = simulate([20.0, 25.0, 30.0], 3, 400, seed=5)
    few = bootstrap_errors(*newcomers(3), seats[:100], ranks[:100], np.random.default_rng(1), 60)
    many = bootstrap_errors(*newcomers(3), seats, ranks, np.random.default_rng(1), 60)
    assert (few > many).all() and (many > 0).all()
    # A quarter of the games, twice the error.
    assert 1.4 < (few / many).mean() < 2.8
    again = bootstrap_errors(*newcomers(3), seats, ranks, np.random.default_rng(1), 60)
    assert np.array_equal(many, again)
