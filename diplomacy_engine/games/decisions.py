"""`Decisions`: the pending decisions of many games as ragged arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._jit import jit_allocating
from .._suggest import array_shapes
from ..constants import NONE


@jit_allocating
def ragged_rows(starts, ends):
    """Return the indices of n ragged rows, joined: starts[i], starts[i] + 1, ... of row i.

    `ends` (n + 1,) is the cumulative sum of the row lengths, beginning with 0.
    """
    out = np.empty(ends[-1], np.int32)
    for i in range(starts.shape[0]):
        for j in range(ends[i + 1] - ends[i]):
            out[ends[i] + j] = starts[i] + j
    return out


def row_edges(lengths: np.ndarray) -> np.ndarray:
    """Return where ragged rows of these lengths begin and end, (n + 1,) int32 from 0 on."""
    edges = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=edges[1:])
    return edges


class Decisions(NamedTuple):
    """Pending decisions, sorted by game and power, with their slots and legal orders.

    A movement or retreat decision has one slot per unit, in province order. A winter decision has
    one slot per owed build or removal, all with the same orders; a province may be chosen in one
    slot only (WAIVE in any).
    """

    game: np.ndarray  # (D,) int32
    power: np.ndarray  # (D,) int8
    slot_start: np.ndarray  # (D + 1,) int32, slots of decision d: slot_start[d]..slot_start[d+1]-1
    slot_province: np.ndarray  # (S,) int16, the unit's province; NONE in winter
    order_start: np.ndarray  # (S + 1,) int32, of slot s: order_start[s]..order_start[s+1]-1
    order: np.ndarray  # (N,) int32, order numbers

    def __repr__(self) -> str:
        return array_shapes(self)

    @property
    def count(self) -> int:  # type: ignore[override]  # of a tuple nobody wants it
        """D, the number of decisions."""
        return len(self.game)

    @property
    def slot_decision(self) -> np.ndarray:
        """(S,) int64, the decision to which each slot belongs."""
        return np.repeat(np.arange(self.count), np.diff(self.slot_start))

    @property
    def order_slot(self) -> np.ndarray:
        """(N,) int64, the slot to which each order belongs."""
        return np.repeat(np.arange(len(self.slot_province)), np.diff(self.order_start))

    def take(self, rows: np.ndarray) -> "Decisions":
        """Return the decisions of the given rows (integers or a mask), in that order."""
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        slot_start = row_edges(self.slot_start[rows + 1] - self.slot_start[rows])
        slot_rows = ragged_rows(self.slot_start[rows], slot_start)
        order_start = row_edges(self.order_start[slot_rows + 1] - self.order_start[slot_rows])
        return Decisions(
            self.game[rows],
            self.power[rows],
            slot_start,
            self.slot_province[slot_rows],
            order_start,
            self.order[ragged_rows(self.order_start[slot_rows], order_start)],
        )

    def by_province(self, numbers: np.ndarray, num_provinces: int) -> np.ndarray:
        """Return movement orders (S,) by province, (D, V) int32, NONE elsewhere."""
        orders = np.full((self.count, num_provinces), NONE, np.int32)
        orders[self.slot_decision, self.slot_province] = numbers
        return orders

    def part(self, first: int, last: int) -> "Decisions":
        """Return decisions first..last-1, as views where possible."""
        slots = slice(self.slot_start[first], self.slot_start[last])
        orders = slice(self.order_start[slots.start], self.order_start[slots.stop])
        return Decisions(
            self.game[first:last],
            self.power[first:last],
            self.slot_start[first : last + 1] - np.int32(slots.start),
            self.slot_province[slots],
            self.order_start[slots.start : slots.stop + 1] - np.int32(orders.start),
            self.order[orders],
        )


def empty_decisions(decisions: int, slots: int, orders: int) -> Decisions:
    """Return uninitialized arrays for so many decisions, slots and legal orders."""
    kinds = np.int32, np.int8, np.int32, np.int16, np.int32, np.int32
    return Decisions(*map(np.empty, _sizes(decisions, slots, orders), kinds))


def filled(buffers: Decisions, decisions: int, slots: int, orders: int) -> Decisions:
    """Return views of the first `decisions`, `slots` and `orders` entries of `buffers`."""
    sizes = _sizes(decisions, slots, orders)
    return Decisions(*(array[:size] for array, size in zip(buffers, sizes)))


def _sizes(decisions: int, slots: int, orders: int) -> tuple[int, ...]:
    return decisions, decisions, decisions + 1, slots, slots + 1, orders


def join_decisions(parts: Sequence[Decisions]) -> Decisions:
    sizes = [(len(part.game), len(part.slot_province), len(part.order)) for part in parts]
    starts = np.cumsum([(0, 0, 0), *sizes], axis=0)
    _, slots, orders = starts[-1]
    joined = empty_decisions(*starts[-1])
    joined.slot_start[-1], joined.order_start[-1] = slots, orders

    for part, (d, s, n), (d_end, s_end, n_end) in zip(parts, starts[:-1], starts[1:]):
        joined.game[d:d_end] = part.game
        joined.power[d:d_end] = part.power
        np.add(part.slot_start[:-1], np.int32(s), out=joined.slot_start[d:d_end])
        joined.slot_province[s:s_end] = part.slot_province
        np.add(part.order_start[:-1], np.int32(n), out=joined.order_start[s:s_end])
        joined.order[n:n_end] = part.order
    return joined


def order_numbers(decisions: Decisions, chosen: np.ndarray) -> np.ndarray:
    """Return the order numbers (S,) of the positions `chosen` in the slots' lists."""
    return decisions.order[decisions.order_start[:-1] + chosen]


def order_positions(decisions: Decisions, numbers: np.ndarray) -> np.ndarray:
    """Return the positions (S,) int64 of order `numbers` (S,) in the slots' lists.

    Raises:
        ValueError: a number is not in the list of its slot.
    """
    lengths = np.diff(decisions.order_start)
    rows = np.flatnonzero(decisions.order == np.repeat(numbers, lengths))
    slots = np.searchsorted(decisions.order_start, rows, "right") - 1
    if not np.array_equal(slots, np.arange(len(numbers))):
        raise ValueError("an order number is not in the list of its slot")
    return rows - decisions.order_start[:-1]
