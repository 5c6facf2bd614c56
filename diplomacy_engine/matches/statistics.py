"""Intervals of rates and means over many games."""

import math
from collections.abc import Sequence

import numpy as np

from ..scoring.outcomes import FIGURES, MEANS, RATES

RESAMPLES = 2000  # of the bootstrap
Z = 1.959963984540054  # 97.5 % quantile of the normal distribution


def wilson_interval(successes: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate (Wilson 1927)."""
    rate, z2 = successes / count, Z * Z
    middle = (rate + z2 / (2 * count)) / (1 + z2 / count)
    half = Z / (1 + z2 / count) * math.sqrt(rate * (1 - rate) / count + z2 / (4 * count**2))
    return max(0.0, min(middle - half, rate)), min(1.0, max(middle + half, rate))


def bootstrap_intervals(strata: Sequence[np.ndarray]) -> np.ndarray:
    """Return the 95 % intervals of the means of figures, (2, figures): low and high.

    Each stratum, (n, figures), is resampled on its own, always with the same random numbers.
    """
    generator = np.random.default_rng(0)
    count = sum(len(values) for values in strata)
    totals = 0.0
    for values in strata:
        # Drawing n rows with replacement is drawing how often each distinct row comes.
        distinct, times = np.unique(values, axis=0, return_counts=True)
        drawn = generator.multinomial(len(values), times / len(values), RESAMPLES)
        totals = totals + drawn @ distinct
    return np.quantile(totals / count, (0.025, 0.975), axis=0)


def summarize(values: dict[str, np.ndarray], seat: np.ndarray) -> dict[str, dict[str, float]]:
    """Return value, low and high of FIGURES over games.

    Args:
        values: (games,) of each figure.
        seat: (games,) the power played, by which means are stratified.
    """
    count = len(seat)
    summary = {}
    for name in RATES:
        low, high = wilson_interval(float(values[name].sum()), count)
        summary[name] = {"value": float(values[name].mean()), "low": low, "high": high}
    table = np.stack([values[name] for name in MEANS], axis=1)
    lows, highs = bootstrap_intervals([table[seat == power] for power in np.unique(seat)])
    for name, mean, low, high in zip(MEANS, table.mean(0), lows, highs):
        # Rounding may leave the mean of equal values just outside.
        bounds = min(low, mean), mean, max(high, mean)
        summary[name] = dict(zip(("low", "value", "high"), map(float, bounds)))
    return {name: {key: summary[name][key] for key in ("value", "low", "high")} for name in FIGURES}
