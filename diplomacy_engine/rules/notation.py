"""The notation of the `diplomacy` package, as in `A PAR - BUR` and `F STP/SC B`: records of what a
text says, texts of such records, parts of texts, and the legal orders that a record may mean.
reading.py makes the records, also of texts that people write otherwise."""

from collections.abc import Iterable
from typing import NamedTuple

from ..constants import COASTS, UNIT_LETTERS, OrderKind, UnitKind
from ..errors import UserError
from .map import Map
from .vocabulary import OrderVocabulary


class Place(NamedTuple):
    """A province and a coast as they are written."""

    province: int
    coast: int = 0  # index into COASTS; 0 if none is written


class UnitText(NamedTuple):
    """A unit as it is written."""

    kind: int  # UnitKind; NONE if none is written
    place: Place


class OrderText(NamedTuple):
    """What an order text says, whether or not it is possible."""

    kind: int  # OrderKind; a move is MOVE with or without VIA
    unit: UnitText | None = None  # None for WAIVE
    target: Place | None = None  # moved, retreated or convoyed to
    other: UnitText | None = None  # supported or convoyed
    via: bool = False

    @property
    def verb(self) -> str:
        """The kind in a word, such as `move` or `support`."""
        return OrderKind(self.kind).name.partition("_")[0].lower()


def place_text(game_map: Map, place: Place) -> str:
    """Return a place as it is written, such as `PAR` or `STP/SC`."""
    code = game_map.provinces[place.province]
    names = {number: name for name, number in game_map.coast_numbers[code].items()}
    return f"{code}/{names.get(place.coast) or COASTS[place.coast]}" if place.coast else code


def unit_text(game_map: Map, unit: UnitText) -> str:
    """Return a unit as it is written, such as `F STP/SC`; `Map.unit_text` is for one on the board,
    whose coast is known."""
    return f"{UNIT_LETTERS[unit.kind]} {place_text(game_map, unit.place)}"


def unit_phrase(kind: int) -> str:
    """Return `an army` or `a fleet`."""
    return "an army" if kind == UnitKind.ARMY else "a fleet"


def unit_of(order: str) -> str:
    """Return the unit of an order's text, such as `A PAR`."""
    return " ".join(order.split(None, 2)[:2])


def location_of(unit: str) -> str:
    """Return where a unit text such as `A PAR` or `*F STP/SC` stands: `PAR`, `STP/SC`."""
    return unit.rpartition(" ")[2]


def province_of(unit: str) -> str:
    """Return the province of a unit text: `STP` of `F STP/SC`."""
    return location_of(unit).partition("/")[0]


def neighbors_of(game_map: Map, unit: str) -> list[str]:
    """Return where a unit such as `F STP/SC` could move on an empty map; UserError if there is no
    such place."""
    board, kind = game_map.board, UNIT_LETTERS.index(unit[0])
    here = game_map.location_index.get(location_of(unit))
    if here is None:
        raise UserError(f"there is no place {location_of(unit):.20}")
    near = board.neighbor[kind, here, : board.neighbor_count[kind, here]]
    return [game_map.locations[location] for location in near.tolist()]


def matching_orders(
    game_map: Map, vocabulary: OrderVocabulary, order: OrderText, legal: Iterable[int]
) -> list[int]:
    """Return the legal order numbers that a text means.

    They are several if a split coast is not named: a support goes to any of them, a move or build
    is not clear enough. VIA is implied where only a convoy leads; needless coasts, and wrong ones
    of units on the board, do not matter (DATC 4.B.2, 4.B.4, 4.B.5, 4.B.6).
    """
    table, board = vocabulary.table, game_map.board

    def same_unit(unit: UnitText | None, kind: int, location: int) -> bool:
        return unit is None or (
            unit.kind == kind and unit.place.province == board.location_province[location]
        )

    def same_place(place: Place | None, location: int) -> bool:
        if place is None:
            return True
        coast = board.location_coast[location]
        same = place.province == board.location_province[location]
        return same and (coast == 0 or place.coast in (0, coast))

    kinds = (order.kind, OrderKind.MOVE_VIA) if order.kind == OrderKind.MOVE else (order.kind,)
    build_place = order.unit.place if order.kind == OrderKind.BUILD else None  # its coast counts
    numbers = [
        number
        for number in legal
        if int(table.kind[number]) in kinds
        and same_unit(order.unit, table.unit_kind[number], table.location[number])
        and same_unit(order.other, table.other_kind[number], table.other_location[number])
        and same_place(order.target, table.target[number])
        and same_place(build_place, table.location[number])
    ]
    if order.kind == OrderKind.MOVE:
        alike = [n for n in numbers if (table.kind[n] == OrderKind.MOVE_VIA) == order.via]
        numbers = alike if alike or order.via else numbers
    return numbers
