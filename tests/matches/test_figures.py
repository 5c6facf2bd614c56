"""Intervals: known ones, coverage on simulated games, and none of width zero."""

import numpy as np
import pytest

from diplomacy_engine.matches.figures import (
    mean_interval,
    student_quantile,
    summarize,
    wilson_interval,
)
from diplomacy_engine.scoring.outcomes import FIGURES, MEANS


def test_wilson_interval():
    # Wilson's interval for 8 of 10, as tabulated by Agresti and Coull (1998) and by statsmodels.
    low, high = wilson_interval(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert wilson_interval(0, 10)[0] == 0 and 0.27 < wilson_interval(0, 10)[1] < 0.28
    assert wilson_interval(10, 10)[1] == 1
    low, high = wilson_interval(936, 1000)
    assert low < 0.936 < high


def test_students_quantiles():
    # A table of Student's t, and, for the fractions, its density integrated.
    for freedom, quantile in ((1, 12.706), (1.5, 6.017), (7, 2.365), (25, 2.060), (1000, 1.962)):
        assert student_quantile(freedom) == pytest.approx(quantile, rel=0.002)


def test_the_interval_of_one_stratum_is_students():
    # Student's own example, hours of sleep gained (Biometrika 1908): 0.70 to 2.46 for drug 2 - 1.
    hours = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
    low, high = mean_interval([hours], -24, 24)
    assert (round(low, 2), round(high, 2)) == (0.70, 2.46)
    assert mean_interval([hours], 1, 2) == (1, 2)  # it stays within the range


def test_what_the_strata_differ_by_does_not_widen_the_interval():
    generator = np.random.default_rng(1)
    strata = [generator.normal(mean, 1, 400).round(1) for mean in (0, 100)]
    low, high = mean_interval(strata, -100, 200)
    assert low < np.concatenate(strata).mean() < high
    assert high - low == pytest.approx(2 * 1.96 / np.sqrt(800), rel=0.1)
    alone = mean_interval([np.array([0.1]), np.array([100.2])], -100, 200)
    assert alone == (-100, 200)  # one game a seat: nothing is known of a seat's variance


@pytest.mark.parametrize("games", [1, 2, 3, 7, 30, 1000])
def test_equal_values_are_no_certainty(games):
    least, value, most = 0, 0.465, 1
    low, high = mean_interval([np.full(games, value)], least, most)
    assert least <= low < value < high <= most
    # As Wilson's interval says how often another value may come.
    at_most = 1.0 if games == 1 else wilson_interval(0, games)[1]
    assert (high - value) / (most - value) == pytest.approx(at_most)
    assert (
        mean_interval([np.zeros(games)], 0, 1)[0] == 0 < mean_interval([np.zeros(games)], 0, 1)[1]
    )


@pytest.mark.parametrize(
    ("games_per_seat", "coverage"), [(1, 0.94), (2, 0.93), (5, 0.93), (40, 0.93)]
)
def test_coverage(games_per_seat, coverage):
    """Of the means of seven unlike seats, with many ends at 0 and at 1, as squares have them."""
    generator = np.random.default_rng(games_per_seat)
    solo = np.array([0.1, 0.15, 0.35, 0.2, 0.3, 0.1, 0.2])
    share = 0.25  # mean of what a seat has that neither wins nor loses
    truth = np.mean(solo + (0.5 - solo / 2) * share)

    def play(chance):
        ends = generator.random(games_per_seat)
        other = generator.beta(2, 6, games_per_seat)
        return np.where(ends < chance, 1.0, np.where(ends < 0.5 + chance / 2, 0.0, other))

    found = [mean_interval([play(chance) for chance in solo], 0, 1) for _ in range(1000)]
    assert np.mean([low <= truth <= high for low, high in found]) >= coverage
    assert all(low < high for low, high in found)


@pytest.mark.parametrize("alike", ["alike", "one of them", "alone"])
def test_coverage_of_several_seats_in_a_game(alike):
    """A player's 3 or 4 seats of a game end alike, as in a draw, or one alone of them wins."""
    rng, ranges, covered = np.random.default_rng(1), dict.fromkeys(MEANS, (0, 1)), 0
    game = np.repeat(np.arange(40), [3, 4] * 20)
    truth = 0.5 if alike != "one of them" else 20 / 140
    for _ in range(300):
        ends = rng.integers(2, size=40)[game]
        if alike == "one of them":
            ends *= np.diff(game, prepend=-1) != 0
        elif alike == "alone":
            ends = rng.integers(2, size=140)
        seats = np.zeros(140, int)
        found = summarize(dict.fromkeys(FIGURES, ends.astype(float)), seats, ranges, game)
        figures = found["draw"], found["rank"]
        assert [each["value"] for each in figures] == pytest.approx([ends.mean()] * 2)
        covered += np.array([each["low"] < truth < each["high"] for each in figures])
    assert (covered > 0.91 * 300).all()
    certain = dict.fromkeys(FIGURES, np.ones(140))
    assert summarize(certain, seats, ranges, game)["draw"]["low"] == wilson_interval(40, 40)[0]
    two = summarize(dict.fromkeys(FIGURES, np.eye(1, 4)[0]), np.zeros(4), ranges, np.arange(4) // 2)
    assert two["draw"]["low"] == wilson_interval(0.75, 3)[0], "a share varies by 1/4, as of 3 seats"
