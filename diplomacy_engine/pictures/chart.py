"""The charts of a game, phase by phase, as SVGs: supply centers, and what was expected."""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from xml.sax.saxutils import escape

from .drawing import Drawing

WIDTH, HEIGHT = 480.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 32.0, 112.0, 12.0, 26.0
_LABEL = 17.0  # pixels that the name at a line's end needs


def centers_svg(
    drawing: Drawing,
    phases: Sequence[tuple[str, Mapping[str, Collection[str]]]],
    theme: str = "auto",
) -> str:
    """Return the chart of `phases`, names such as `S1901M` and power -> supply centers of each; x
    runs over them from LEFT to WIDTH - RIGHT."""
    counts = {
        power: [len(owned.get(power) or ()) for _, owned in phases] for power in drawing.map.powers
    }
    victory = drawing.map.board.victory_centers
    most = max([victory, *(max(row) for row in counts.values() if len(row))])
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000) if most / s <= 8)
    ticks = {count: f"{count}" for count in range(0, most + 1, step)}
    names = [name for name, _ in phases]
    return _lines_svg(drawing, names, counts, ticks, most, "supply centers", theme, victory)


def values_svg(
    drawing: Drawing, names: Sequence[str], values: Mapping[str, Sequence[float | None]]
) -> str:
    """Return the chart of the results that powers expected; None: as in the phase before."""
    rows = {power: _filled(row) for power, row in values.items()}
    low = min(0.0, *(min(row) for row in rows.values()))
    most = max(0.1, *(max(row) for row in rows.values())) - low
    step = next(s for s in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 1e9) if most / s <= 8)
    marks = range(int(low / step), int((most + low) / step) + 1)
    ticks = {n * step - low: f"{n * step:g}".replace("0.", ".") for n in marks}
    rows = {power: [value - low for value in row] for power, row in rows.items()}
    return _lines_svg(drawing, names, rows, ticks, most, "expected result")


def _filled(row: Sequence[float | None]) -> list[float]:
    first = next((value for value in row if value is not None), 0.0)
    steps = accumulate(row, lambda last, new: last if new is None else new, initial=first)
    return list(steps)[1:]


def _lines_svg(
    drawing: Drawing,
    names: Sequence[str],
    rows: Mapping[str, Sequence[float]],
    ticks: Mapping[int, str] | Mapping[float, str],
    most: float,
    what: str,
    theme: str = "auto",
    victory: int | None = None,
) -> str:
    """Return a chart of a line per power, from 0 up to `most`. Of supply centers, of which
    `victory` win, the last number stands before the name."""
    last = max(len(names) - 1, 1)

    def x(i: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * i / last

    def y(count: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * count / most

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dip-board chart" data-theme="{theme}"'
        f' viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{what} over time">'
        f"<style>{drawing.style(theme)}</style>"
        f'<rect class="paper" width="{WIDTH:g}" height="{HEIGHT:g}"/>'
    ]
    for count, text in ticks.items():
        parts.append(
            f'<path class="grid" d="M{LEFT:g} {y(count):.1f}H{WIDTH - RIGHT:g}"/>'
            f'<text class="tick side" x="{LEFT - 6:g}" y="{y(count) + 4.9:.1f}">{text}</text>'
        )
    if victory is not None:
        parts.append(
            f'<path class="victory" d="M{LEFT:g} {y(victory):.1f}H{WIDTH - RIGHT:g}">'
            f"<title>{victory} centers win</title></path>"
        )
    springs = [i for i, name in enumerate(names) if name[0] + name[-1] == "SM"]
    every = max(1, -(-len(springs) // 7))
    for i in springs[::every]:
        year = int(names[i][1:-1])
        parts.append(f'<text class="tick" x="{x(i):.1f}" y="{HEIGHT - 8:g}">{year}</text>')
    ends = {}
    for power, row in rows.items():
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
    for power, height in zip(ends, _apart(list(ends.values()))):
        right, last_number = WIDTH - RIGHT + 8, "" if victory is None else f"{rows[power][-1]} "
        parts.append(
            f'<g data-power="{power}"><rect class="token" x="{right:g}" y="{height - 6:.1f}"'
            f' width="12" height="12" rx="2"/>'
            f'<text class="count small" x="{right + 16:g}" y="{height + 4.9:.1f}">'
            f"{last_number}{escape(power.capitalize()[:9])}</text></g>"
        )
    return "".join([*parts, "</svg>"])


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
