"""Solutions of games in which all choose at once: regret matching, and exact ones for two players.

Regret matching: Hart and Mas-Colell 2000; its plus variant with linear averaging: Tammelin 2014.
Mixtures that stay near a policy: piKL, Jacob et al. 2022, *Modeling Strong and Human-Like Gameplay
with KL-Regularized Search*; the schedule is that of Bakhtin et al. 2023.
The exact solution of a zero-sum matrix game is a linear program (von Neumann; Dantzig 1951).
"""

import numpy as np


def mixtures_of(regret: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """Return the mixtures (..., K) of regret matching: shares of the positive regrets, else even.

    Args:
        regret: (..., K), summed up so far.
        possible: (..., K) bool, at least one of them.
    """
    positive = np.maximum(regret, 0.0) * possible
    total = positive.sum(-1, keepdims=True)
    even = possible / possible.sum(-1, keepdims=True)
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), even)


def anchored(
    value: np.ndarray,
    logprob: np.ndarray,
    anchor: float,
    exploring: np.ndarray | float,
    possible: np.ndarray,
) -> np.ndarray:
    """Return the mixtures (..., K) of piKL: exp((value + anchor * logprob) / (exploring + anchor)).

    With a great `anchor` they are the policy, with 0 those of Hedge.

    Args:
        value: (..., K), means so far.
        logprob: (..., K), of the policy to stay near.
        anchor: what a nat of distance from it costs.
        exploring: (..., 1), falls with the iterations.
        possible: (..., K) bool, at least one of them.
    """
    heat = np.maximum(exploring + anchor, 1e-12)
    logit = np.where(possible, (value + anchor * logprob) / heat, -np.inf)
    share = np.exp(logit - logit.max(-1, keepdims=True))
    return share / share.sum(-1, keepdims=True)


def solve_zero_sum(payoff: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return both mixtures and the value of a matrix game, exactly but for rounding.

    Args:
        payoff: (n, m) what the rows' player wins and the columns' player loses.

    The columns' player's linear program, by the simplex method. With all payoffs made positive the
    origin is feasible: maximise sum(z) with payoff @ z <= 1 and z >= 0; then z / sum(z) is the
    columns' mixture, and the dual solution gives the rows'. Bland's rule keeps it from cycling.
    """
    payoff = np.asarray(payoff, np.float64)
    rows, columns = payoff.shape
    least = payoff.min()
    shift = 1.0 - least
    scale = max(1.0, float(np.abs(payoff).max()))
    table = np.zeros((rows + 1, columns + rows + 1))
    table[:rows, :columns] = (payoff + shift) / scale
    table[:rows, columns : columns + rows] = np.eye(rows)
    table[:rows, -1] = 1.0
    table[rows, :columns] = -1.0
    basis = np.arange(columns, columns + rows)
    while True:
        entering = np.flatnonzero(table[rows, :-1] < -1e-11)
        if not len(entering):
            break
        column = entering[0]
        leaving = np.flatnonzero(table[:rows, column] > 1e-11)
        ratio = table[leaving, -1] / table[leaving, column]
        tied = leaving[ratio <= ratio.min() + 1e-12]
        row = tied[basis[tied].argmin()]
        table[row] /= table[row, column]
        others = np.arange(rows + 1) != row
        table[others] -= np.outer(table[others, column], table[row])
        basis[row] = column
    z = np.zeros(columns + rows)
    z[basis] = table[:rows, -1]
    y, x = z[:columns].clip(0), table[rows, columns : columns + rows].clip(0)
    value = scale / table[rows, -1] - shift
    return x / x.sum(), y / y.sum(), float(value)


def solve_near(
    payoff: np.ndarray, rows: np.ndarray, columns: np.ndarray, anchor: float, iterations: int = 500
) -> tuple[np.ndarray, np.ndarray]:
    """Return mixtures of both players of a matrix game that stay near a policy (piKL).

    Both are answers to each other's average, with linear weights. The scale of `anchor` is that of
    the payoffs.

    Args:
        payoff: (n, m) what the rows' player wins and the columns' player loses.
        rows, columns: (n,) and (m,) log-probabilities of that policy.
        anchor: what a nat of distance from it costs.
        iterations: of both.
    """
    means = [np.exp(part - part.max()) for part in (rows, columns)]
    x, y = (part / part.sum() for part in means)
    spread = float(payoff.std())
    for t in range(1, iterations + 1):
        exploring = 3 * spread / (10 * np.sqrt(t))
        answers = [
            anchored(value, near, anchor, exploring, np.ones(len(near), bool))
            for value, near in ((payoff @ y, rows), (-(x @ payoff), columns))
        ]
        weight = 2 / (t + 1)
        x, y = ((1 - weight) * old + weight * new for old, new in zip((x, y), answers))
    return x, y
