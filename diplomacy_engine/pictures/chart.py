"""The chart of a game: supply centers of every power, phase by phase, as an SVG."""

from collections.abc import Collection, Mapping, Sequence
from xml.sax.saxutils import escape

from ..constants import parse_phase
from ..errors import UserError
from .drawing import Drawing

WIDTH, HEIGHT = 480.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 32.0, 112.0, 12.0, 26.0
_LABEL = 17.0  # pixels that the name at a line's end needs


def centers_svg(
    drawing: Drawing,
    phases: Sequence[tuple[str, Mapping[str, Collection[str]]]],
    theme: str = "auto",
) -> str:
    """Return the chart; x runs over the phases, from LEFT to WIDTH - RIGHT. `phases` are in order
    the name of each, such as `S1901M`, and power -> supply centers."""
    game_map = drawing.map
    counts = {
        power: [len(owned.get(power) or ()) for _, owned in phases] for power in game_map.powers
    }
    victory = game_map.board.victory_centers
    most = max([victory, *(max(row) for row in counts.values() if len(row))])
    last = max(len(phases) - 1, 1)

    def x(i: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * i / last

    def y(count: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * count / most

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dip-board chart" data-theme="{theme}"'
        f' viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="supply centers over time">'
        f"<style>{drawing.style(theme)}</style>"
        f'<rect class="paper" width="{WIDTH:g}" height="{HEIGHT:g}"/>'
    ]
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000) if most / s <= 8)
    for count in range(0, most + 1, step):
        parts.append(
            f'<path class="grid" d="M{LEFT:g} {y(count):.1f}H{WIDTH - RIGHT:g}"/>'
            f'<text class="tick side" x="{LEFT - 6:g}" y="{y(count) + 4.9:.1f}">{count}</text>'
        )
    parts.append(
        f'<path class="victory" d="M{LEFT:g} {y(victory):.1f}H{WIDTH - RIGHT:g}">'
        f"<title>{victory} centers win</title></path>"
    )
    springs = [
        (i, year) for i, year in enumerate(_spring(name) for name, _ in phases) if year is not None
    ]
    every = max(1, -(-len(springs) // 7))
    for i, year in springs[::every]:
        parts.append(f'<text class="tick" x="{x(i):.1f}" y="{HEIGHT - 8:g}">{year}</text>')
    ends = {}
    for power in game_map.powers:
        row = counts[power]
        path = "".join(
            f"{'M' if i == 0 else 'L'}{x(i):.1f} {y(count):.1f}"
            for i, count in enumerate(row)
            if i in (0, len(row) - 1) or count != row[i - 1] or count != row[i + 1]
        )
        parts.append(
            f'<g class="series" data-power="{power}"><title>{escape(power.capitalize())}</title>'
            f'<path class="edge" d="{path}"/><path class="line" d="{path}"/></g>'
        )
        ends[power] = y(row[-1])
    heights = _apart([ends[power] for power in game_map.powers])
    for power, height in zip(game_map.powers, heights):
        right = WIDTH - RIGHT + 8
        parts.append(
            f'<g data-power="{power}"><rect class="token" x="{right:g}" y="{height - 6:.1f}"'
            f' width="12" height="12" rx="2"/>'
            f'<text class="count small" x="{right + 16:g}" y="{height + 4.9:.1f}">'
            f"{counts[power][-1]} {escape(power.capitalize()[:9])}</text></g>"
        )
    return "".join([*parts, "</svg>"])


def _spring(phase: str) -> int | None:
    try:
        year, kind = parse_phase(phase)
    except UserError:
        return None
    return year if kind == 0 else None


def _apart(heights: Sequence[float]) -> list[float]:
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    gap = min(_LABEL, (HEIGHT - TOP - BOTTOM - 2) / max(len(heights) - 1, 1))
    lowest = TOP
    for i in order:
        placed[i] = lowest = max(placed[i], lowest)
        lowest += gap
    highest = HEIGHT - BOTTOM - 2  # above the years
    for i in reversed(order):
        placed[i] = highest = min(placed[i], highest)
        highest -= gap
    return placed
