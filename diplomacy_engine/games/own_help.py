"""Orders that help: other powers, for nothing where nobody talks; and own units, or in vain."""

import numpy as np

from ..constants import CONVOY, FLEET, HOLD, MOVE, MOVE_VIA, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from ..rules.state import in_movement
from .decisions import Decisions, ragged_rows
from .vector_game import VectorGame


def own_choices(games: VectorGame, decisions: Decisions, helps: bool | np.ndarray) -> Decisions:
    """Return decisions with the orders that a policy chooses from: all if it `helps` others, one
    for all decisions or (D,) bool; else those in which no other power's unit takes part. There the
    armies of a movement decision come before its fleets, which then see whom they can convoy."""
    return possible_choices(games, decisions, helps)[0]


def possible_choices(
    games: VectorGame, decisions: Decisions, helps: bool | np.ndarray
) -> tuple[Decisions, np.ndarray | slice]:
    """Return `own_choices`, and the place (N',) of each of their orders in `decisions`."""
    if np.all(helps):
        return decisions, slice(None)
    helps = np.broadcast_to(helps, decisions.count)
    lengths = np.diff(decisions.order_start)
    row = np.repeat(decisions.slot_decision, lengths)  # (N,) the decision that each order is of
    own = games.state.unit_power[decisions.game] == decisions.power[:, None]  # (D, V)
    alone = _of_own_units(games, decisions, row, own) & _by_own_fleets(games, decisions, row, own)
    kept = helps[row] | alone
    game = decisions.game[decisions.slot_decision]
    late = games.state.unit_kind[game, decisions.slot_province] == FLEET
    late &= in_movement(games.state, game) & ~helps[decisions.slot_decision]
    slots = np.lexsort((late, decisions.slot_decision))
    starts = np.zeros(len(slots) + 1, np.int32)
    np.cumsum(lengths[slots], out=starts[1:])
    found = ragged_rows(decisions.order_start[:-1][slots], starts)
    before = np.zeros(len(found) + 1, np.int32)
    np.cumsum(kept[found], out=before[1:])
    found = found[kept[found]]
    asked = decisions._replace(
        slot_province=decisions.slot_province[slots],
        order_start=before[starts],
        order=decisions.order[found],
    )
    return asked, found


def matched(decisions: Decisions, own: Decisions, numbers: np.ndarray) -> np.ndarray:
    """Return the order numbers (S,) of the slots of `own` in the slots of `decisions`."""
    if own is decisions:
        return numbers
    given, asked = (np.lexsort((d.slot_province, d.slot_decision)) for d in (decisions, own))
    found = np.empty_like(numbers)
    found[given] = numbers[asked]
    return found


def _of_own_units(
    games: VectorGame, decisions: Decisions, row: np.ndarray, own: np.ndarray
) -> np.ndarray:
    own = np.pad(own, ((0, 0), (0, 1)), constant_values=True)  # the last column: no unit is helped
    location = games.table.other_location[decisions.order]
    helped = np.where(location == NONE, NONE, games.board.location_province[location])
    return own[row, helped]


def _by_own_fleets(
    games: VectorGame, decisions: Decisions, row: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """Tell of orders (N,) that are moves by convoy, or convoys, whether own fleets suffice for them
    and no way leads there by land. All others pass."""
    table, board, state = games.table, games.board, games.state
    kind = table.kind[decisions.order]
    passes = np.ones(len(kind), bool)
    asked = np.flatnonzero((kind == MOVE_VIA) | (kind == CONVOY))
    order = decisions.order[asked]
    army = np.where(kind[asked] == CONVOY, table.other_location[order], table.location[order])
    start, goal = board.location_province[army], board.location_province[table.target[order]]
    fleets = own & (state.unit_kind[decisions.game] == FLEET)
    bits = np.uint64(1) << np.maximum(table.sea_index, 0).astype(np.uint64)
    seas = np.where(fleets & (table.sea_index != NONE), bits, 0).sum(1, dtype=np.uint64)
    # All routes that begin where the army stands, one order after the other.
    routes = table.route_first[start + 1] - table.route_first[start]
    ends = np.zeros(len(asked) + 1, np.int32)
    np.cumsum(routes, out=ends[1:])
    route = ragged_rows(table.route_first[start], ends)
    of = np.repeat(np.arange(len(asked)), routes)
    leads = table.route_goal[route] == goal[of]
    leads &= (table.route_seas[route] & ~seas[row[asked][of]]) == 0
    passes[asked] = np.bincount(of[leads], minlength=len(asked)) > 0
    passes[asked] &= ~board.reach[0, board.province_location[start], goal].astype(bool)
    return passes


def fitting(
    games: VectorGame, given: np.ndarray, row: np.ndarray, orders: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the provinces of the units that `orders` (n,) are about, and whether the orders fit. A
    support or convoy fits what its unit was `given` (rows, V), in `row` (n,); a move fits if the
    unit that stands where it goes leaves. Of other orders nothing is said."""
    province, kinds = games.board.location_province, games.table.kind
    kind, goal = kinds[orders], province[games.table.target[orders]]
    moves = (kind == MOVE) | (kind == MOVE_VIA)
    about = np.where(moves, goal, province[games.table.other_location[orders]])
    there = given[row, about]
    leaves = (kinds[there] == MOVE) | (kinds[there] == MOVE_VIA)
    goes = leaves & (province[games.table.target[there]] == goal)
    return about, np.select([moves, kind == SUPPORT_HOLD], [leaves, ~leaves], goes)


def mended(games: VectorGame, decisions: Decisions, numbers: np.ndarray) -> np.ndarray:
    """Return orders (S,) without those that cannot help, as `fitting` tells of own units. In the
    place of a move against an own unit that stays, or of help that does not fit, comes a support of
    what that unit does, or a hold."""
    numbers, kinds = numbers.copy(), games.table.kind
    row = decisions.slot_decision
    slot = np.repeat(np.arange(len(numbers)), np.diff(decisions.order_start))
    while True:
        given = decisions.by_province(numbers, len(games.board.terrain))
        about, fits = fitting(games, given, row, numbers)
        concerns = np.isin(kinds[numbers], (MOVE, MOVE_VIA, SUPPORT_HOLD, SUPPORT_MOVE, CONVOY))
        vain = concerns & ~fits & (given[row, about] != NONE)
        n = np.flatnonzero(vain[slot])
        of, order = slot[n], decisions.order[n]
        helped, fits = fitting(games, given, row[of], order)
        helps = np.isin(kinds[order], (SUPPORT_HOLD, SUPPORT_MOVE)) & fits & (helped == about[of])
        before = numbers.copy()
        for better in (kinds[order] == HOLD, helps):
            numbers[of[better]] = order[better]
        if np.array_equal(numbers, before):
            return numbers
