"""Games in matrices whose solutions are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diplomacy_engine.players.search.matrix_games import mixtures_of, solve_zero_sum

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
