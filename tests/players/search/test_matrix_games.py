"""Games in matrices whose solutions are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diplomacy_engine.players.search.matrix_games import (
    anchored,
    mixtures_of,
    solve_near,
    solve_zero_sum,
)

ROCK = [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]
KNOWN = {
    "rock, paper, scissors": (ROCK, [1 / 3] * 3, 0),
    "rock's win counts 2": ([[0, -1, 2], [1, 0, -1], [-2, 1, 0]], [1 / 4, 1 / 2, 1 / 4], 0),
    "matching pennies": ([[1, -1], [-1, 1]], [1 / 2, 1 / 2], 0),
    "a dominated action": ([[2, 3], [1, 0]], [1, 0], 2),
    "one action": ([[5, 4, 7]], [1], 4),
    "all the same": ([[3, 3], [3, 3]], None, 3),
    "large numbers": ([[1e6, -1e6], [-1e6, 1e6]], [1 / 2, 1 / 2], 0),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_games_are_solved(name):
    payoff, mixture, value = KNOWN[name]
    x, _, found = solve_zero_sum(np.array(payoff))
    assert found == pytest.approx(value, abs=1e-6)
    if mixture is not None:
        assert x == pytest.approx(mixture, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 6)),
        elements=st.floats(-1, 1).map(lambda x: round(x, 3)),
    )
)
def test_nobody_gains_by_leaving_a_solution(payoff):
    x, y, value = solve_zero_sum(payoff)
    assert x.sum() == pytest.approx(1) and y.sum() == pytest.approx(1)
    assert (x >= 0).all() and (y >= 0).all()
    assert (x @ payoff).min() >= value - 1e-8 and (payoff @ y).max() <= value + 1e-8


def test_regrets_become_shares():
    possible = np.array([[True, True, True], [True, True, False]])
    regret = np.array([[3.0, -1.0, 1.0], [-1.0, -2.0, 9.0]])
    assert mixtures_of(regret, possible).tolist() == [[0.75, 0, 0.25], [0.5, 0.5, 0]]


@pytest.mark.parametrize("payoff", [np.array([[0.0, -1, 2], [1, 0, -1], [-1, 1, 0]]), None])
def test_average_mixtures_become_harder_to_exploit(payoff):
    """The gap falls as 1 / sqrt(iterations) at least: slope -0.5 in logarithms."""
    if payoff is None:
        payoff = np.random.default_rng(5).normal(size=(6, 5))
    regrets = [np.zeros(n) for n in payoff.shape]
    totals, gaps = [np.zeros(n) for n in payoff.shape], {}
    for t in range(1, 20_001):
        x, y = (mixtures_of(regret, np.ones(len(regret), bool)) for regret in regrets)
        for regret, value, own in zip(regrets, (payoff @ y, -(x @ payoff)), (x, y)):
            regret += value - own @ value
        for total, own in zip(totals, (x, y)):
            total += own
        if t in (200, 20_000):
            x, y = (total / t for total in totals)
            gaps[t] = (payoff @ y).max() - (x @ payoff).min()
    slope = np.log(gaps[20_000] / gaps[200]) / np.log(100)
    assert slope < -0.5 and gaps[20_000] < 0.02


def test_mixtures_near_a_policy():
    rng, possible = np.random.default_rng(2), np.array([True, True, True, False])
    value, logprob = rng.normal(size=4), np.log([0.5, 0.3, 0.1, 0.1])
    policy = np.array([5, 3, 1, 0]) / 9
    np.testing.assert_allclose(anchored(value, logprob, 1e9, 0.5, possible), policy, atol=1e-6)
    hedge = np.exp(value / 0.5) * possible
    np.testing.assert_allclose(
        anchored(value, logprob, 0.0, 0.5, possible), hedge / hedge.sum(), atol=1e-12
    )
    # Against a fixed opponent, policy * exp(value / anchor) is best: no other mixture has more.
    best = anchored(value, logprob, 0.2, 0.0, possible)[:3]

    def utility(mixture):
        return mixture @ value[:3] - 0.2 * (mixture * np.log(mixture / policy[:3])).sum()

    closed = policy[:3] * np.exp(value[:3] / 0.2)
    np.testing.assert_allclose(best, closed / closed.sum(), atol=1e-9)
    assert all(utility(other) <= utility(best) + 1e-9 for other in rng.dirichlet(np.ones(3), 500))


def test_a_matrix_game_is_solved_near_a_policy():
    payoff = np.random.default_rng(3).normal(size=(5, 4))
    near = np.log(np.full(5, 0.2)), np.log([0.7, 0.1, 0.1, 0.1])
    x, y = solve_near(payoff, *near, 1e6)
    np.testing.assert_allclose([*x, *y], np.exp(np.concatenate(near)), atol=1e-4)
    x, y = solve_near(payoff, *near, 0.3)  # each is the closed answer to the other
    for mixture, value, log in ((x, payoff @ y, near[0]), (y, -(x @ payoff), near[1])):
        closed = np.exp(log + value / 0.3)
        np.testing.assert_allclose(mixture, closed / closed.sum(), atol=0.02)
    exact = solve_zero_sum(payoff)[2]
    x, y = solve_near(payoff, *near, 1e-4, 5000)  # nearly no pull: the game's own value
    assert (payoff @ y).max() - exact < 0.02 and exact - (x @ payoff).min() < 0.02
