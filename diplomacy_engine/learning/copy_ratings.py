"""How strong a run's frozen copies are, from the games that it plays with them anyway."""

from collections.abc import Mapping

import numpy as np

ELO = 400 / np.log(10)  # points of a difference by which the odds grow e times
NOW = -1  # number of the learner as it is
_SPREAD, _STEP = 3.0, 1.0  # prior deviations: of all ratings, of one from the next
_ROUNDS = 50  # of Newton's method; some ten are enough


def copy_ratings(duels: Mapping[int, Mapping[int, tuple[float, float]]]) -> dict[int, float]:
    """Return Elo ratings by number of the copies and, as number NOW, of the learner.

    `duels[newest][number]`: in how many games the learner has met a copy while `newest` was its
    newest one, and in how many of them it ended ahead, a tie as half. The likeliest ratings by the
    model of Bradley and Terry are found, where the learner is halfway between two of its copies.
    It plays with a handicap: its opponents sample at higher temperatures, and their weights are
    averages. This is one more unknown, the same against all. The first copy has 0.
    """
    own = sorted(duels)  # of the learner; others in the pool were trained against it
    column = {
        n: i for i, n in enumerate(sorted({*own, *(n for row in duels.values() for n in row)}))
    }
    now, handicap = len(column), len(column) + 1
    rows, games, ahead = [], [], []
    chain = [*(column[number] for number in own), now]
    for newest, before, after in zip(own, chain, chain[1:]):
        for number, (count, better) in duels[newest].items():
            row = np.zeros(handicap + 1)
            row[handicap] = 1
            row[column[number]] -= 1
            row[[before, after]] += 0.5
            rows.append(row)
            games.append(count)
            ahead.append(better)
    x, games, ahead = np.array(rows), np.array(games), np.array(ahead)
    steps = np.eye(handicap + 1)[chain[1:]] - np.eye(handicap + 1)[chain[:-1]]
    precision = np.eye(handicap + 1) / _SPREAD**2 + steps.T @ steps / _STEP**2
    rating = np.zeros(handicap + 1)
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-x @ rating))
        slope = x.T @ (ahead - games * chance) - precision @ rating
        bend = (x.T * (games * chance * (1 - chance))) @ x + precision
        change = np.clip(np.linalg.solve(bend, slope), -1, 1)
        rating += change
        if np.abs(change).max() < 1e-6:
            break
    points = ELO * (rating - rating[chain[0]])
    return {number: float(points[i]) for number, i in column.items()} | {NOW: float(points[now])}
