"""Orders that help: other powers, for nothing where nobody talks; and own units, or in vain."""

import numpy as np

from ..constants import CONVOY, HOLD, MOVE, MOVE_VIA, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from .decisions import Decisions
from .vector_game import VectorGame


def possible_choices(
    games: VectorGame, decisions: Decisions, helps: bool | np.ndarray
) -> np.ndarray:
    """Tell which of N legal orders a policy chooses from, (N,) bool. Those are all if it `helps`
    others, one for all decisions or (D,); else those that support and convoy no unit but the
    power's own."""
    own = games.state.unit_power[decisions.game] == decisions.power[:, None]
    own |= np.reshape(helps, (-1, 1))
    own = np.pad(own, ((0, 0), (0, 1)), constant_values=True)  # the last column: no unit is helped
    location = games.table.other_location[decisions.order]
    helped = np.where(location == NONE, NONE, games.board.location_province[location])
    ends = decisions.order_start[decisions.slot_start]
    return own[np.repeat(np.arange(decisions.count), np.diff(ends)), helped]


def own_choices(games: VectorGame, decisions: Decisions, helps: bool | np.ndarray) -> Decisions:
    """Return decisions with the orders that a policy chooses from: all if it `helps` others, one
    for all decisions or (D,) bool; else those that support and convoy no unit but its power's."""
    if np.all(helps):
        return decisions
    kept = possible_choices(games, decisions, helps)
    before = np.zeros(len(kept) + 1, np.int32)
    np.cumsum(kept, out=before[1:])
    order_start = before[decisions.order_start]
    return decisions._replace(order_start=order_start, order=decisions.order[kept])


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
