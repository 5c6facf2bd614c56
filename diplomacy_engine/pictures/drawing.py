"""What all pictures of a map share, made once a map: `drawing_of` returns a Drawing."""

from functools import lru_cache

from ..constants import SEA
from ..rules.map import Map
from .colors import style_sheet
from .layout import layout_of


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
