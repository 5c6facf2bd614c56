"""The cross table of many players as a picture (SVG)."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np

LABELS = 190.0  # pixels of the names
SIDE = 620.0  # of a matrix
TOP, EDGE = 26.0, 12.0
INK, PALE, PAPER = "#1f2430", "#c9ced6", "#ffffff"
# Shares from 0 to 1 in equal steps: from red over white to blue, told apart without green.
SHADES = ("#b2182b", "#d6604d", "#f4a582", "#fddbc7", "#f7f7f7", "#d1e5f0", "#92c5de", "#4393c3",
          "#2166ac")  # fmt: skip
_FONT = 'font-family="system-ui, sans-serif"'


def matrix_svg(names: Sequence[str], shares: np.ndarray) -> str:
    """Return the cross table as a square of colors, row above column.

    `shares` are (players, players); NaN where two never met.
    """
    cell = SIDE / len(names)
    size, margin = min(10.0, cell), LABELS
    cells: dict[str, list[str]] = {}
    for row, column in np.ndindex(shares.shape):
        share = shares[row, column]
        if row != column and share == share:
            shade = SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)]
            at = f"M{margin + column * cell:.1f} {TOP + row * cell:.1f}"
            cells.setdefault(shade, []).append(f"{at}h{cell:.2f}v{cell:.2f}h-{cell:.2f}z")
    width, height = margin + SIDE + EDGE, TOP + SIDE + 3 * EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        f' aria-label="who ends above whom" width="{width:g}" height="{height:g}" font-size="10"'
        f' {_FONT} fill="{INK}"><rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>'
        f'<rect x="{margin:g}" y="{TOP:g}" width="{SIDE:g}" height="{SIDE:g}" fill="{PALE}"/>'
    ]
    parts += [f'<path d="{"".join(paths)}" fill="{shade}"/>' for shade, paths in cells.items()]
    for row, name in enumerate(names):
        y, text = TOP + (row + 0.5) * cell + size / 3, name if len(name) <= 30 else f"{name[:29]}…"
        parts.append(
            f'<text x="{margin - 4:g}" y="{y:.1f}" text-anchor="end" font-size="{size:.1f}">'
            f"{escape(text)}</text>"
        )
    wide = SIDE / len(SHADES) / 2
    for number, shade in enumerate(SHADES):
        parts.append(
            f'<rect x="{margin + number * wide:.1f}" y="{TOP + SIDE + 6:g}" width="{wide:.1f}"'
            f' height="10" fill="{shade}"/>'
        )
    parts.append(
        f'<text x="{margin + SIDE / 2 + 6:.1f}" y="{TOP + SIDE + 15:g}">0% to 100%; gray: they'
        f' never met</text><text x="{margin:g}" y="16">share of games in which the row ends above'
        " the column; columns in the order of the rows</text>"
    )
    return "".join([*parts, "</svg>"])
