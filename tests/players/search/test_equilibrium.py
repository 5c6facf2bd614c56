"""Searches in which all powers think, on boards with made-up values."""

import numpy as np
import pytest
from support.search import AllOrders, OwnCenters, joint_orders

from diplomacy_engine import VectorGame, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.search.draws import PlayerDraws
from diplomacy_engine.players.search.equilibrium import Equilibrium, Matrix
from diplomacy_engine.players.search.matrix_games import solve_zero_sum


class Difference(OwnCenters):
    """Between two powers, what one has more than the other; so it is a zero-sum game."""

    def look(self, games, rows, powers):
        return super().look(games, rows, powers) - super().look(games, rows, 1 - powers)


def opening(name: str = "small", count: int = 1, moves: int = 0) -> VectorGame:
    games = VectorGame(name, count, seed=4, threads=1, auto_reset=False)
    for _ in range(moves):
        games.step(orders_of(games, make_bot("dumbbot")))
    return games


def payoffs(games: VectorGame, player: Equilibrium) -> np.ndarray:
    """Return what the first power wins with each pair of candidates, one after the other."""
    sides, leaves = player.sides(games, np.zeros(1, int)), player.leaves(games)
    found = np.zeros(sides.count)
    for i in range(sides.count[0]):
        for j in range(sides.count[1]):
            orders = np.where(sides.orders[0, i] != NONE, sides.orders[0, i], sides.orders[1, j])
            given = np.zeros(1, int), np.zeros(1, np.int8), orders[None], sides.follow
            found[i, j] = leaves.evaluate(games, *given)[0]
    return found


@pytest.fixture(scope="module")
def whole_game() -> tuple[VectorGame, Matrix, np.ndarray]:
    games = opening()
    asked = games.decisions()
    every = max(joint_orders(asked, d) for d in range(2))
    player = Matrix(AllOrders(), Difference(), "matrix", candidates=every, draws=every)
    return games, player, payoffs(games, player)


def test_the_matrix_of_a_position_is_solved(whole_game):
    games, player, payoff = whole_game
    x, _, value = solve_zero_sum(payoff)
    shares = player.solve(games, player.sides(games, np.zeros(1, int)))[0]
    n, m = payoff.shape
    assert shares[0, :n] @ payoff @ shares[1, :m] == pytest.approx(value, abs=1e-6)
    assert (shares[0, :n] @ payoff).min() >= value - 1e-6
    assert (payoff @ shares[1, :m]).max() <= value + 1e-6
    np.testing.assert_allclose(shares[0, :n], x, atol=1e-6)


def test_regret_matching_comes_near_the_same_value(whole_game):
    """Its mixtures can be exploited less the longer it goes on, about as 1 / sqrt(iterations)."""
    games, _, payoff = whole_game
    value = solve_zero_sum(payoff)[2]
    gaps, every = [], max(payoff.shape)
    for iterations in (16, 1024):
        player = Equilibrium(AllOrders(), Difference(), "eq", every, iterations, every)
        shares = player.solve(games, player.sides(games, np.zeros(1, int)))[0]
        x, y = shares[0, : payoff.shape[0]], shares[1, : payoff.shape[1]]
        gaps.append((payoff @ y).max() - (x @ payoff).min())
    assert gaps[1] < max(gaps[0] / 3, 0.05) and gaps[1] < 0.3 * (payoff.max() - payoff.min())
    assert abs(x @ payoff @ y - value) < 0.2


@pytest.mark.parametrize("name", ["small", "three"])
def test_orders_are_legal_and_repeatable(name):
    kinds = [Equilibrium] + [Matrix] * (name == "small")
    for kind in kinds:
        options = {"candidates": 4, "draws": 8} | ({"iterations": 8} if kind is Equilibrium else {})
        given = []
        for threads in (1, 2):
            games = VectorGame(name, 9, seed=4, threads=threads, auto_reset=False)
            for _ in range(5):
                games.step(orders_of(games, make_bot("dumbbot")))
            asked = games.decisions()
            player = kind(PlayerDraws(make_bot("dumbbot")), OwnCenters(), "search", **options)
            numbers = player.act(games, asked)
            for s, number in enumerate(numbers):
                legal = asked.order[asked.order_start[s] : asked.order_start[s + 1]]
                assert number in legal or asked.slot_province[s] == NONE
            one = asked.take(np.array([asked.count - 1]))
            begin = asked.slot_start[asked.count - 1]
            assert player.act(games, one).tolist() == numbers[begin:].tolist()
            given.append(numbers.tolist())
        assert given[0] == given[1]


def test_a_power_that_moves_alone_takes_its_best():
    games = opening()
    state = games.state
    mine = state.unit_power[0] == 1
    for array in (state.unit_power, state.unit_kind, state.unit_location):
        array[0, mine] = NONE
    asked = games.decisions()
    assert asked.count == 1 and asked.power[0] == 0
    every = joint_orders(asked)
    player = Matrix(AllOrders(), OwnCenters(), "matrix", candidates=every, draws=every)
    shares = player.solve(games, player.sides(games, np.zeros(1, int)))[0]
    assert shares[0].max() == 1.0 and player.act(games, asked).shape == asked.slot_province.shape


def test_an_anchor_keeps_the_mixture_near_the_policy():
    games, shares = opening(), {}
    asked = games.decisions()
    every = max(joint_orders(asked, d) for d in range(2))
    for anchor in (0.0, 0.5, 1e6):
        player = Equilibrium(AllOrders(), OwnCenters(), "eq", every, 128, every, anchor)
        sides = player.sides(games, np.zeros(1, int))
        shares[anchor], values = player.solve(games, sides)
    count = sides.count[0]
    np.testing.assert_allclose(shares[1e6][0, :count], 1 / count, atol=1e-4)
    worth = [(part[0] * values[0])[:count].sum() for part in shares.values()]
    assert worth[0] > worth[1] > worth[2]  # nearer to it is worth less
