"""The notation of the `diplomacy` package, as in `A PAR - BUR` and `F STP/SC B`: records of what a
text says, texts of such records, and parts of texts. reading.py makes the records, also of texts
that people write otherwise; order_matching.py finds the legal orders that they mean."""

from typing import NamedTuple

from ..constants import COASTS, UNIT_LETTERS, OrderKind
from ..errors import UserError
from .map import Map


class Place(NamedTuple):
    """A province and a coast as they are written."""

    province: int
    coast: int = 0  # index into COASTS; 0 if none is written


class UnitText(NamedTuple):
    """A unit as it is written."""

    kind: int  # UnitKind; NONE if none is written
    place: Place


class OrderText(NamedTuple):
    """What an order text says, whether or not it is possible; IndexError for a unit or target that
    no order of its kind has."""

    kind: int  # OrderKind; a move is MOVE with or without VIA
    units: tuple[UnitText, ...] = ()  # the ordered one, except for WAIVE; one it helps
    targets: tuple[Place, ...] = ()  # where one of them moves or retreats to, if it does
    via: bool = False

    @property
    def unit(self) -> UnitText:
        """The ordered unit; of all but WAIVE."""
        return self.units[0]

    @property
    def other(self) -> UnitText:
        """The unit that a support or convoy is for."""
        return self.units[1]

    @property
    def target(self) -> Place:
        """Where the unit, or the other one, moves or retreats to."""
        return self.targets[0]

    @property
    def aim(self) -> Place:
        """The target, or where the unit that holds or is built or removed stands."""
        return self.targets[0] if self.targets else self.units[-1].place

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
