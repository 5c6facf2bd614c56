"""Legal orders of every unit and adjustment: the exact lists from which players choose.

`list_game` writes the pending decisions of one game, in the layout of `vector_game.Decisions`.
Movement lists hold exactly the orders that can take effect given the units on the board: an army
is convoyed only over fleets that are there, a fleet convoys only on a route that needs it, and a
fleet that every route needs does not support the move it must convoy.
"""

from typing import NamedTuple

import numpy as np

from ._jit import jit
from .constants import ARMY, FLEET, NONE
from .map import Board
from .orders import OrderTable
from .state import adjustments_owed, is_movement, is_open_home, is_retreat


class LegalScratch(NamedTuple):
    """Room for one thread to list the orders of one game at a time."""

    attack_count: np.ndarray  # (V,) int32, entries in the row of attack_arc
    attack_arc: np.ndarray  # (V, most) int32, arcs by which a unit on the board can move into v
    attack_from: np.ndarray  # (V, most) int16, province of the mover
    attack_needs: np.ndarray  # (V, most) uint64, seas without which that move is impossible
    pair_count: np.ndarray  # (1,) int32, convoyable moves found
    pair_from: np.ndarray  # (pairs,) int16, army's province
    pair_to: np.ndarray  # (pairs,) int16, destination
    pair_seas: np.ndarray  # (pairs,) uint64, fleets that lie on some route


def legal_scratch(board: Board, table: OrderTable) -> LegalScratch:
    """Return fresh scratch for one thread."""
    provinces = len(board.terrain)
    goals = board.location_province[board.neighbor[board.neighbor != NONE]]
    into = np.bincount(goals, minlength=provinces) + (table.army_arc != NONE).sum(axis=0)
    most = max(1, int(into.max()))
    pairs = max(1, int((table.via != NONE).sum()))
    return LegalScratch(
        attack_count=np.zeros(provinces, np.int32),
        attack_arc=np.zeros((provinces, most), np.int32),
        attack_from=np.zeros((provinces, most), np.int16),
        attack_needs=np.zeros((provinces, most), np.uint64),
        pair_count=np.zeros(1, np.int32),
        pair_from=np.zeros(pairs, np.int16),
        pair_to=np.zeros(pairs, np.int16),
        pair_seas=np.zeros(pairs, np.uint64),
    )


@jit
def _add_attack(scratch, goal, arc, origin, needs):
    n = scratch.attack_count[goal]
    scratch.attack_arc[goal, n] = arc
    scratch.attack_from[goal, n] = origin
    scratch.attack_needs[goal, n] = needs
    scratch.attack_count[goal] = n + 1


@jit
def prepare_movement(board, table, state, e, scratch):
    """Find every move a unit of game e could make, by land, sea or convoy.

    Reads   state.unit_* of game e
    Writes  scratch
    Rule    rulebook, movement and convoys: an army moves over a chain of fleets in sea provinces
    """
    provinces = board.terrain.shape[0]
    fleets = np.uint64(0)
    for v in range(provinces):
        scratch.attack_count[v] = 0
        if state.unit_kind[e, v] == FLEET and table.sea_index[v] != NONE:
            fleets |= np.uint64(1) << np.uint64(table.sea_index[v])
    for v in range(provinces):
        if state.unit_power[e, v] == NONE:
            continue
        kind, here = state.unit_kind[e, v], state.unit_location[e, v]
        for i in range(board.neighbor_count[kind, here]):
            goal = board.location_province[board.neighbor[kind, here, i]]
            _add_attack(scratch, goal, table.move_arc[kind, here, i], v, np.uint64(0))
    pairs = 0
    if fleets != 0:
        for v in range(provinces):
            if state.unit_kind[e, v] != ARMY:
                continue
            previous = NONE
            shared = np.uint64(0)
            for r in range(table.route_first[v], table.route_first[v + 1]):
                seas = table.route_seas[r]
                if seas & fleets != seas:
                    continue
                goal = table.route_goal[r]
                if goal == previous:
                    scratch.pair_seas[pairs - 1] |= seas
                    shared &= seas
                else:
                    scratch.pair_from[pairs] = v
                    scratch.pair_to[pairs] = goal
                    scratch.pair_seas[pairs] = seas
                    shared = seas
                    pairs += 1
                if board.reach[ARMY, board.province_location[v], goal]:
                    previous = goal
                    continue
                if goal == previous:
                    scratch.attack_needs[goal, scratch.attack_count[goal] - 1] = shared
                else:
                    _add_attack(scratch, goal, table.army_arc[v, goal], v, shared)
                previous = goal
    scratch.pair_count[0] = pairs


@jit
def unit_movement_orders(board, table, state, e, v, scratch, buffer, n):
    """Write the legal movement orders of the unit in province v to buffer[n:]; return the new n.

    Reads   state.unit_* of game e, scratch as left by `prepare_movement`
    Rule    design of the lists: hold, moves, convoyed moves, supports, convoys
    """
    kind, here = state.unit_kind[e, v], state.unit_location[e, v]
    buffer[n] = table.hold[kind, here]
    n += 1
    first = table.first_move[kind, here]
    for i in range(board.neighbor_count[kind, here]):
        buffer[n] = first + i
        n += 1
    pairs = scratch.pair_count[0]
    own_sea = np.uint64(0)
    if kind == ARMY:
        for p in range(pairs):
            if scratch.pair_from[p] == v:
                buffer[n] = table.via[v, scratch.pair_to[p]]
                n += 1
    elif table.sea_index[v] != NONE:
        own_sea = np.uint64(1) << np.uint64(table.sea_index[v])
    for slot in range(table.support_count[kind, here]):
        goal = table.support_province[kind, here, slot]
        if state.unit_power[e, goal] != NONE:
            rank = table.node_rank[state.unit_kind[e, goal], state.unit_location[e, goal]]
            buffer[n] = table.first_support_hold[kind, here, slot] + rank
            n += 1
    for slot in range(table.support_count[kind, here]):
        goal = table.support_province[kind, here, slot]
        first = table.first_support_move[kind, here, slot] - table.arc_first[goal]
        skip = table.own_arcs[kind, here, slot]
        for i in range(scratch.attack_count[goal]):
            origin = scratch.attack_from[goal, i]
            if origin == v or scratch.attack_needs[goal, i] & own_sea != 0:
                continue
            number = first + scratch.attack_arc[goal, i]
            if origin > v:
                number -= skip
            buffer[n] = number
            n += 1
    if own_sea != 0:
        sea = table.sea_index[v]
        for p in range(pairs):
            if scratch.pair_seas[p] & own_sea != 0:
                origin = table.coast_index[scratch.pair_from[p]]
                buffer[n] = table.convoy[sea, origin, table.coast_index[scratch.pair_to[p]]]
                n += 1
    return n


@jit
def unit_retreat_orders(board, table, state, e, v, buffer, n):
    """Write the legal retreat orders of the dislodged unit of province v; return the new n.

    Reads   state.dislodged_*, state.retreat_options of game e
    """
    kind, here = state.dislodged_kind[e, v], state.dislodged_location[e, v]
    for i in range(board.neighbor_count[kind, here]):
        if (state.retreat_options[e, v] >> np.uint32(i)) & np.uint32(1):
            buffer[n] = table.first_retreat[kind, here] + i
            n += 1
    buffer[n] = table.disband[kind, here]
    return n + 1


@jit
def build_orders(board, table, state, e, v, buffer, n):
    """Write every build possible in the open home center v (each kind and coast); return the new n.

    Rule    rulebook, builds: an army on land, a fleet on a coast; a split coast must be named
    """
    for here in range(board.location_province.shape[0]):
        if board.location_province[here] == v:
            for kind in (ARMY, FLEET):
                if board.can_stand[kind, here]:
                    buffer[n] = table.build[kind, here]
                    n += 1
    return n


@jit
def _adjustment_list(board, table, state, e, power, builds, buffer, n):
    for v in range(board.terrain.shape[0]):
        if builds:
            if is_open_home(board, state, e, power, v):
                n = build_orders(board, table, state, e, v, buffer, n)
        elif state.unit_power[e, v] == power:
            buffer[n] = table.disband[state.unit_kind[e, v], state.unit_location[e, v]]
            n += 1
    if builds:
        buffer[n] = table.waive
        n += 1
    return n


@jit
def list_game(board, table, state, e, scratch, rows, counts, buffers):
    """Append the pending decisions of game e; return False if a buffer could overflow.

    Reads   row e of state
    Writes  counts (3,) int64: decisions, slots and orders written so far, and `buffers`, the arrays
            (game, power, slot_start, slot_province, order_start, order) of a Decisions
    Rule    a power has a decision if it has a unit to order, a retreat or an adjustment to make;
            `rows` is the most orders one unit or adjustment can have
    """
    game, power_of, slot_start, slot_province, order_start, order = buffers
    provinces = board.terrain.shape[0]
    if (
        counts[0] + board.num_powers >= game.shape[0]
        or counts[1] + 2 * provinces >= slot_province.shape[0]
        or counts[2] + rows * 2 * provinces >= order.shape[0]
    ):
        return False
    phase = state.phase[e]
    moving, retreating = is_movement(phase), is_retreat(phase)
    if moving:
        prepare_movement(board, table, state, e, scratch)
    d, s, n = counts[0], counts[1], counts[2]
    for power in range(board.num_powers):
        first_slot = s
        if moving or retreating:
            units = state.unit_power if moving else state.dislodged_power
            for v in range(provinces):
                if units[e, v] != power:
                    continue
                slot_province[s] = v
                order_start[s] = n
                s += 1
                if moving:
                    n = unit_movement_orders(board, table, state, e, v, scratch, order, n)
                else:
                    n = unit_retreat_orders(board, table, state, e, v, order, n)
        else:
            owed = adjustments_owed(board, state, e, power)
            for _ in range(abs(owed)):
                slot_province[s] = NONE
                order_start[s] = n
                s += 1
                n = _adjustment_list(board, table, state, e, power, owed > 0, order, n)
        if s > first_slot:
            game[d] = e
            power_of[d] = power
            slot_start[d] = first_slot
            d += 1
    counts[0], counts[1], counts[2] = d, s, n
    return True
