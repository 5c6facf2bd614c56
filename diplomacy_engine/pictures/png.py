"""PNG pictures, drawn from SVG by resvg: a wheel without other requirements for every platform.

It knows no CSS variables: they are filled in first.
"""

import importlib
from io import BytesIO
from types import ModuleType

import numpy as np

from ..errors import UserError
from ..rules.map import Map
from .colors import with_plain_colors


def png(svg: str, game_map: Map, theme: str = "light", width: int = 1200) -> bytes:
    """Return an SVG of board.py or chart.py as a PNG of that many pixels in width."""
    resvg = package("resvg_py", "resvg-py")
    plain = with_plain_colors(svg, game_map, theme == "dark")
    return bytes(resvg.svg_to_bytes(svg_string=plain, width=width))


def package(module: str, name: str) -> ModuleType:
    """Return a module that only pixels need."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(f"pixels need the package {name} (pip install {name})") from None


def pixels(svg: str, game_map: Map, width: int) -> np.ndarray:
    """Return an SVG of board.py or chart.py as pixels, (height, width, 3) uint8.

    The sides are even, as video formats want them: an odd last row or column is left out.
    """
    with package("PIL.Image", "pillow").open(BytesIO(png(svg, game_map, width=width))) as image:
        array = np.asarray(image.convert("RGB"))
    return array[: len(array) // 2 * 2, : array.shape[1] // 2 * 2].copy()
