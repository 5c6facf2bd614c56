"""Joint orders in which one unit does something else than the player would have it do."""

import numpy as np

from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from .draws import PlayerDraws


def vary(decisions: Decisions, rows: np.ndarray, seeds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Choose any unit of each decision in `rows` and any legal order of that unit.

    Args:
        decisions: of movement phases.
        rows: (n,) integers.
        seeds: (n,) uint64, which decide the choice.

    Returns:
        (n,) the slots and (n,) int32 the order numbers.
    """
    first, ends = decisions.slot_start[rows], decisions.slot_start[rows + 1]
    slot = first + (seeds >> np.uint64(40)).astype(np.int64) % (ends - first)
    begin, end = decisions.order_start[slot], decisions.order_start[slot + 1]
    chosen = begin + (seeds & np.uint64(0xFFFFFF)).astype(np.int64) % (end - begin)
    return slot, decisions.order[chosen]


class VariedDraws(PlayerDraws):
    """Draws of a player, of which the second half have another order for one unit."""

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Draws`."""
        count = seeds.shape[1]
        plain = (count + 1) // 2
        orders, _ = super().draw(games, decisions, seeds[:, :plain])
        varied = orders[:, : count - plain].copy()
        row = np.repeat(np.arange(decisions.count), count - plain)
        slot, order = vary(decisions, row, seeds[:, plain:].reshape(-1))
        column = np.tile(np.arange(count - plain), decisions.count)
        varied[row, column, decisions.slot_province[slot]] = order
        return np.concatenate([orders, varied], 1), np.zeros((decisions.count, count), np.float32)
