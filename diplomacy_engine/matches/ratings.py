"""Ratings of players from the ranks of games with many seats: Plackett-Luce by openskill.

A rating is a mean and a standard deviation on openskill's scale, where a newcomer has 25 and 25/3.
In a game of P seats, of two players whose ratings differ by d the better one ends ahead with
probability 1 / (1 + exp(-d / (25/6 * sqrt(P)))), once the deviations are small. Only differences
mean something.

Three choices, each for a reason:

- A player's strength is fixed, so openskill's `tau` is 0; and its `gamma`, which slows the fall of
  the deviation, is 1: one pass over simulated games was then about as close to the truth as the
  maximum likelihood, and the deviation close to the true error.
- Ties are broken at random. openskill's treatment of ties of more than two seats is in dispute
  (its issues 155 and 173), and half a win is what a tie is worth on average this way.
- A player with several seats in one game gets the sum of their changes, the gradient of a strength
  that these seats share. The deviation then falls a little too fast, since seats of one player
  tell nothing about each other; `bootstrap_errors` knows no such fault.
"""

import numpy as np
from openskill.models import PlackettLuce

MEAN = 25.0  # of a player who has not played
DEVIATION = 25.0 / 3
RESAMPLES = 100  # of the bootstrap
_ANCHOR = 1e-6  # openskill divides by the deviation
_MODEL = PlackettLuce(mu=MEAN, sigma=DEVIATION, tau=0.0, gamma=lambda *_: 1.0)


def rate_games(
    mean: np.ndarray,
    deviation: np.ndarray,
    seats: np.ndarray,
    ranks: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratings after some games, rated one after the other.

    Args:
        mean, deviation: (players,) ratings before; a deviation of 0 makes a player an anchor, whose
            rating never changes.
        seats: (E, P) integers, the player at each seat of each game.
        ranks: (E, P), 1 = best; equal ones are ties.
        rng: breaks ties.

    Returns:
        (players,) float64 means and deviations; the arguments stay as they are.
    """
    mean, deviation = mean.astype(np.float64), deviation.astype(np.float64)
    untied = np.lexsort((rng.random(ranks.shape), ranks)).argsort(1).astype(np.float64)
    for row, finish in zip(seats, untied.tolist()):
        before = [_MODEL.rating(float(mean[i]), float(max(deviation[i], _ANCHOR))) for i in row]
        after = _MODEL.rate([[rating] for rating in before], ranks=finish)
        for i, old, (new,) in zip(row, before, after):
            if deviation[i] > 0:
                mean[i] += new.mu - old.mu
                deviation[i] *= new.sigma / old.sigma
    return mean, deviation


def fit_ratings(
    mean: np.ndarray,
    known: np.ndarray,
    seats: np.ndarray,
    ranks: np.ndarray,
    rng: np.random.Generator,
    counts: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratings that explain games best, all games at once; their order says nothing.

    The same model and scale as `rate_games`, with a newcomer's rating as what is known before
    (the posterior mode). One pass over the games leaves extreme ratings too close to the middle.

    Args:
        mean: (players,) where to begin; for anchors, their ratings.
        known: (players,) bool, which are anchors, whose ratings stay.
        seats, ranks, rng: as for `rate_games`.
        counts: (E,) how often each game counts; None: once.

    Returns:
        (players,) float64 means and standard errors; 0 for anchors. Without any, the errors are
        those of the distance from the mean of all, since only differences mean something.
    """
    players, (_, size) = len(mean), seats.shape
    spread = DEVIATION / 2 * np.sqrt(size)  # of what a difference of ratings is measured by
    mean, free = mean.astype(np.float64), np.flatnonzero(~known)
    counts = np.ones(len(seats)) if counts is None else counts
    finish = np.take_along_axis(seats, np.lexsort((rng.random(ranks.shape), ranks)), 1)
    for _ in range(50):
        slope, bend = np.zeros(players), np.zeros((players, players))
        strength = mean[finish] / spread
        for place in range(size - 1):  # Plackett-Luce: the best of those who are left comes next
            left = finish[:, place:]
            share = np.exp(strength[:, place:] - strength[:, place:].max(1, keepdims=True))
            share /= share.sum(1, keepdims=True)
            np.add.at(slope, left[:, 0], counts / spread)
            np.add.at(slope, left, -share * counts[:, None] / spread)
            weighed = counts[:, None] * share / spread**2
            np.add.at(bend, (left, left), weighed)
            pairs = weighed[:, :, None] * share[:, None, :]
            np.add.at(bend, (left[:, :, None], left[:, None, :]), -pairs)
        slope += (MEAN - mean) / DEVIATION**2
        bend[np.diag_indices(players)] += 1 / DEVIATION**2
        inverse = np.linalg.inv(bend[np.ix_(free, free)])
        step = np.clip(
            inverse @ slope[free], -spread, spread
        )  # far from the mode Newton overshoots
        mean[free] += step
        if np.abs(step).max(initial=0) < 1e-6:
            break
    deviation = np.zeros(players)
    if not known.any():
        inverse = inverse - inverse.mean(0) - inverse.mean(1, keepdims=True) + inverse.mean()
    deviation[free] = np.sqrt(np.diag(inverse))
    return mean, deviation


def bootstrap_errors(
    players: int,
    seats: np.ndarray,
    ranks: np.ndarray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> np.ndarray:
    """Return the standard errors (players,) of newcomers' ratings after some games.

    Each resample draws as many games with replacement, in an order and with ties broken by chance,
    so that the errors hold what the order of the games adds to what the games themselves do.
    """
    mean, deviation = np.full(players, MEAN), np.full(players, DEVIATION)
    rated = []
    for _ in range(resamples):
        rows = rng.integers(len(seats), size=len(seats))
        rated.append(rate_games(mean, deviation, seats[rows], ranks[rows], rng)[0])
    return np.std(rated, axis=0, ddof=1)
