"""Figures of games: intervals, figures by power and by team, and how they are written."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..scoring.outcomes import FIGURES, MEANS, RATES

Z = 1.959963984540054  # 97.5% quantile of the normal distribution
# 97.5% quantiles of Student's t by degrees of freedom; between two the inverse is interpolated.
_DEGREES = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 120, math.inf)
_QUANTILES = (12.706, 8.649, 6.017, 4.303, 3.182, 2.776, 2.571, 2.447, 2.306, 2.228) + (
    2.131, 2.086, 2.042, 2.000, 1.980, Z,
)  # fmt: skip


def wilson_interval(successes: float, count: float) -> tuple[float, float]:
    """Return the 95% interval of a rate (Wilson 1927)."""
    rate, z2 = successes / count, Z * Z
    middle = (rate + z2 / (2 * count)) / (1 + z2 / count)
    half = Z / (1 + z2 / count) * math.sqrt(rate * (1 - rate) / count + z2 / (4 * count**2))
    return max(0.0, min(middle - half, rate)), min(1.0, max(middle + half, rate))


def share_of(successes: float, count: float) -> dict[str, float]:
    """Return value, low and high of a rate, as results have them."""
    low, high = wilson_interval(successes, count)
    return {"value": successes / count, "low": low, "high": high}


def mean_interval(strata: Sequence[np.ndarray], least: float, most: float) -> tuple[float, float]:
    """Return the 95% interval of a mean over games of several kinds (strata), such as seats.

    It is Student's, with the degrees of freedom of Satterthwaite (1946; Cochran, Sampling
    Techniques, 1977, 5.4). If a stratum has one value, all are one sample with `least` and `most`
    as two more (Agresti and Coull 1998). Where all are alike, others may come as often as Wilson's
    interval for none says.
    """
    values = np.concatenate(strata)
    count, mean = len(values), float(values.mean())
    if count == 1:
        return float(least), float(most)
    if values.max() - values.min() < 1e-9:
        other = wilson_interval(0, count)[1]
        return mean - other * (mean - least), mean + other * (most - mean)
    if min(map(len, strata)) < 2:
        strata = [np.append(values, (least, most))]
    sizes = [len(stratum) for stratum in strata]
    parts = [(n / sum(sizes)) ** 2 * s.var(ddof=1) / n for n, s in zip(sizes, strata)]
    middle, variance = float(np.concatenate(strata).mean()), float(sum(parts))
    if variance < 1e-18:  # unlike seats, each of which always ends alike
        return mean_interval([values], least, most)
    freedom = variance**2 / sum(part**2 / (n - 1) for n, part in zip(sizes, parts))
    half = student_quantile(freedom) * math.sqrt(variance)
    return max(float(least), min(mean, middle - half)), min(float(most), max(mean, middle + half))


def student_quantile(freedom: float) -> float:
    """Return the 97.5% quantile of Student's t, hardly above it between entries of the table."""
    return float(np.interp(-1 / freedom, [-1 / degrees for degrees in _DEGREES], _QUANTILES))


def _of_games(values: np.ndarray, game: np.ndarray) -> np.ndarray:
    """Return a value for each game, (G,), whose mean is that of `values` (n,), its seats'; `game`
    (n,) numbers the games from 0."""
    mean = values.mean()
    return mean + np.bincount(game, values - mean) * (game.max() + 1) / len(values)


def _independent(values: np.ndarray, of_games: np.ndarray) -> float:
    """Return as how many independent seats those of `of_games` tell a rate (Korn and Graubard
    1998), at least one of each game and at most all."""
    rate, games = values.mean(), len(of_games)
    variance = max(of_games.var() / max(1, games - 1), 1e-12)
    return float(np.clip(rate * (1 - rate) / variance, games, len(values)))


def summarize(
    values: Mapping[str, np.ndarray],
    seat: np.ndarray,
    ranges: Mapping[str, tuple[float, float]],
    game: np.ndarray | None = None,
) -> dict[str, dict[str, float]]:
    """Return value, low and high of FIGURES over seats.

    Means are stratified by `seat` (n,), the power played; `ranges` are those of MEANS. `game` (n,)
    is the game of each seat; None: every seat has another game. Several seats of a game depend on
    each other; then the games are the sample.
    """
    summary = {}
    if game is not None:
        games, game = np.unique(game, return_inverse=True)
        game = game if len(games) < len(game) else None
    for name in RATES:
        rates = values[name]
        count = len(seat) if game is None else _independent(rates, _of_games(rates, game))
        summary[name] = share_of(float(rates.sum() * count / len(rates)), count)
    for name in MEANS:
        strata = [values[name][seat == power] for power in np.unique(seat)]
        strata = strata if game is None else [_of_games(values[name], game)]
        low, high = map(float, mean_interval(strata, *ranges[name]))
        summary[name] = {"value": float(values[name].mean()), "low": low, "high": high}
    return {name: summary[name] for name in FIGURES}


def sides_of(result: Mapping) -> dict[str, dict]:
    """Return the figures of a result by team, or by power where there are no teams."""
    return result.get("by_team") or result["by_power"]


def by_side(
    names: Sequence[str], values: dict[str, np.ndarray], mine: np.ndarray, ranges: dict
) -> dict[str, dict]:
    """Return figures by power or team played; `values` and `mine`, its seats, (games, sides)."""
    return {
        name: summarize(
            {figure: values[figure][mine[:, side], side] for figure in FIGURES},
            np.full(mine[:, side].sum(), side),
            ranges,
        )
        for side, name in enumerate(names)
        if mine[:, side].any()
    }


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}%"


def share_text(figure: Mapping[str, float]) -> str:
    value, low, high = (f"{100 * figure[name]:.1f}" for name in ("value", "low", "high"))
    return f"{value}% ({low} to {high})"


def mean_text(figure: Mapping[str, float], digits: int = 1) -> str:
    value, low, high = (f"{figure[name]:.{digits}f}" for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def limit_text(rules: Mapping[str, object]) -> str:
    then = "then a draw" if rules["year_limit"] == "draw" else "then cut off"
    return f"at most {rules['max_years']} years, {then}"
