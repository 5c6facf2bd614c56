"""Deals between two powers as arrays: what offers ask for, what confirmed deals leave to order.

A deal holds for the movement phase at hand: promised orders, and sets of provinces. docs/press.md
has the rules of each clause. A set is W words of 64 bits, province v being bit v % 64 of word v //
64.
"""

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np

from .._arrays import Bools, Int32s, Uint64s, new_arrays
from ..constants import CONVOY, MOVE, MOVE_VIA, NONE, SUPPORT_MOVE
from ..errors import UserError
from ..rules.map import Board, Map
from ..rules.vocabulary import vocabulary

MAX_CLAUSES = 8  # of an offer
MAX_POWERS = 64  # to whom an order is promised is kept as bits of a uint64


class Clause(IntEnum):
    ORDER = 0
    KEEP_OUT = 1
    LEAVE = 2
    PEACE = 3
    ZONE = 4


class Side(IntEnum):
    SENDER = 0
    RECEIVER = 1
    BOTH = 2


class OfferResult(IntEnum):
    """What became of an offer: confirmed, declined, or why it was refused."""

    CONFIRMED = 0
    DECLINED = 1
    ILLEGAL = 2
    CONTRADICTS = 3
    NOTHING_LEFT = 4
    OWN = 5
    DEAD_POWER = 6
    LATE = 7


REFUSALS = tuple(
    result.name.lower().replace("_", " ") for result in OfferResult if result >= OfferResult.ILLEGAL
)


class Offers(NamedTuple):
    """O offers; the clauses of offer o are clause_start[o]..clause_start[o + 1] - 1 of all."""

    game: np.ndarray  # (O,) int32
    sender: np.ndarray  # (O,) int8
    receiver: np.ndarray  # (O,) int8
    clause_start: np.ndarray  # (O + 1,) int32
    kind: np.ndarray  # (clauses,) int8, Clause
    side: np.ndarray  # (clauses,) int8, Side; BOTH for peace and zone, of the others one alone
    province: np.ndarray  # (clauses,) int16, of the ordered unit or the set; NONE for peace
    order: np.ndarray  # (clauses,) int32, order number; NONE for all but `order`

    @classmethod
    def of(cls, *arrays: Sequence[int] | np.ndarray) -> "Offers":
        """Return offers of these arrays of integers, in the types that are said here."""
        kinds = np.int32, np.int8, np.int8, np.int32, np.int8, np.int8, np.int16, np.int32
        return cls(*(np.array(array, kind) for array, kind in zip(arrays, kinds)))

    @property
    def count(self) -> int:  # type: ignore[override]  # of a tuple nobody wants it
        return len(self.game)

    def take(self, rows: np.ndarray | list[int]) -> "Offers":
        """Return the offers of some rows (integers or a mask), in that order."""
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        parts = [np.arange(*self.clause_start[row : row + 2]) for row in rows]
        clauses = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        start = np.cumsum([0, *map(len, parts)]).astype(np.int32)
        own = [array[rows] for array in self[:3]]
        return Offers._make([*own, start, *(array[clauses] for array in self[4:])])


# The words with each offer, and with its answer: (O,) texts each, empty without words.
Words = Sequence[Sequence[str]]


def make_offers(
    rows: Sequence[tuple[int, int, int, Sequence[tuple[int, int, int, int]]]],
) -> Offers:
    lengths = [len(clauses) for _, _, _, clauses in rows]
    if any(not 1 <= length <= MAX_CLAUSES for length in lengths):
        raise UserError(f"an offer has 1 to {MAX_CLAUSES} clauses, not {max(lengths) or 0}")
    heads = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3).T
    clauses = np.array([c for row in rows for c in row[3]], np.int64).reshape(-1, 4).T
    return Offers.of(*heads, np.cumsum([0, *lengths]), *clauses)


def join_offers(parts: Sequence[Offers]) -> Offers:
    if not parts:
        return make_offers([])
    ends = np.cumsum([0, *(len(part.kind) for part in parts)])
    starts = [part.clause_start[:-1] + end for part, end in zip(parts, ends)]
    columns = [np.concatenate(arrays) for arrays in zip(*parts)]
    columns[3] = np.concatenate([*starts, ends[-1:]]).astype(np.int32)
    return Offers(*columns)


class Deals(NamedTuple):
    """The clauses of the confirmed deals of E games in this phase."""

    promised: Annotated[Int32s, "E, V", NONE]  # the order promised for the unit there, or NONE
    promised_to: Annotated[Uint64s, "E, V"]  # bits of the powers it was promised to
    closed: Annotated[Uint64s, "E, P, P, W"]  # provinces a power keeps out of by deals with another
    vacate: Annotated[Uint64s, "E, P, P, W"]  # provinces its units leave by deals with another
    peace: Annotated[Bools, "E, P, P"]  # symmetric
    dealt: Annotated[Bools, "E, P, P"]  # whether the two have any deal; symmetric


def empty_deals(board: Board, games: int) -> Deals:
    powers = board.num_powers
    if powers > MAX_POWERS:
        raise UserError(f"deals are made among at most {MAX_POWERS} powers, not {powers}")
    return new_arrays(Deals, E=games, V=len(board.terrain), P=powers, W=province_words(board))


def province_words(board: Board) -> int:
    """Return W. There is room for bit V, which is never set: what aims nowhere aims there."""
    return len(board.terrain) // 64 + 1


def province_bits(sets: np.ndarray, provinces: int) -> np.ndarray:
    """Return sets (..., W) uint64 as (..., V) bool."""
    bits = np.arange(provinces)
    return (sets[..., bits // 64] >> (bits % 64).astype(np.uint64)) & np.uint64(1) != 0


@lru_cache(maxsize=16)
def order_aims(game_map: Map) -> np.ndarray:
    """Return the province that each order aims at, (A,) uint16; V where there is none. A support of
    a move and a convoy aim where the other unit goes; a support to hold aims nowhere."""
    table, board = vocabulary(game_map).table, game_map.board
    aiming = np.isin(table.kind, (MOVE, MOVE_VIA, SUPPORT_MOVE, CONVOY))
    aims = np.where(aiming, board.location_province[table.target], len(board.terrain))
    aims = aims.astype(np.uint16)
    aims.setflags(write=False)
    return aims
