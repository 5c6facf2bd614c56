"""Decoupled UCT: Monte Carlo tree search where all powers choose at once.

In each node every power picks by UCB1 (Kocsis and Szepesvari 2006) as if alone; all picks are
played together (Lanctot, Wittlinger, Winands and Den Teuling 2013, section 3.1). Nodes are boards
of movement phases: what is drawn in between follows from seeds that node and orders decide.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ..._arrays import Bools, Float64s, Int8s, Int32s, Int64s, Uint64s, new_arrays
from ..._jit import jit
from ...constants import NONE, RUNNING
from ...games.decisions import Decisions
from ...games.draws import phase_seeds
from ...games.vector_game import VectorGame
from ...rules.state import Salt, in_movement, next_random, random_below
from ..bots.dumbbot import Dumbbot
from .draws import Draws, PlayerDraws, vary
from .leaves import CenterClaims
from .player import SearchPlayer

NEW, UNKNOWN, OVER = 0, 1, 2  # where a way down the tree ends
MEMORY = 2**27  # bytes that the trees grown at once may have
MOST_TREES = 128


class UctSettings(NamedTuple):
    leaves: int = 512  # boards valued for one decision
    draws: int = 16  # joint orders of every power of a node, half of them with a variation
    candidates: int = 8  # of these tried, at most
    exploration: float = float(np.sqrt(2))  # C of UCB1, for values from 0 to 1


class Trees(NamedTuple):
    """T trees of N nodes, the first the root; K joint orders of each of P powers."""

    num_nodes: Annotated[Int64s, "T"]  # nodes so far
    rng: Annotated[Uint64s, "T"]  # for the order in which orders are first tried
    low: Annotated[Float64s, "T, P"]  # least value that a power has seen
    high: Annotated[Float64s, "T, P"]  # greatest one
    parent: Annotated[Int32s, "T, N"]  # or NONE
    child: Annotated[Int32s, "T, N"]  # the first one, or NONE
    sibling: Annotated[Int32s, "T, N"]  # the next child of the same parent, or NONE
    over: Annotated[Bools, "T, N"]  # whether the game has ended
    has_orders: Annotated[Bools, "T, N"]  # whether joint orders were sampled
    profile: Annotated[Int8s, "T, N, P"]  # which order of each power led here
    value: Annotated[Float64s, "T, N, P"]
    count: Annotated[Int8s, "T, N, P"]  # type: ignore[assignment]  # joint orders of a power
    visits: Annotated[Int32s, "T, N"]  # ways that went on from here
    tried: Annotated[Int32s, "T, N, P, K"]
    total: Annotated[Float64s, "T, N, P, K"]  # sum of the values that came of it
    orders: Annotated[Int32s, "T, N, K, V"]  # by the province of the power's unit


@jit
def _add_nodes(trees, which, parents, picked, values, over):
    """Append a node to each tree in `which` (n,), below parents (n,), NONE for a root.

    `picked` (T, P) are the choices that led there; values are (n, P).
    """
    for i in range(which.shape[0]):
        t, parent = which[i], parents[i]
        n = trees.num_nodes[t]
        trees.num_nodes[t] += 1
        trees.parent[t, n], trees.child[t, n], trees.sibling[t, n] = parent, NONE, NONE
        if parent != NONE:
            trees.sibling[t, n] = trees.child[t, parent]
            trees.child[t, parent] = n
        trees.over[t, n], trees.has_orders[t, n], trees.visits[t, n] = over[i], False, 0
        for p in range(picked.shape[1]):
            trees.profile[t, n, p] = picked[t, p]
            trees.value[t, n, p] = values[i, p]
            trees.count[t, n, p] = 0
            for k in range(trees.tried.shape[3]):
                trees.tried[t, n, p, k], trees.total[t, n, p, k] = 0, 0.0


@jit
def _learn_orders(trees, which, nodes, unit_power, drawn):
    """Write the joint orders of nodes, each once: drawn (n, R, V) int32, of all powers."""
    powers, most = trees.tried.shape[2], trees.tried.shape[3]
    provinces = drawn.shape[2]
    for i in range(which.shape[0]):
        t, n = which[i], nodes[i]
        trees.has_orders[t, n] = True
        for p in range(powers):
            units = 0
            for v in range(provinces):
                if unit_power[i, v] == p:
                    units += 1
            count = 0
            for r in range(drawn.shape[1] if units > 0 else 0):
                fresh = count < most
                for k in range(count):
                    same = True
                    for v in range(provinces):
                        if unit_power[i, v] == p and trees.orders[t, n, k, v] != drawn[i, r, v]:
                            same = False
                    if same:
                        fresh = False
                if fresh:
                    for v in range(provinces):
                        if unit_power[i, v] == p:
                            trees.orders[t, n, count, v] = drawn[i, r, v]
                    count += 1
            trees.count[t, n, p] = count


@jit
def _next_to_try(trees, t, n, p, exploration):
    """Return which joint order power p tries next in a node: one untried, else the best by UCB1."""
    count = trees.count[t, n, p]
    untried = 0
    for k in range(count):
        if trees.tried[t, n, p, k] == 0:
            untried += 1
    if untried > 0:
        trees.rng[t], skipped = random_below(trees.rng[t], untried)
        for k in range(count):
            if trees.tried[t, n, p, k] == 0:
                if skipped == 0:
                    return k
                skipped -= 1
    best, best_bound = 0, -1.0
    width = max(trees.high[t, p] - trees.low[t, p], 1e-9)
    spread = np.log(max(trees.visits[t, n], 1))
    for k in range(count):
        tried = trees.tried[t, n, p, k]
        mean = (trees.total[t, n, p, k] / tried - trees.low[t, p]) / width
        bound = mean + exploration * np.sqrt(spread / tried)
        if bound > best_bound:
            best, best_bound = k, bound
    return best


@jit
def _descend(trees, which, exploration, at, picked, ends):
    """Follow the best bounds down from node at[t] of every tree t in `which`.

    Writes  at (T,), the last node; picked (T, P), what all powers do there; ends (T,): NEW if that
            leads to a board not seen before, UNKNOWN if joint orders must be drawn there first,
            OVER if the game has ended there
    """
    powers = trees.tried.shape[2]
    for t in which:
        n = at[t]
        while True:
            if trees.over[t, n]:
                ends[t] = OVER
                break
            if not trees.has_orders[t, n]:
                ends[t] = UNKNOWN
                break
            for p in range(powers):
                picked[t, p] = _next_to_try(trees, t, n, p, exploration)
            child = trees.child[t, n]
            while child != NONE:
                same = True
                for p in range(powers):
                    if trees.profile[t, child, p] != picked[t, p]:
                        same = False
                if same:
                    break
                child = trees.sibling[t, child]
            if child == NONE:
                ends[t] = NEW
                break
            n = child
        at[t] = n


@jit
def _write_profiles(trees, which, nodes, picked, unit_power, seed, orders, seeds):
    """Write the orders (n, V) that all powers have picked, and the seeds (n,) of what follows."""
    for i in range(which.shape[0]):
        t, n = which[i], nodes[i]
        for v in range(orders.shape[1]):
            p = unit_power[i, v]
            played = p != NONE and p < picked.shape[1]  # not by anybody if it is neutral
            orders[i, v] = trees.orders[t, n, picked[t, p], v] if played else NONE
        mixed = seed[i]
        for p in range(picked.shape[1]):
            mixed, high = next_random(mixed + np.uint64(picked[t, p]))
            mixed, low = next_random(mixed ^ np.uint64(high))
            mixed = mixed ^ (np.uint64(low) << np.uint64(32))
        seeds[i] = mixed


@jit
def _back_up(trees, which, leaves):
    """Tell all nodes above the leaf of each tree what it is worth."""
    powers = trees.tried.shape[2]
    for i in range(which.shape[0]):
        t, n = which[i], leaves[i]
        leaf = n
        for p in range(powers):
            trees.low[t, p] = min(trees.low[t, p], trees.value[t, leaf, p])
            trees.high[t, p] = max(trees.high[t, p], trees.value[t, leaf, p])
        while trees.parent[t, n] != NONE:
            above = trees.parent[t, n]
            trees.visits[t, above] += 1
            for p in range(powers):
                k = trees.profile[t, n, p]
                trees.tried[t, above, p, k] += 1
                trees.total[t, above, p, k] += trees.value[t, leaf, p]
            n = above


class _Forest(NamedTuple):
    """Trees that are grown at once, and boards of games like theirs."""

    trees: Trees
    boards: VectorGame  # of all nodes: row t * N + n
    scratch: VectorGame  # where orders are sampled and played


class DecoupledUct(SearchPlayer):
    """Grows a tree for each decision and gives the orders that were tried most at its root.

    `own` draws the joint orders of all powers and, as they come, retreats and adjustments.
    """

    value: CenterClaims

    def __init__(self, own: Draws, value: CenterClaims, name: str, settings: UctSettings):
        super().__init__(own, value, name)
        self.settings = settings
        self._forest: _Forest | None = None

    def choose(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        settings, nodes = self.settings, self.settings.leaves + 1
        sizes = {"P": games.num_powers, "K": settings.candidates, "V": len(games.board.terrain)}
        node_bytes = sizes["K"] * (4 * sizes["V"] + 12 * sizes["P"]) + 30 * sizes["V"]
        most = max(1, min(decisions.count, MOST_TREES, MEMORY // (nodes * node_bytes)))
        forest = self._forest
        if not (forest and forest.scratch.is_like(games) and len(forest.trees.rng) >= most):
            trees = new_arrays(Trees, T=most, N=nodes, **sizes)
            spare = games.spare(most * nodes), games.spare(most * settings.draws)
            forest = self._forest = _Forest(trees, *spare)
        edges = range(most, decisions.count, most)
        seats = zip(np.split(decisions.game, edges), np.split(decisions.power, edges))
        return np.concatenate([self._search(forest, games, *seat) for seat in seats])

    def _search(
        self, forest: _Forest, games: VectorGame, rows: np.ndarray, powers: np.ndarray
    ) -> np.ndarray:
        (trees, boards, scratch), settings = forest, self.settings
        every, nodes = np.arange(len(rows)), trees.parent.shape[1]
        seeds = phase_seeds(games, rows, powers, Salt.CANDIDATES, 2)
        boards.copy_from(games, rows, every * nodes)
        boards.seed_games(every * nodes, seeds[:, 0])
        trees.num_nodes[every], trees.rng[every] = 0, seeds[:, 1]
        trees.low[every], trees.high[every] = np.inf, -np.inf
        picked = np.zeros((len(every), games.num_powers), np.int8)
        none = np.full(len(every), NONE)
        over, value = np.zeros(len(every), np.bool_), np.zeros(picked.shape)
        scratch.call(_add_nodes, trees, every, none, picked, value, over)
        self._sample(forest, every, np.zeros(len(every), np.int64))
        at, ends = np.empty(len(every), np.int64), np.empty(len(every), np.int8)
        for _ in range(settings.leaves):
            at[:] = 0
            waiting = every
            while len(waiting):
                scratch.call(_descend, trees, waiting, settings.exploration, at, picked, ends)
                waiting = waiting[ends[waiting] == UNKNOWN]
                if len(waiting):
                    self._sample(forest, waiting, at[waiting])
            leaves = at.copy()
            new = every[ends == NEW]
            if len(new):
                leaves[new] = trees.num_nodes[new]
                self._play(forest, new, at[new], picked)
            scratch.call(_back_up, trees, every, leaves)
        tried = trees.tried[every, 0, powers]
        mean = trees.total[every, 0, powers] / np.maximum(tried, 1)
        best = (tried + mean / 2).argmax(1)  # values are at most 1, so they decide ties only
        orders = trees.orders[every, 0, best]
        return np.where(games.state.unit_power[rows] == powers[:, None], orders, NONE)

    def _sample(self, forest: _Forest, which: np.ndarray, nodes: np.ndarray) -> None:
        (trees, boards, scratch), draws = forest, self.settings.draws
        source = which * trees.parent.shape[1] + nodes
        copies = np.arange(len(which) * draws)
        scratch.copy_from(boards, np.repeat(source, draws), copies)
        no_power = np.full(len(which), NONE)
        scratch.seed_games(
            copies, phase_seeds(boards, source, no_power, Salt.CANDIDATES, draws).reshape(-1)
        )
        decisions = scratch.decisions(copies, reuse=True)
        drawn = scratch.new_orders()
        numbers = self.own.plain(scratch, decisions)
        varied = np.flatnonzero(decisions.game % draws >= draws // 2)
        game, power = decisions.game[varied], decisions.power[varied]
        slot, order = vary(
            decisions, varied, phase_seeds(scratch, game, power, Salt.CHOICE, 1)[:, 0]
        )
        numbers[slot] = order
        scratch.write_orders(drawn, decisions, numbers)
        drawn = drawn[: len(copies)].reshape(len(which), draws, -1)
        unit_power = boards.state.unit_power[source]
        scratch.call(_learn_orders, trees, which, nodes, unit_power, drawn)

    def _play(
        self, forest: _Forest, which: np.ndarray, nodes: np.ndarray, picked: np.ndarray
    ) -> None:
        trees, boards, scratch = forest
        nodes_a_tree = trees.parent.shape[1]
        source = which * nodes_a_tree + nodes
        rows, state = np.arange(len(which)), boards.state
        orders, seeds = scratch.new_orders(), np.empty(len(which), np.uint64)
        units, seed = state.unit_power[source], state.seed[source]
        scratch.call(
            _write_profiles, trees, which, nodes, picked, units, seed, orders[: len(which)], seeds
        )
        scratch.copy_from(boards, source, rows)
        scratch.seed_games(rows, seeds)
        scratch.step(orders, rows)
        while True:
            moving = in_movement(scratch.state, rows)
            over = scratch.state.end[rows] != RUNNING
            others = rows[~moving & ~over]
            if not len(others):
                break
            decisions = scratch.decisions(others, reuse=True)
            scratch.write_orders(orders, decisions, self.own.plain(scratch, decisions))
            scratch.step(orders, others)
        boards.copy_from(
            scratch, rows, which * nodes_a_tree + trees.num_nodes[which], keep_seeds=True
        )
        scratch.call(
            _add_nodes, trees, which, nodes, picked, self.value.shares(scratch, rows), over
        )


class Mcts(DecoupledUct):
    """Monte Carlo tree search: the baseline of PyTAG, where all powers choose at once.

    DumbBot proposes every power's orders, and `CenterClaims` says what a board is worth.
    """

    name = "mcts"

    def __init__(self):
        super().__init__(PlayerDraws(Dumbbot()), CenterClaims(), self.name, UctSettings())
