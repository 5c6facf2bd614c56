"""DumbBot: David Norman's bot (`dumbbot`) and two ports of it, told apart by their `rules`.

Every unit goes where the map is worth most to its power (dumbbot_values.py), with some chance for a
place that is nearly as good; one that finds its place taken by a friend supports it there. DumbBot
never convoys and never supports another power.
"""

import numpy as np

from ..._jit import jit
from ..._suggest import player_name
from ...constants import NONE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.map import Map
from ...rules.state import (
    Salt,
    adjustments_owed,
    can_build_in,
    decision_seed,
    is_movement,
    is_retreat,
    random_below,
)
from . import dumbbot_moves as moves
from .dumbbot_rules import DEEPDIP, NORMAN, PAQUETTE, ROUNDED, TRUNCATED, DumbbotRules
from .dumbbot_values import compute_values, new_values, node_graph, survey_game


@jit
def _chance_kind(rules):
    """Return how chances are counted where no moves are ordered: rounded ones are truncated."""
    return TRUNCATED if rules.chance == ROUNDED else rules.chance


@jit
def _retreat_orders(table, graph, state, e, power, values, scratch, rules, orders, rng):
    """Write the retreat orders (E, V) of one power.

    Rule    units as for moves; a province to which a friend already retreats is rejected. With
            `forgets_bans` all vacant neighbors are looked at; if one that is forbidden is picked,
            the order is illegal and the unit disbands
    """
    for v in range(state.unit_power.shape[1]):
        scratch.mover[v] = NONE
    candidates = scratch.rank, scratch.node, scratch.neighbor
    rng, units = moves.queue_units(state.dislodged_power, e, power, scratch, rules, rng)
    for u in range(units):
        v = scratch.queue[u]
        kind, here = state.dislodged_kind[e, v], state.dislodged_location[e, v]
        options = np.int64(state.retreat_options[e, v])
        node = graph.number[kind, here]
        count = 0
        for i in range(graph.way_first[node], graph.way_first[node + 1]):
            to, neighbor = graph.way_node[i], graph.way_neighbor[i]
            if not (rules.forgets_bans or (options >> neighbor) & 1):
                continue
            if rules.sorts_retreats:
                rank = values.value[to]
                count = moves.insert(candidates, count, rank, to, neighbor, rules.merges_equals)
            else:
                scratch.rank[count] = values.value[to]
                scratch.node[count], scratch.neighbor[count] = to, neighbor
                count += 1
        orders[e, v] = table.disband[kind, here]
        while count > 0:
            if rules.sorts_retreats:
                rng, at = moves.pick(scratch.rank, count, 1, _chance_kind(rules), rng)
            else:
                rng, at = moves.wander(scratch.rank, count, rng)
            q = graph.province[scratch.node[at]]
            if scratch.mover[q] == NONE and state.unit_power[e, q] == NONE:
                scratch.mover[q] = v
                if (options >> scratch.neighbor[at]) & 1:
                    orders[e, v] = table.first_retreat[kind, here] + scratch.neighbor[at]
                break
            count = moves.remove(candidates, count, at)
    return rng


@jit
def _build_orders(board, table, graph, state, e, power, owed, values, scratch, rules, orders, rng):
    """Write the builds of one power.

    Rule    every unit kind and coast of every vacant home center competes on value. With
            `builds_once` the first candidate stands twice in the list, and the build is repeated
            for all that is owed: once it is legal
    """
    candidates, count = (scratch.rank, scratch.node, scratch.neighbor), 0
    for n in range(graph.kind.shape[0]):
        v = graph.province[n]
        if can_build_in(board, state, e, power, v):
            orders[e, v] = NONE
            rank = values.value[n]
            count = moves.insert(candidates, count, rank, n, NONE, rules.merges_equals)
    if rules.builds_once:
        owed = min(owed, 1)
    while owed > 0 and count > 0:
        again = 0
        if rules.builds_once:
            rng, again = random_below(rng, 100)
        at = 0
        if again < moves.PLAY_ALTERNATIVE:
            rng, at = moves.pick(scratch.rank, count, 1, _chance_kind(rules), rng)
        n = scratch.node[at]
        v = graph.province[n]
        orders[e, v] = table.build[graph.kind[n], graph.location[n]]
        owed -= 1
        for i in range(count - 1, -1, -1):
            if graph.province[scratch.node[i]] == v:
                count = moves.remove(candidates, count, i)


@jit
def _removal_orders(table, graph, state, e, power, owed, values, scratch, rules, orders, rng):
    """Write the removals of one power.

    Rule    the worst unit first: every step of the pick has 50 % (chances with a sign). If of units
            with equal value the last one only is a candidate (`merges_equals`), the rest may be
            left to civil disorder. With `removes_best` the best units go, without any chance
    """
    candidates, count = (scratch.rank, scratch.node, scratch.neighbor), 0
    provinces = state.unit_power.shape[1]
    for i in range(provinces):
        v = provinces - 1 - i if rules.merges_equals else i
        if state.unit_power[e, v] == power:
            orders[e, v] = NONE
            n = graph.number[state.unit_kind[e, v], state.unit_location[e, v]]
            rank = values.value[n] if rules.removes_best else -values.value[n]
            count = moves.insert(candidates, count, rank, n, NONE, rules.merges_equals)
    while owed > 0 and count > 0:
        at = 0
        if not rules.removes_best:
            rng, at = moves.pick(scratch.rank, count, -1, _chance_kind(rules), rng)
        n = scratch.node[at]
        orders[e, graph.province[n]] = table.disband[graph.kind[n], graph.location[n]]
        owed -= 1
        count = moves.remove(candidates, count, at)


@jit
def _read_orders(board, table, decisions, d, orders, numbers):
    """Write the order numbers (S,) of decision d, from orders by province. In winter a province may
    be ordered once, and what is ordered nowhere is waived, or left to civil disorder."""
    e, begin, end = decisions.game[d], decisions.slot_start[d], decisions.slot_start[d + 1]
    if decisions.slot_province[begin] != NONE:
        for s in range(begin, end):
            numbers[s] = orders[e, decisions.slot_province[s]]
        return
    for s in range(begin, end):
        numbers[s] = NONE
    s = begin
    for i in range(decisions.order_start[begin], decisions.order_start[begin + 1]):
        number = decisions.order[i]
        if number == table.waive or s == end:
            break  # WAIVE is the last of a list
        if orders[e, board.location_province[table.location[number]]] == number:
            numbers[s] = number
            s += 1


@jit
def dumbbot_orders(
    board, table, graph, state, decisions, first, last, rules, salt, work, orders, out
):
    """Write the order numbers of decisions first..last-1 to out (S,)."""
    values, scratch = work
    surveyed = NONE
    for d in range(first, last):
        e, p = decisions.game[d], decisions.power[d]
        if e != surveyed:
            survey_game(board, state, e, rules, values)
            surveyed = e
        compute_values(board, graph, state, e, p, rules, values)
        rng = decision_seed(state, e, p, salt)
        if is_movement(state.phase[e]):
            moves.begin_movement(state, e, p, scratch)
            moves.movement_orders(
                board, table, graph, state, e, p, values, scratch, rules, orders, rng
            )
        elif is_retreat(state.phase[e]):
            _retreat_orders(table, graph, state, e, p, values, scratch, rules, orders, rng)
        else:
            owed = adjustments_owed(board, state, e, p)
            if owed > 0:
                _build_orders(
                    board, table, graph, state, e, p, owed, values, scratch, rules, orders, rng
                )
            else:
                _removal_orders(
                    table, graph, state, e, p, -owed, values, scratch, rules, orders, rng
                )
        _read_orders(board, table, decisions, d, orders, out)


class Dumbbot:
    """DumbBot as David Norman wrote it."""

    name = "dumbbot"
    reads_history = False
    rules: DumbbotRules = NORMAN
    salt = int(Salt.DUMBBOT)

    kernel = staticmethod(dumbbot_orders)

    __repr__ = player_name

    def __init__(self):
        self._map: Map | None = None  # that what each thread works with, below, is for
        self._of_thread: dict[int, tuple] = {}

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        if self._map is not games.map:
            self._map, self._of_thread = games.map, {}
        orders = games.new_orders()
        numbers = np.empty(len(decisions.slot_province), np.int32)
        boards = games.board, games.table, node_graph(games.map, self.rules), games.state
        rules = self.rules, self.salt

        def order_slice(first: int, last: int, thread: int) -> None:
            if thread not in self._of_thread:
                self._of_thread[thread] = self._working_arrays(games)
            arrays = self._of_thread[thread], orders, numbers
            games.call(self.kernel, *boards, decisions, first, last, *rules, *arrays)

        games.run(order_slice, decisions.count, numbered=True)
        return numbers

    def _working_arrays(self, games: VectorGame) -> tuple:
        graph = node_graph(games.map, self.rules)
        return new_values(games.board, graph), moves.order_scratch(games.board, graph)


class PaquetteDumbbot(Dumbbot):
    """DumbBot as Philip Paquette ported it."""

    name = "dumbbot-paquette"
    rules = PAQUETTE
    salt = int(Salt.PAQUETTE)


class DeepdipDumbbot(Dumbbot):
    """DumbBot as the DeepDip thesis had it."""

    name = "dumbbot-deepdip"
    rules = DEEPDIP
    salt = int(Salt.DEEPDIP)
