"""PNG pictures, drawn from SVG by resvg: a wheel without other requirements for every platform. It
knows no CSS variables: they are filled in first."""

from io import BytesIO
from types import ModuleType

import numpy as np

from ..errors import UserError
from ..rules.map import Map
from .colors import with_plain_colors


def png(svg: str, game_map: Map, theme: str = "light", width: int = 1200) -> bytes:
    """Return an SVG of board.py or chart.py as a PNG of that many pixels in width."""
    if theme not in ("light", "dark"):
        raise UserError(f"a PNG is light or dark, not {theme!r:.40}")
    resvg = renderer()
    plain = with_plain_colors(svg, game_map, theme == "dark")
    try:
        return bytes(resvg.svg_to_bytes(svg_string=plain, width=width))
    except BaseException as error:
        # A panic in resvg comes as an exception that is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(f"resvg cannot draw this picture: {error}") from error


def renderer() -> ModuleType:
    try:
        import resvg_py  # only when a PNG is wanted
    except ImportError:
        raise UserError(
            "PNG pictures need the package resvg-py (pip install resvg-py); SVG ones do not"
        ) from None
    return resvg_py


def imaging() -> ModuleType:
    try:
        from PIL import Image  # only when pixels are wanted
    except ImportError:
        raise UserError("pixels of pictures need the package Pillow (pip install pillow)") from None
    return Image


def pixels(svg: str, game_map: Map, width: int) -> np.ndarray:
    """Return an SVG of board.py or chart.py as pixels, (height, width, 3) uint8. The sides are
    even, as video formats want them: an odd last row or column is left out."""
    with imaging().open(BytesIO(png(svg, game_map, width=width))) as image:
        array = np.asarray(image.convert("RGB"))
    return array[: len(array) // 2 * 2, : array.shape[1] // 2 * 2].copy()
