"""Ratings of players from the ranks of games with many seats, by the model of Plackett and Luce.

The scale is that of openskill (https://openskill.me), where a newcomer has 25 and 25/3. In a game
of P seats, of two players whose ratings differ by d the better one ends ahead with probability 1 /
(1 + exp(-d / (25/6 * sqrt(P)))). All games are rated at once: found are the likeliest strengths
(the posterior mode), and their errors from the curvature there (Laplace's approximation).

Ties are broken at random, so one is worth half a win. Seats of one player in one game tell nothing
about each other, so the errors are a little too small then; `bootstrap_errors` knows no such fault.
"""

import numpy as np

MEAN = 25.0  # of a player who has not played
DEVIATION = 25.0 / 3
RESAMPLES = 100  # of the bootstrap
_ROUNDS = 50  # of Newton's method; some ten are enough


def fit_ratings(
    mean: np.ndarray,
    deviation: np.ndarray,
    seats: np.ndarray,
    ranks: np.ndarray,
    rng: np.random.Generator,
    counts: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return ratings after some games, (players,) means and deviations.

    A deviation of 0 makes an anchor, which stays; without any, deviations are from the mean of all.
    `seats` (E, P) are players, `ranks` (E, P) 1 for the best, ties broken by `rng`; `counts` (E,):
    how often each game counts.
    """
    players, (_, size) = len(mean), seats.shape
    spread = DEVIATION / 2 * np.sqrt(size)  # of what a difference of ratings is measured by
    before, mean = mean.astype(np.float64), mean.astype(np.float64)
    free = np.flatnonzero(deviation > 0)
    precision = 1 / deviation[free].astype(np.float64) ** 2
    counts = np.ones(len(seats)) if counts is None else counts
    finish = np.take_along_axis(seats, np.lexsort((rng.random(ranks.shape), ranks)), 1)
    inverse = np.zeros((len(free), len(free)))
    for _ in range(_ROUNDS):
        slope, bend = np.zeros(players), np.zeros((players, players))
        strength = mean[finish] / spread
        for place in range(size - 1):  # Plackett-Luce: the best of those who are left comes next
            remaining = finish[:, place:]
            share = np.exp(strength[:, place:] - strength[:, place:].max(1, keepdims=True))
            share /= share.sum(1, keepdims=True)
            np.add.at(slope, remaining[:, 0], counts / spread)
            np.add.at(slope, remaining, -share * counts[:, None] / spread)
            weighed = counts[:, None] * share / spread**2
            np.add.at(bend, (remaining, remaining), weighed)
            pairs = weighed[:, :, None] * share[:, None, :]
            np.add.at(bend, (remaining[:, :, None], remaining[:, None, :]), -pairs)
        slope, bend = slope[free] + (before - mean)[free] * precision, bend[np.ix_(free, free)]
        inverse = np.linalg.inv(bend + np.diag(precision))
        # Far from the mode Newton's method overshoots.
        step = np.clip(inverse @ slope, -spread, spread)
        mean[free] += step
        if np.abs(step).max(initial=0) < 1e-6:
            break
    if len(free) == players:
        inverse = inverse - inverse.mean(0) - inverse.mean(1, keepdims=True) + inverse.mean()
    deviations = np.zeros(players)
    deviations[free] = np.sqrt(np.diag(inverse))
    return mean, deviations


def bootstrap_errors(
    mean: np.ndarray,
    deviation: np.ndarray,
    seats: np.ndarray,
    ranks: np.ndarray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> np.ndarray:
    """Return the standard errors (players,) of ratings after some games, 0 for anchors.

    Each resample draws as many games with replacement, and ties are broken anew.
    """
    games = len(seats)
    draws = rng.multinomial(games, np.full(games, 1 / games), resamples)
    rated = []
    for counts in draws:
        rows = np.flatnonzero(counts)
        drawn = counts[rows].astype(np.float64)
        rated.append(fit_ratings(mean, deviation, seats[rows], ranks[rows], rng, drawn)[0])
    return np.std(rated, axis=0, ddof=1)
