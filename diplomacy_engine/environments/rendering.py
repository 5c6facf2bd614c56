"""What the environments' `render()` returns: a picture of the board for videos, or text."""

from typing import Any

import numpy as np

from .._suggest import did_you_mean, quoted
from ..errors import UserError
from ..games.game import Game
from ..games.vector_game import VectorGame
from ..pictures.board import board_svg
from ..pictures.png import pixels, renderer

RENDER_MODES = ("rgb_array", "ansi")
RENDER_FPS = 2  # positions a second in a video
WIDTH = 800  # pixels


def check_render_mode(mode: Any) -> None:
    if mode is None:
        return
    if mode not in RENDER_MODES:
        hint = did_you_mean(str(mode), RENDER_MODES)
        names = ", ".join(RENDER_MODES)
        raise UserError(f"render_mode must be one of {names} or None, not {quoted(mode)}{hint}")
    if mode == "rgb_array":
        renderer()  # says at once if nothing here can draw


def render_game(games: VectorGame, row: int, mode: str | None) -> np.ndarray | str | None:
    """What an environment's `render()` returns for a game; None without a mode.

    `rgb_array`: a picture with even sides, (height, width, 3) uint8, 800 pixels wide; `ansi`: a
    line with map and phase, then one for each power, as `Game.to_position` writes them.
    """
    if mode is None:
        return None
    game = Game.from_row(games, row)
    if mode == "ansi":
        return game.to_position().replace("; ", "\n") + "\n"
    return pixels(board_svg(game, theme="light"), game.map, WIDTH)
