"""What the environments' `render()` returns: a picture of the board for videos, or text."""

import numpy as np

from ..games.game import Game
from ..games.vector_game import VectorGame
from ..pictures.board import board_svg
from ..pictures.png import pixels

METADATA = {"render_modes": ["rgb_array", "ansi"], "render_fps": 2}  # positions a second in a video
WIDTH = 800  # pixels


def render_game(games: VectorGame, row: int, mode: str | None) -> np.ndarray | str | None:
    """`rgb_array`: a picture with even sides, (height, width, 3) uint8; `ansi`: a line with map and
    phase, then one for each power, as `Game.to_position` writes them."""
    if mode is None:
        return None
    game = Game.from_row(games, row)
    if mode == "ansi":
        return game.to_position().replace("; ", "\n") + "\n"
    return pixels(board_svg(game, theme="light"), game.map, WIDTH)
