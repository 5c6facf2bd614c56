"""Searches in which all powers think, on boards with made-up values."""

import numpy as np
import pytest
from support.search import AllOrders, OwnCenters, joint_orders

from diplomacy_engine import VectorGame, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.search.draws import PlayerDraws
from diplomacy_engine.players.search.equilibrium import Equilibrium, anchored, mixtures_of


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


def test_regret_matching_becomes_harder_to_exploit():
    """The gap of its mixtures in the whole game falls about as 1 / sqrt(iterations)."""
    games, gaps = opening(), []
    asked = games.decisions()
    every = max(joint_orders(asked, d) for d in range(2))
    payoff = None
    for iterations in (16, 1024):
        player = Equilibrium(AllOrders(), Difference(), "eq", every, iterations, every)
        payoff = payoffs(games, player) if payoff is None else payoff
        shares = player.solve(games, player.sides(games, np.zeros(1, int)))[0]
        x, y = shares[0, : payoff.shape[0]], shares[1, : payoff.shape[1]]
        gaps.append((payoff @ y).max() - (x @ payoff).min())
    assert gaps[1] < max(gaps[0] / 3, 0.05) and gaps[1] < 0.3 * (payoff.max() - payoff.min())


@pytest.mark.parametrize("name", ["small", "three"])
def test_orders_are_legal_and_repeatable(name):
    given = []
    for threads in (1, 2):
        games = VectorGame(name, 9, seed=4, threads=threads, auto_reset=False)
        for _ in range(5):
            games.step(orders_of(games, make_bot("dumbbot")))
        asked = games.decisions()
        player = Equilibrium(PlayerDraws(make_bot("dumbbot")), OwnCenters(), "search", 4, 8, 8)
        numbers = player.act(games, asked)
        for s, number in enumerate(numbers):
            legal = asked.order[asked.order_start[s] : asked.order_start[s + 1]]
            assert number in legal or asked.slot_province[s] == NONE
        one = asked.take(np.array([asked.count - 1]))
        begin = asked.slot_start[asked.count - 1]
        assert player.act(games, one).tolist() == numbers[begin:].tolist()
        given.append(numbers.tolist())
    assert given[0] == given[1]


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
