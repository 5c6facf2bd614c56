"""Orders, units and places in words, such as `Army Paris: move to Burgundy`."""

import re

from ..constants import COASTS, UNIT_LETTERS, OrderKind, UnitKind
from ..errors import UserError
from .map import Map
from .notation import OrderText, Place, UnitText, place_text
from .reading import read_order

_COAST_WORDS = dict(zip(COASTS[1:], ("north coast", "east coast", "south coast", "west coast")))


def order_words(game_map: Map, text: str) -> tuple[str, str]:
    """An order's unit and the rest in words; no unit and the text if it means nothing."""
    try:
        order = read_order(game_map, text)
    except UserError:
        return "", text
    if order.kind == OrderKind.WAIVE:
        return "", "waive a build"
    if order.kind == OrderKind.BUILD:
        return _name(game_map, order.unit.place), rest_of_order(game_map, order)
    unit = _unit(game_map, order.unit)
    return unit[0].upper() + unit[1:], rest_of_order(game_map, order)


def in_words(game_map: Map, text: str) -> str:
    """Return a text with its units in words: `army Paris` for `A PAR`."""

    def name(match: re.Match) -> str:
        place = game_map.province_names.get(match[2])
        return match[0] if place is None else f"{_kind(UNIT_LETTERS.index(match[1]))} {place}"

    return re.sub(r"\b([AF]) ([A-Z]{3})(?:/[A-Z]+)?\b", name, text)


def rest_of_order(game_map: Map, order: OrderText) -> str:
    """Return in words what an order tells its unit: `move to Burgundy`."""
    target, other = _name(game_map, order.aim), _unit(game_map, order.units[-1])
    if order.kind == OrderKind.BUILD:
        return f"build {_kind(order.unit.kind)}{_coast(game_map, order.unit.place)}"
    return {
        OrderKind.HOLD: "hold",
        OrderKind.MOVE: f"move to {target}" + (" by convoy" if order.via else ""),
        OrderKind.SUPPORT_HOLD: f"support {other} to hold",
        OrderKind.SUPPORT_MOVE: f"support {other} to {target}",
        OrderKind.CONVOY: f"convoy {other} to {target}",
        OrderKind.RETREAT: f"retreat to {target}",
        OrderKind.DISBAND: "disband",
    }[OrderKind(order.kind)]


def unit_phrase(kind: int) -> str:
    """Return `an army` or `a fleet`."""
    return "an army" if kind == UnitKind.ARMY else "a fleet"


def _unit(game_map: Map, unit: UnitText) -> str:
    return f"{_kind(unit.kind)} {_name(game_map, unit.place)}"


def _name(game_map: Map, place: Place) -> str:
    return game_map.province_names[game_map.provinces[place.province]] + _coast(game_map, place)


def _kind(unit_kind: int) -> str:
    return "army" if unit_kind == UnitKind.ARMY else "fleet"


def _coast(game_map: Map, place: Place) -> str:
    coast = place_text(game_map, place).partition("/")[2]
    return f" ({_COAST_WORDS.get(coast, coast.lower())})" if coast else ""
