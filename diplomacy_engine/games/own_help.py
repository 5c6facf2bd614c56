"""Legal orders without those that help other powers, which come to nothing where nobody talks."""

import numpy as np

from ..constants import NONE
from .decisions import Decisions
from .vector_game import VectorGame


def helps_nobody_else(games: VectorGame, decisions: Decisions) -> np.ndarray:
    """Tell which of the N orders support or convoy no other power's unit, (N,) bool."""
    own = games.state.unit_power[decisions.game] == decisions.power[:, None]
    own = np.pad(own, ((0, 0), (0, 1)), constant_values=True)  # the last column: no unit is helped
    location = games.table.other_location[decisions.order]
    helped = np.where(location == NONE, NONE, games.board.location_province[location])
    ends = decisions.order_start[decisions.slot_start]
    return own[np.repeat(np.arange(decisions.count), np.diff(ends)), helped]


def only_orders(decisions: Decisions, kept: np.ndarray) -> Decisions:
    """Return the decisions with those of their orders that are `kept` (N,) bool."""
    before = np.zeros(len(kept) + 1, np.int32)
    np.cumsum(kept, out=before[1:])
    order_start = before[decisions.order_start]
    return decisions._replace(order_start=order_start, order=decisions.order[kept])
