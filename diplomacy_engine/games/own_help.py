"""Legal orders without help for other powers, which comes to nothing where nobody talks."""

import numpy as np

from ..constants import NONE
from .decisions import Decisions
from .vector_game import VectorGame


def possible_choices(
    games: VectorGame, decisions: Decisions, helps: bool | np.ndarray
) -> np.ndarray:
    """Tell which of N legal orders a policy chooses from, (N,) bool.

    Those are all if it `helps` others, one for all decisions or (D,); else those that support and
    convoy no unit but the power's own.
    """
    own = games.state.unit_power[decisions.game] == decisions.power[:, None]
    own |= np.reshape(helps, (-1, 1))
    own = np.pad(own, ((0, 0), (0, 1)), constant_values=True)  # the last column: no unit is helped
    location = games.table.other_location[decisions.order]
    helped = np.where(location == NONE, NONE, games.board.location_province[location])
    ends = decisions.order_start[decisions.slot_start]
    return own[np.repeat(np.arange(decisions.count), np.diff(ends)), helped]


def choices(games: VectorGame, decisions: Decisions, helps: bool | np.ndarray) -> Decisions:
    """Return decisions with the orders that a policy chooses from; see `possible_choices`."""
    if np.all(helps):
        return decisions
    kept = possible_choices(games, decisions, helps)
    before = np.zeros(len(kept) + 1, np.int32)
    np.cumsum(kept, out=before[1:])
    order_start = before[decisions.order_start]
    return decisions._replace(order_start=order_start, order=decisions.order[kept])
