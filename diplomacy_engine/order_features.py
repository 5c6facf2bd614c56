"""What a network may know of every order and border of a map, as arrays."""

import numpy as np

from .constants import COASTS, NONE, OrderKind
from .map import Board, Map
from .orders import vocabulary


def order_columns(game_map: Map) -> np.ndarray:
    """Return what every order of the map's vocabulary is, (6, A) int64.

    Rows: kind; province of the unit; province where the order's unit, or the unit it supports, ends
    up if it succeeds; province of the supported or convoyed unit; province of the unit that acts or
    is supported; kind, kind of unit and coast together. V stands for no province.
    """
    board, table = game_map.board, vocabulary(game_map).table
    nowhere = len(board.terrain)

    def province_of(locations: np.ndarray) -> np.ndarray:
        return np.where(locations == NONE, nowhere, board.location_province[locations])

    kind = table.kind.astype(np.int64)
    source, other = province_of(table.location), province_of(table.other_location)
    place = np.where(kind == OrderKind.HOLD, source, province_of(table.target))
    helped = np.where(other == nowhere, source, other)
    coast = np.where(table.target == NONE, 0, board.location_coast[table.target])
    army_or_fleet = np.maximum(table.unit_kind, 0)
    order_class = (kind * 2 + army_or_fleet) * len(COASTS) + coast
    columns = np.stack([kind, source, place, other, helped, order_class])
    return columns.astype(np.int64)


def province_borders(board: Board) -> np.ndarray:
    """Return (V, V) float32: each province's row shares 1 among those an army or fleet can reach.

    A province without any has a row of zeros.
    """
    provinces = len(board.terrain)
    borders = np.zeros((provinces, provinces), np.float32)
    for unit_kind in range(2):
        for location, reach in enumerate(board.reach[unit_kind]):
            borders[board.location_province[location], reach] = 1.0
    return borders / np.maximum(borders.sum(1, keepdims=True), 1.0)
