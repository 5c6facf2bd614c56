"""The legal orders that the record of an order text may mean."""

from collections.abc import Iterable

from ..constants import OrderKind
from .map import Map
from .notation import OrderText, Place
from .vocabulary import OrderVocabulary


def matching_orders(
    game_map: Map, vocabulary: OrderVocabulary, order: OrderText, legal: Iterable[int]
) -> list[int]:
    """Return the legal order numbers that a text means.

    There are several if a split coast is not named: a support goes to any of them, a move or build
    is not clear enough. VIA is implied where only a convoy leads; needless coasts, and wrong ones
    of units on the board, do not matter (DATC 4.B.2, 4.B.4, 4.B.5, 4.B.6).
    """
    table, board = vocabulary.table, game_map.board

    def same_place(place: Place, location: int) -> bool:
        coast = board.location_coast[location]
        same = place.province == board.location_province[location]
        return same and (coast == 0 or place.coast in (0, coast))

    kinds = (order.kind, OrderKind.MOVE_VIA) if order.kind == OrderKind.MOVE else (order.kind,)
    numbers = [number for number in legal if int(table.kind[number]) in kinds]
    # The first pair is for the ordered unit, the second one for the unit that it helps.
    columns = (table.unit_kind, table.location), (table.other_kind, table.other_location)
    for unit, (kind, at) in zip(order.units, columns):
        of_kind = [n for n in numbers if kind[n] == unit.kind]
        numbers = [n for n in of_kind if board.location_province[at[n]] == unit.place.province]
    for place in order.targets:
        numbers = [n for n in numbers if same_place(place, table.target[n])]
    if order.kind == OrderKind.BUILD:  # its coast counts
        numbers = [n for n in numbers if same_place(order.unit.place, table.location[n])]
    if order.kind == OrderKind.MOVE:
        alike = [n for n in numbers if (table.kind[n] == OrderKind.MOVE_VIA) == order.via]
        numbers = alike if alike or order.via else numbers
    return numbers
