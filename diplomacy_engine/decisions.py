"""`Decisions`: what is to be decided in many games, as arrays; choosing from them, joining them."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ._jit import jit, jit_allocating

PART = 1 << 15  # parts of fewer orders are not worth a thread when they are joined


@jit_allocating
def ragged_rows(starts, ends):
    """Return the indices starts[i], starts[i] + 1, ... of every row i, one row after the other.

    `ends` (rows + 1,) is the running total of the row lengths, beginning with 0.
    """
    out = np.empty(ends[-1], np.int32)
    for i in range(starts.shape[0]):
        for j in range(ends[i + 1] - ends[i]):
            out[ends[i] + j] = starts[i] + j
    return out


class Decisions(NamedTuple):
    """Pending decisions, by game and then power, with their slots and legal orders.

    A movement or retreat decision has one slot per unit, in province order. A winter decision has
    one slot per owed build or removal; each lists all of them, and a province may be chosen in one
    slot only (WAIVE in any).
    """

    game: np.ndarray  # (D,) int32
    power: np.ndarray  # (D,) int8
    slot_start: np.ndarray  # (D + 1,) int32, slots of decision d: slot_start[d]..slot_start[d+1]-1
    slot_province: np.ndarray  # (S,) int16, the unit's province; NONE in winter
    order_start: np.ndarray  # (S + 1,) int32, legal orders of slot s: order_start[s]..
    order: np.ndarray  # (N,) int32, order numbers

    def __len__(self) -> int:
        return len(self.game)

    def take(self, rows: np.ndarray) -> "Decisions":
        """Return the decisions of the given rows (integers or a mask), in that order."""
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        slots = self.slot_start[rows + 1] - self.slot_start[rows]
        slot_start = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(slots, out=slot_start[1:])
        slot_rows = ragged_rows(self.slot_start[rows], slot_start)
        orders = self.order_start[slot_rows + 1] - self.order_start[slot_rows]
        order_start = np.zeros(len(slot_rows) + 1, np.int32)
        np.cumsum(orders, out=order_start[1:])
        return Decisions(
            self.game[rows],
            self.power[rows],
            slot_start,
            self.slot_province[slot_rows],
            order_start,
            self.order[ragged_rows(self.order_start[slot_rows], order_start)],
        )


@jit
def _place(part, out, decisions, slots, orders):
    """Copy a part into `out`, where its decisions, slots and orders begin at these places."""
    game, power, slot_start, slot_province, order_start, order = part
    for i in range(game.shape[0]):
        out[0][decisions + i] = game[i]
        out[1][decisions + i] = power[i]
        out[2][decisions + i] = slot_start[i] + slots
    for i in range(slot_province.shape[0]):
        out[3][slots + i] = slot_province[i]
        out[4][slots + i] = order_start[i] + orders
    for i in range(order.shape[0]):
        out[5][orders + i] = order[i]


def join_decisions(
    parts: Sequence[Decisions], thread_map: Callable[..., Iterable] = map
) -> Decisions:
    """Return all decisions of `parts`, one part after the other; large ones by `thread_map`."""
    sizes = [(len(part.game), len(part.slot_province), len(part.order)) for part in parts]
    starts = np.cumsum([(0, 0, 0), *sizes], axis=0)
    decisions, slots, orders = starts[-1]
    joined = Decisions(
        np.empty(decisions, np.int32),
        np.empty(decisions, np.int8),
        np.empty(decisions + 1, np.int32),
        np.empty(slots, np.int16),
        np.empty(slots + 1, np.int32),
        np.empty(orders, np.int32),
    )
    joined.slot_start[-1], joined.order_start[-1] = slots, orders

    def place(i: int) -> None:
        _place(tuple(parts[i]), tuple(joined), *starts[i])

    in_threads = orders >= PART * len(parts)
    for _ in (thread_map if in_threads else map)(place, range(len(parts))):
        pass  # an exception of a thread comes up here
    return joined
