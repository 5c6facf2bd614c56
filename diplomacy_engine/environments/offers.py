"""Offers as numbers: a move of one's own for one of another power's.

An offer is five numbers: the province of a unit of one's own and its goal, the other power, the
province of a unit of that power and its goal. To stay is to hold.
"""

import numpy as np

from ..constants import HOLD, MOVE, MOVE_VIA, NONE
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..press.daide import ClauseRow
from ..press.deals import Clause, Side


def offer_sizes(games: VectorGame) -> list[int]:
    """Return how many values each number of an offer has."""
    provinces, powers = len(games.board.terrain), games.num_powers
    return [provinces, provinces, powers, provinces, provinces]


def offer_masks(games: VectorGame, decisions: Decisions, power: int) -> np.ndarray:
    """Return which values of each number are in a valid offer of a power, (sum of sizes,) int8.

    `decisions` are all of game 0, with all legal orders. An offer of such values may still be not
    valid: the unit that is named may not reach the goal that is named.
    """
    slot = decisions.order_slot
    owner, origin = decisions.power[decisions.slot_decision[slot]], decisions.slot_province[slot]
    goal = goals(games, origin, decisions.order)
    moves = np.isin(games.table.kind[decisions.order], (HOLD, MOVE, MOVE_VIA))
    own, others = moves & (owner == power), moves & (owner != power)
    named = (origin[own], goal[own], owner[others], origin[others], goal[others])
    masks = [np.zeros(size, np.int8) for size in offer_sizes(games)]
    for mask, values in zip(masks, named):
        mask[values] = 1
    return np.concatenate(masks)


def goals(games: VectorGame, origin: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return where units in provinces `origin` (n,) are after their moves or holds `order` (n,)."""
    target = games.board.location_province[games.table.target[order]]
    return np.where(games.table.kind[order] == HOLD, origin, target)


def clauses_to_offer(
    games: VectorGame, decisions: Decisions, power: int, offer: list[int]
) -> list[ClauseRow] | None:
    """Return the clauses of an offer of a power in game 0; None if it is not valid: the other power
    is itself or not alive, a unit is not that power's, or cannot reach the goal."""
    origin, goal, other, its_origin, its_goal = offer
    alive = games.outcomes().alive[0]
    own = _move(games, decisions, power, origin, goal)
    its = _move(games, decisions, other, its_origin, its_goal)
    if other == power or not alive[other] or NONE in (own, its):
        return None
    return [
        (Clause.ORDER, Side.SENDER, origin, own),
        (Clause.ORDER, Side.RECEIVER, its_origin, its),
    ]


def _move(games: VectorGame, decisions: Decisions, power: int, origin: int, goal: int) -> int:
    """Return a power's legal order that moves its unit so, or lets it hold; NONE without one. By
    land or sea rather than by convoy, and to the first coast where there are several."""
    if games.state.unit_power[0, origin] != power:
        return NONE
    slot = int(np.flatnonzero(decisions.slot_province == origin)[0])
    orders = decisions.order[decisions.order_start[slot] : decisions.order_start[slot + 1]]
    kinds = games.table.kind[orders]
    if origin == goal:
        return int(orders[kinds == HOLD][0])
    goes = games.board.location_province[games.table.target[orders]] == goal
    for kind in (MOVE, MOVE_VIA):
        if (candidates := orders[goes & (kinds == kind)]).size:
            return int(candidates[0])
    return NONE
