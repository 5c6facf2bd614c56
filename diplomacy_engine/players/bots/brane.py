"""Brane: tactics after D-Brane (de Jonge and Sierra 2017), with DumbBot's orders for idle units.

A *plan* makes sure of one supply center: one unit moves or stays there, and others support it. Of
all sets of plans in which no unit has two orders, one that makes sure of most centers is carried
out, found by branch and bound.

The *opposition* is the number of units of one other power that reach the center or the place of a
supporter: each can undo one strength. Two powers do not add up (adding them up was weaker in play).
A plan takes a center if its strength is above the opposition, and keeps one if it is not below it.

In fall all centers that the power keeps or takes count, in spring also those that a unit could own
in fall; own ones count then only if somebody else stands there.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ..._arrays import Int8s, Int16s, Int32s, Int64s, new_arrays
from ..._jit import jit
from ...constants import FALL_MOVEMENT, NONE
from ...games.vector_game import VectorGame
from ...rules.map import Board
from ...rules.state import Salt, decision_seed, has_neutral, is_movement
from . import dumbbot_moves
from .dumbbot import Dumbbot, dumbbot_orders
from .dumbbot_values import compute_values, survey_game

MAX_NODES = 10_000  # of a search; then the best set so far is taken
MAX_UNITS = 62  # of a power that plan, the first by province: their numbers are bits of an int64
MAX_HELPERS = 8  # own units that plan for one center; no more reach one on the package's maps
MAX_PLANS = 2048  # of a power; what comes later is left out
PER_CENTER = 64  # score of a sure center; each unit bound costs 1, MAX_UNITS never outweigh one


class PlanScratch(NamedTuple):
    """Working arrays of a thread that plans; a unit's number is its place among the power's."""

    near: Annotated[Int16s, "V, most"]  # provinces of the units, of all powers, that reach it
    near_count: Annotated[Int16s, "V"]
    stamp: Annotated[Int64s, "1"]  # grows with each count of opposition
    counted: Annotated[Int64s, "V"]  # stamp of the last count in which the unit there was counted
    met: Annotated[Int32s, "P"]  # units of each power in the present count
    number: Annotated[Int8s, "V"]  # number of the own unit, or NONE
    place: Annotated[Int16s, "units"]  # province of each own unit
    helper: Annotated[Int8s, "helpers"]  # own units that reach the center
    supporters: Annotated[Int32s, "sets"]  # supporters of plans, bits of helpers
    center: Annotated[Int16s, "C"]  # provinces of the centers with plans, the worthiest first
    first: Annotated[Int32s, "C + 1"]  # where each of them has its plans
    main: Annotated[Int8s, "plans"]  # unit that moves or stays
    ordered: Annotated[Int64s, "plans"]  # units that move or support
    held: Annotated[Int64s, "plans"]  # unit that stays
    following: Annotated[Int32s, "C + 1"]  # by depth of the search: next plan to try
    state: Annotated[Int64s, "C + 1, 4"]  # units ordered, held and moving, and score
    chosen: Annotated[Int32s, "C"]  # plan at each depth, or NONE
    best: Annotated[Int32s, "C"]  # the same of the best set


def plan_scratch(board: Board) -> PlanScratch:
    provinces, centers = len(board.terrain), len(board.center_province)
    reach = np.zeros((provinces, provinces), bool)
    for kind in range(2):
        np.logical_or.at(reach, board.location_province, board.reach[kind])
    most = max(1, int(reach.sum(0).max()))
    sizes = {"V": provinces, "C": centers, "P": board.num_powers + has_neutral(board)}
    lists = {"units": MAX_UNITS, "helpers": MAX_HELPERS, "sets": 2 ** (MAX_HELPERS - 1)}
    return new_arrays(PlanScratch, **sizes, **lists, most=most, plans=MAX_PLANS)


@jit
def _survey_reach(board, state, e, plans):
    """List which units of game e reach each province; neutral ones never leave their own."""
    plans.near_count[:] = 0
    for v in range(board.terrain.shape[0]):
        if state.unit_power[e, v] == NONE or state.unit_power[e, v] == board.num_powers:
            continue
        kind, here = state.unit_kind[e, v], state.unit_location[e, v]
        before = NONE
        for i in range(board.neighbor_count[kind, here]):
            q = board.location_province[board.neighbor[kind, here, i]]
            if q != before:  # coasts of a province are next to each other
                plans.near[q, plans.near_count[q]] = v
                plans.near_count[q] += 1
            before = q


@jit
def _bits(mask):
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@jit
def _meet(state, e, power, v, plans):
    """Count the units of other powers that reach province v, unless they are counted already."""
    for i in range(plans.near_count[v]):
        u = plans.near[v, i]
        other = state.unit_power[e, u]
        if other != power and plans.counted[u] != plans.stamp[0]:
            plans.counted[u] = plans.stamp[0]
            plans.met[other] += 1


@jit
def _count_at(state, e, power, v, supporters, plans):
    """Count, by power, the units of others in v, or that reach v or a supporter's place."""
    plans.stamp[0] += 1
    plans.met[:] = 0
    there = state.unit_power[e, v]
    if there != NONE and there != power:
        plans.counted[v] = plans.stamp[0]
        plans.met[there] = 1
    _meet(state, e, power, v, plans)
    unit = 0
    while supporters >> unit:
        if (supporters >> unit) & 1:
            _meet(state, e, power, plans.place[unit], plans)
        unit += 1


@jit
def _opposition(board, state, e, power, v, origin, supporters, plans):
    """Return the opposition to a plan for province v with a unit from `origin`.

    Rule    the module's text. A unit in v that can go to `origin` meets the mover head to head,
            with the support of those that reach `origin`
    """
    _count_at(state, e, power, v, supporters, plans)
    most = 0
    for p in range(plans.met.shape[0]):
        most = max(most, plans.met[p])
    there = state.unit_power[e, v]
    if (
        origin != v
        and there != NONE
        and there != power
        and there != board.num_powers
        and board.reach[state.unit_kind[e, v], state.unit_location[e, v], origin]
    ):
        _count_at(state, e, power, origin, supporters, plans)
        most = max(most, plans.met[there])
    return most


@jit
def _add_plan(plans, first, count, main, supporters, moves):
    """Insert a plan among those from `first` on, kept with few units first; return their count."""
    if count == MAX_PLANS:
        return count
    ordered = supporters | (np.int64(1) << main if moves else np.int64(0))
    held = np.int64(0) if moves else np.int64(1) << main
    size, at = _bits(supporters), count
    while at > first and _bits(plans.ordered[at - 1] | plans.held[at - 1]) > size + 1:
        plans.main[at] = plans.main[at - 1]
        plans.ordered[at], plans.held[at] = plans.ordered[at - 1], plans.held[at - 1]
        at -= 1
    plans.main[at], plans.ordered[at], plans.held[at] = main, ordered, held
    return count + 1


@jit
def _plan_center(board, state, e, power, v, standoff, plans, count):
    """Add all sure plans for province v of which no supporter can be left out; return the count.

    Rule    an own unit in v stays there (`standoff`: it is enough that nobody else gets there);
            else one of those that reach v moves there
    """
    first, helpers = count, 0
    for i in range(plans.near_count[v]):
        u = plans.near[v, i]
        if state.unit_power[e, u] == power and plans.number[u] != NONE and helpers < MAX_HELPERS:
            plans.helper[helpers] = plans.number[u]
            helpers += 1
    stays = state.unit_power[e, v] == power
    if stays and plans.number[v] == NONE:
        return count
    margin = 0 if standoff or stays else 1
    needed = _opposition(board, state, e, power, v, v, 0, plans) + margin
    if max(needed, 1) > helpers + stays:
        return count
    for m in range(1 if stays else helpers):
        main = plans.number[v] if stays else plans.helper[m]
        minimal_sets = 0
        for some in range(1 << helpers):
            if (not stays and (some >> m) & 1) or _bits(some) + 1 < needed:
                continue
            minimal = True  # subsets of a set of bits are smaller numbers, so they came before it
            for i in range(minimal_sets):
                minimal = minimal and some & plans.supporters[i] != plans.supporters[i]
            if not minimal:
                continue
            supporters = np.int64(0)
            for h in range(helpers):
                if (some >> h) & 1:
                    supporters |= np.int64(1) << plans.helper[h]
            met = _opposition(board, state, e, power, v, plans.place[main], supporters, plans)
            if _bits(some) + 1 >= met + margin:
                plans.supporters[minimal_sets] = some
                minimal_sets += 1
                count = _add_plan(plans, first, count, main, supporters, not stays)
    return count


@jit
def _list_plans(board, state, e, power, values, plans):
    """List the centers that a power can make sure of and their plans; return how many centers. Own
    centers that nobody else can enter need no plan."""
    units = 0
    for v in range(board.terrain.shape[0]):
        plans.number[v] = NONE
        if state.unit_power[e, v] == power and units < MAX_UNITS:
            plans.number[v], plans.place[units] = units, v
            units += 1
    fall = state.phase[e] == FALL_MOVEMENT
    wanted = 0
    for c in range(board.center_province.shape[0]):
        v = board.center_province[c]
        own = state.center_owner[e, c] == power
        there = state.unit_power[e, v]
        entered = there != NONE and there != power
        safe = not fall or _opposition(board, state, e, power, v, v, 0, plans) == 0
        if own and not entered and safe:
            continue
        at = wanted
        while at > 0 and values.base[plans.center[at - 1]] < values.base[v]:
            plans.center[at] = plans.center[at - 1]
            at -= 1
        plans.center[at] = v
        wanted += 1
    centers = count = 0
    for i in range(wanted):
        v = plans.center[i]
        own = state.center_owner[e, board.province_center[v]] == power
        standoff = own and state.unit_power[e, v] == NONE
        before = count
        count = _plan_center(board, state, e, power, v, standoff, plans, count)
        if count > before:
            plans.center[centers], plans.first[centers] = v, before
            centers += 1
    plans.first[centers] = count
    return centers


@jit
def _choose_plans(centers, plans):
    """Choose a plan, or none, for each of the centers, by branch and bound.

    Rule    most centers, and with these fewest units. A unit that supports may be the one that
            stays in a plan: it holds its place all the same
    """
    for i in range(centers):
        plans.best[i] = NONE
    plans.following[0] = plans.first[0]
    plans.state[0, :] = 0
    best, nodes, depth = -1, 0, 0
    while depth >= 0 and nodes < MAX_NODES:
        score = plans.state[depth, 3]
        if depth == centers:
            if score > best:
                best = score
                for c in range(centers):
                    plans.best[c] = plans.chosen[c]
            depth -= 1
            continue
        i = plans.following[depth]
        end = plans.first[depth + 1]
        if i > end or score + PER_CENTER * (centers - depth) <= best:
            depth -= 1
            continue
        plans.following[depth] = i + 1
        ordered, held = plans.state[depth, 0], plans.state[depth, 1]
        moving = plans.state[depth, 2]
        if i < end:
            if plans.ordered[i] & ordered or plans.held[i] & moving:
                continue
            main = np.int64(1) << plans.main[i]
            moves = plans.held[i] == 0
            if moves and main & held:
                continue
            bound = (plans.ordered[i] | plans.held[i]) & ~(ordered | held)
            score += PER_CENTER - _bits(bound)
            ordered |= plans.ordered[i]
            held |= plans.held[i]
            if moves:
                moving |= main
        nodes += 1
        plans.chosen[depth] = i if i < end else NONE
        depth += 1
        plans.state[depth, 0], plans.state[depth, 1] = ordered, held
        plans.state[depth, 2], plans.state[depth, 3] = moving, score
        if depth < centers:
            plans.following[depth] = plans.first[depth]


@jit
def _order_plans(board, table, graph, state, e, values, centers, plans, scratch, orders):
    """Write the orders (E, V) of the units in the chosen plans.

    Rule    of two coasts the one worth more to DumbBot, which then orders the idle units around
            these: it moves to no place taken, and supports what is ordered already
    """
    for c in range(centers):
        i = plans.best[c]
        if i == NONE:
            continue
        v, u = plans.center[c], plans.place[plans.main[i]]
        kind, here = state.unit_kind[e, u], state.unit_location[e, u]
        if u == v:
            scratch.status[u] = dumbbot_moves.HOLDING
            orders[e, u] = table.hold[kind, here]
            continue
        way, best = NONE, 0.0
        for n in range(board.neighbor_count[kind, here]):
            to = board.neighbor[kind, here, n]
            if board.location_province[to] == v:
                worth = values.value[graph.number[kind, to]]
                if way == NONE or worth > best:
                    way, best = n, worth
        scratch.status[u] = dumbbot_moves.MOVING
        scratch.mover[v], scratch.mover_neighbor[v] = u, way
        orders[e, u] = table.first_move[kind, here] + way
    for c in range(centers):
        i = plans.best[c]
        if i == NONE:
            continue
        v, main = plans.center[c], plans.main[i]
        supporters = plans.ordered[i] & ~(np.int64(1) << main)
        unit = 0
        while supporters >> unit:
            if (supporters >> unit) & 1:
                u = plans.place[unit]
                scratch.status[u] = dumbbot_moves.SUPPORTING
                if plans.held[i]:
                    orders[e, u] = dumbbot_moves.support_hold(table, state, e, u, v)
                else:
                    orders[e, u] = dumbbot_moves.support_move(table, state, e, u, v, scratch)
            unit += 1


@jit
def brane_orders(
    board, table, graph, state, decisions, first, last, rules, salt, work, orders, out
):
    """Write the order numbers of decisions first..last-1 to out (S,)."""
    values, scratch, plans = work
    surveyed = NONE
    for d in range(first, last):
        e, p = decisions.game[d], decisions.power[d]
        if not is_movement(state.phase[e]):
            own = values, scratch
            dumbbot_orders(
                board, table, graph, state, decisions, d, d + 1, rules, salt, own, orders, out
            )
            continue
        if e != surveyed:
            survey_game(board, state, e, rules, values)
            _survey_reach(board, state, e, plans)
            surveyed = e
        compute_values(board, graph, state, e, p, rules, values)
        dumbbot_moves.begin_movement(state, e, p, scratch)
        centers = _list_plans(board, state, e, p, values, plans)
        _choose_plans(centers, plans)
        _order_plans(board, table, graph, state, e, values, centers, plans, scratch, orders)
        rng = decision_seed(state, e, p, salt)
        dumbbot_moves.movement_orders(
            board, table, graph, state, e, p, values, scratch, rules, orders, rng
        )
        for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
            out[s] = orders[e, decisions.slot_province[s]]


class Brane(Dumbbot):
    """Makes sure of as many supply centers as it can; what remains is DumbBot's."""

    name = "brane"
    salt = int(Salt.BRANE)
    kernel = staticmethod(brane_orders)

    def _working_arrays(self, games: VectorGame) -> tuple:
        return *super()._working_arrays(games), plan_scratch(games.board)
