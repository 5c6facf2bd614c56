"""What the units of a game may order, and which of these orders help another unit."""

import numpy as np

from ...constants import SUPPORT_HOLD, SUPPORT_MOVE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...press.deals import Clause, Side
from ...rules.vocabulary import OrderTable


def is_support(table: OrderTable, support: np.ndarray, move: np.ndarray) -> np.ndarray:
    """Return whether orders support moves, bool; of their numbers one or both may be an array."""
    return (
        (table.kind[support] == SUPPORT_MOVE)
        & (table.target[support] == table.target[move])
        & (table.other_location[support] == table.location[move])
        & (table.other_kind[support] == table.unit_kind[move])
    )


def promise(side: Side, province: int, order: int) -> tuple[int, int, int, int]:
    """Return the clause by which a side promises an order of its unit in a province."""
    return Clause.ORDER, side, province, order


class Options:
    """The legal orders of one game in a movement phase.

    Args:
        games: the games.
        decisions: all pending decisions of this game at least, with all legal orders.
        game: row of the game.

    Attributes:
        orders: province -> order numbers (any,) int32 of the unit there, by power and province.
        unit_power: (V,) int8, as in GameState.
    """

    def __init__(self, games: VectorGame, decisions: Decisions, game: int):
        self.board, self.table = games.board, games.table
        self.unit_power = games.state.unit_power[game]
        first, last = np.searchsorted(decisions.game, [game, game + 1])
        starts = decisions.order_start
        self.orders = {
            int(decisions.slot_province[s]): decisions.order[starts[s] : starts[s + 1]]
            for s in range(decisions.slot_start[first], decisions.slot_start[last])
        }

    def units(self, power: int) -> list[int]:
        """Return the provinces of a power's units, in rising order."""
        return [v for v in self.orders if self.unit_power[v] == power]

    def of_kind(self, province: int, kind: int) -> np.ndarray:
        """Return the orders (any,) of a kind that the unit in a province may give, if any is."""
        orders = self.orders.get(province, np.zeros(0, np.int32))
        return orders[self.table.kind[orders] == kind]

    def helped(self, supports: np.ndarray) -> np.ndarray:
        """Return the provinces of the units that orders support."""
        return self.board.location_province[self.table.other_location[supports]]

    def holds(self, province: int, other: int) -> np.ndarray:
        """Return the orders by which the unit in a province supports one in another to hold."""
        supports = self.of_kind(province, SUPPORT_HOLD)
        return supports[self.helped(supports) == other]
