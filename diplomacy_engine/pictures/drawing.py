"""What all pictures of a map share, made once a map: `drawing_of` returns a Drawing."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from ..constants import SEA, phase_kind
from ..rules.map import Map
from ..rules.reading import GivenOrder, read_orders
from .colors import style_sheet
from .layout import layout_of

_NOTHING = MappingProxyType({})


class Scene(NamedTuple):
    """What a picture shows of a position, in texts as `Game` gives them, and of its orders."""

    phase: str
    units: Mapping[str, Sequence[str]]
    dislodged: Mapping[str, Collection[str]]
    centers: Mapping[str, Sequence[str]]
    passed: Mapping[str, str]  # province -> the power that stood there last
    orders: Mapping[str, Sequence[GivenOrder]] = _NOTHING  # by power
    outcome: Mapping[str, Sequence[str]] = _NOTHING  # unit -> result words

    @property
    def retreating(self) -> bool:
        return phase_kind(self.phase) == "retreats"

    def with_orders(
        self,
        game_map: Map,
        orders: Mapping[str, Sequence[str]],
        outcome: Mapping[str, Sequence[str]] = _NOTHING,
    ) -> "Scene":
        ordered = self.dislodged if self.retreating else self.units
        orders_read = read_orders(game_map, self.phase, ordered, orders, outcome)
        return self._replace(orders=orders_read, outcome=outcome)


class Drawing:
    def __init__(self, game_map: Map):
        self.map, self.layout = game_map, layout_of(game_map)
        terrain = game_map.board.terrain
        self.seas = frozenset(c for v, c in enumerate(game_map.provinces) if terrain[v] == SEA)

    def style(self, *themes: str) -> str:
        return style_sheet(self.map, *themes)


@lru_cache(maxsize=32)
def drawing_of(game_map: Map) -> Drawing:
    return Drawing(game_map)
