"""Filters: orders that aid other powers, and orders that cannot succeed."""

import numpy as np

from .._jit import jit
from ..constants import ARMY, CONVOY, FLEET, HOLD, MOVE, MOVE_VIA, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from ..rules.state import in_movement
from .decisions import Decisions, ragged_rows, row_edges
from .vector_game import VectorGame


def own_choices(games: VectorGame, decisions: Decisions, helps: bool | np.ndarray) -> Decisions:
    """Return decisions with only the orders that a policy chooses from.

    With `helps` (one bool for all decisions, or (D,)) these are all orders; else those without
    another power's unit. Then the armies of a movement decision come before its fleets, which see
    the armies' orders and so which army to convoy.
    """
    if np.all(helps):
        return decisions
    helps = np.broadcast_to(helps, decisions.count)
    lengths = np.diff(decisions.order_start)
    row = np.repeat(decisions.slot_decision, lengths)  # (N,) the decision that each order is of
    own = games.state.unit_power[decisions.game] == decisions.power[:, None]  # (D, V)
    own_only = np.empty(len(row), bool)
    unit_kind = games.state.unit_kind[decisions.game]
    _find_own_only(games.board, games.table, decisions, own, unit_kind, own_only)
    allowed = helps[row] | own_only
    game = decisions.game[decisions.slot_decision]
    late = games.state.unit_kind[game, decisions.slot_province] == FLEET
    late &= in_movement(games.state, game) & ~helps[decisions.slot_decision]
    slots = np.lexsort((late, decisions.slot_decision))
    starts = row_edges(lengths[slots])
    order_rows = ragged_rows(decisions.order_start[:-1][slots], starts)
    before = row_edges(allowed[order_rows])
    order_rows = order_rows[allowed[order_rows]]
    return decisions._replace(
        slot_province=decisions.slot_province[slots],
        order_start=before[starts],
        order=decisions.order[order_rows],
    )


@jit
def _own_seas(table, own, unit_kind):
    seas = np.uint64(0)
    for v in range(own.shape[0]):
        if own[v] and unit_kind[v] == FLEET and table.sea_index[v] != NONE:
            seas |= np.uint64(1) << np.uint64(table.sea_index[v])
    return seas


@jit
def _leads(table, start, goal, seas):
    """Whether fleets in these seas can convoy from a province to another."""
    for route in range(table.route_first[start], table.route_first[start + 1]):
        if table.route_goal[route] == goal and table.route_seas[route] & ~seas == 0:
            return True
    return False


@jit
def _find_own_only(board, table, decisions, own, unit_kind, own_only):
    """Write to own_only (N,) which orders no other power's unit takes part in; `own`, `unit_kind`
    (D, V). Moves by convoy and convoys need own fleets that suffice, and no way by land."""
    for d in range(own.shape[0]):
        seas = _own_seas(table, own[d], unit_kind[d])
        slots = decisions.slot_start[d], decisions.slot_start[d + 1]
        for n in range(decisions.order_start[slots[0]], decisions.order_start[slots[1]]):
            order = decisions.order[n]
            kind, other = table.kind[order], table.other_location[order]
            own_only[n] = other == NONE or own[d, board.location_province[other]]
            if own_only[n] and kind in (MOVE_VIA, CONVOY):
                army = table.location[order] if other == NONE else other
                start = board.location_province[army]
                goal = board.location_province[table.target[order]]
                by_land = board.reach[ARMY, board.province_location[start], goal]
                own_only[n] = not by_land and _leads(table, start, goal, seas)


def fitting(
    games: VectorGame, unit_orders: np.ndarray, row: np.ndarray, orders: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the provinces of the units that `orders` (n,) are about, and whether the orders fit.

    `unit_orders` (rows, V) are the orders of all units, and `row` (n,) says in which row of these
    each order belongs. A support or convoy fits if its unit does what it supports; a move fits if
    the unit that stands where it goes leaves. Of other orders the result means nothing.
    """
    province, kinds = games.board.location_province, games.table.kind
    kind, goal = kinds[orders], province[games.table.target[orders]]
    moves = (kind == MOVE) | (kind == MOVE_VIA)
    about = np.where(moves, goal, province[games.table.other_location[orders]])
    there = unit_orders[row, about]
    leaves = (kinds[there] == MOVE) | (kinds[there] == MOVE_VIA)
    goes = leaves & (province[games.table.target[there]] == goal)
    return about, np.select([moves, kind == SUPPORT_HOLD], [leaves, ~leaves], goes)


def mended(games: VectorGame, decisions: Decisions, numbers: np.ndarray) -> np.ndarray:
    """Return orders (S,) with those replaced that `fitting` says cannot succeed.

    A move against an own unit that stays, and a support or convoy of an own unit that does
    something else, become a support of what that unit does, or a hold. So does a move by convoy
    for which no own fleets convoy.
    """
    numbers, kinds = numbers.copy(), games.table.kind
    row = decisions.slot_decision
    slot = decisions.order_slot
    while True:
        unit_orders = decisions.by_province(numbers, len(games.board.terrain))
        about, fits = fitting(games, unit_orders, row, numbers)
        concerns = np.isin(kinds[numbers], (MOVE, MOVE_VIA, SUPPORT_HOLD, SUPPORT_MOVE, CONVOY))
        futile = concerns & ~fits & (unit_orders[row, about] != NONE)
        for s in np.flatnonzero(kinds[numbers] == MOVE_VIA):
            futile[s] |= not _convoyed(games, numbers[s], unit_orders[row[s]])
        n = np.flatnonzero(futile[slot])
        of, order = slot[n], decisions.order[n]
        helped, fits = fitting(games, unit_orders, row[of], order)
        helps = np.isin(kinds[order], (SUPPORT_HOLD, SUPPORT_MOVE)) & fits & (helped == about[of])
        before = numbers.copy()
        for better in (kinds[order] == HOLD, helps):
            numbers[of[better]] = order[better]
        if np.array_equal(numbers, before):
            return numbers


def _convoyed(games: VectorGame, move: int, unit_orders: np.ndarray) -> bool:
    """Whether the convoys among a power's orders (V,) make a way for a move."""
    table, province = games.table, games.board.location_province
    start, goal = province[table.location[move]], province[table.target[move]]
    convoys = unit_orders[unit_orders != NONE]
    convoys = convoys[table.kind[convoys] == CONVOY]
    convoys = convoys[
        (province[table.other_location[convoys]] == start)
        & (province[table.target[convoys]] == goal)
    ]
    indices = table.sea_index[province[table.location[convoys]]].astype(np.uint64)
    seas = np.bitwise_or.reduce(np.uint64(1) << indices, initial=np.uint64(0))
    return games.call(_leads, table, int(start), int(goal), seas)
