"""Orders as marks on a picture: arrows, lines to what is supported, crosses where they failed."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from ..constants import (
    BUILD,
    CONVOY,
    DISBAND,
    HOLD,
    MOVE,
    RETREAT,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    WAIVE,
)
from ..errors import UserError
from ..rules.notation import (
    GivenOrder,
    OrderText,
    Place,
    place_text,
    province_of,
    read_order,
)
from .drawing import Drawing

Point = tuple[float, float]
_CLEAR = 11.0  # from the middle of a unit to where its line begins, below its edge
_BEFORE = 21.5  # from the middle of a unit to an arrow that ends there: outside of its ring
_HEAD = 13.5  # length of an arrow's head
_BEND = 0.1  # how far an arrow bows out, as a share of its length
_FREE = 30.0  # from the middle of any unit to a line's end that points at no unit
GONE = 11.0  # half the cross of a unit that leaves the board
_SHORT, _BOW = 46.0, 17.0  # a line between neighbors closer than this bows out so far
ORDER_VERBS = {
    HOLD: "hold",
    MOVE: "move",
    SUPPORT_HOLD: "support",
    SUPPORT_MOVE: "support",
    CONVOY: "convoy",
    RETREAT: "retreat",
    DISBAND: "disband",
    BUILD: "build",
}
LEAST_SHARE = 0.03  # of an order that is shown as considered
_FAILURES = {"bounce", "void", "cut", "no convoy", "disrupted"}


class _Drawn(NamedTuple):
    record: GivenOrder
    order: OrderText
    place: Point  # of the ordered unit


def order_marks(
    drawing: Drawing,
    units: Mapping[str, Point],
    orders: Mapping[str, Sequence[GivenOrder]],
    outcome: Mapping[str, Sequence[str]],
    retreating: bool,
) -> tuple[str, str, list[tuple[str, str, Point]]]:
    """Return SVG text that belongs below the units, what belongs above them, and what is built.

    Of `units` the text of a dislodged one begins with `*`; `outcome` are result words by unit.
    """
    drawn = list(_drawable(drawing, units, orders, retreating))
    paths = {}
    for each in drawn:
        if each.order.kind in (MOVE, RETREAT):
            paths[each.order.unit.place.province] = _path(drawing, drawn, each)
    standing = {
        drawing.map.province_index[province_of(unit)]: place
        for unit, place in units.items()
        if not unit.startswith("*")
    }
    below, above, built = [], [], []
    for each in drawn:
        shown = each.record
        failed = bool(_FAILURES & set(shown.words))
        lower, upper = _marks(each, paths, standing, list(units.values()), drawing, failed)
        classes = f"order {ORDER_VERBS[each.order.kind]}{' failed' if failed else ''}"
        result = f" data-result={quoteattr(', '.join(shown.words))}" if shown.words else ""
        title = f"{shown.text} ({shown.power.capitalize()}){': ' if shown.said else ''}{shown.said}"
        below.append(
            f'<g class="{classes}" data-order={quoteattr(shown.text)} data-power="{shown.power}"'
            f"{result}><title>{escape(title)}</title>{lower}</g>"
        )
        above.append(upper)
        if each.order.kind == BUILD and not failed:
            built.append((shown.power, shown.unit, each.place))
    disbanded = {each.record.unit for each in drawn if each.order.kind == DISBAND}
    for unit, words in outcome.items():
        key = f"*{unit}" if retreating else unit
        if key in units and "dislodged" in words:
            above.append(_ring(units[key], 18, "dislodged-ring"))
        if key in units and "disband" in words and unit not in disbanded:
            above.append(cross(units[key], GONE))
    return "".join(below), "".join(above), built


def _drawable(
    drawing: Drawing,
    units: Mapping[str, Point],
    orders: Mapping[str, Sequence[GivenOrder]],
    retreating: bool,
) -> Iterator[_Drawn]:
    for shown in itertools.chain.from_iterable(orders.values()):
        if shown.order is None or shown.order.kind == WAIVE:
            continue
        place = units.get(f"*{shown.unit}" if retreating else shown.unit)
        if place is None and shown.order.kind == BUILD:
            place = _spot(drawing, shown.order.unit.place)
        if place is not None:
            yield _Drawn(shown, shown.order, place)


def _spot(drawing: Drawing, place: Place) -> Point:
    text, spots = place_text(drawing.map, place), drawing.layout.units
    return spots[text if text in spots else province_of(text)]


def _path(drawing: Drawing, drawn: Sequence[_Drawn], mover: _Drawn) -> list[Point]:
    """Return the points that a mover's arrow runs through: over its fleets, or a slight bow."""
    start, end = mover.place, _spot(drawing, mover.order.target)
    dx, dy = end[0] - start[0], end[1] - start[1]
    fleets = [
        each.place
        for each in drawn
        if each.order.kind == CONVOY
        and each.order.other.place.province == mover.order.unit.place.province
        and each.order.target.province == mover.order.target.province
    ]
    if fleets and mover.order.kind == MOVE:
        fleets.sort(key=lambda place: (place[0] - start[0]) * dx + (place[1] - start[1]) * dy)
        return [start, *fleets, end]
    middle = ((start[0] + end[0]) / 2 - dy * _BEND, (start[1] + end[1]) / 2 + dx * _BEND)
    return [start, middle, end]


def _marks(
    each: _Drawn,
    paths: Mapping[int, list[Point]],
    standing: Mapping[int, Point],
    places: Sequence[Point],
    drawing: Drawing,
    failed: bool,
) -> tuple[str, str]:
    """Return SVG of an order to lie below and above the units; `paths`, `standing`: by province."""
    order, place = each.order, each.place
    if order.kind in (MOVE, RETREAT):
        points = paths[order.unit.place.province]
        occupied = order.target.province in standing and order.kind == MOVE
        points = _shortened(points, _CLEAR, _BEFORE if occupied else 4.0)
        lower = _line(points) + _arrow_head(points)
        return lower, cross(_along(points, 0.62)) if failed else ""
    if order.kind == HOLD:
        return _ring(place, 16.5, "line"), cross(place) if failed else ""
    if order.kind in (SUPPORT_HOLD, SUPPORT_MOVE, CONVOY):
        return _help(each, paths, standing, places, drawing, failed)
    if order.kind == BUILD:
        return _ring(place, 18, "line"), cross(place, 9) if failed else plus(place)
    # A removal beyond those owed: the unit stays, so only the order is crossed, beside it.
    return "", cross((place[0] + 13, place[1] - 13)) if failed else cross(place, GONE)


def _help(
    each: _Drawn,
    paths: Mapping[int, list[Point]],
    standing: Mapping[int, Point],
    places: Sequence[Point],
    drawing: Drawing,
    failed: bool,
) -> tuple[str, str]:
    """Return a support or convoy: a broken line to the unit, or to a free spot of its arrow."""
    order, other = each.order, each.order.other.place.province
    path = paths.get(other) if order.kind != SUPPORT_HOLD else None
    if order.kind == CONVOY and path is not None and each.place in path:
        return _ring(each.place, 18, "line"), cross(each.place) if failed else ""
    if path is None and order.target is not None:  # not ordered: show where it was expected
        start = standing.get(other, _spot(drawing, order.other.place))
        goal = _spot(drawing, order.target)
        path = [start, ((start[0] + goal[0]) / 2, (start[1] + goal[1]) / 2), goal]
    if path is not None:
        end, clear = _free_spot(path, places), 0.0
    else:
        end, clear = standing.get(other, _spot(drawing, order.other.place)), 19.0
    dx, dy = end[0] - each.place[0], end[1] - each.place[1]
    gap = math.hypot(dx, dy)
    # Between neighbors nothing would be left of a straight line: it goes around.
    bend = _BOW / gap if clear and 0 < gap < _SHORT else 0.06
    middle = (each.place[0] + dx / 2 - dy * bend, each.place[1] + dy / 2 + dx * bend)
    points = _shortened([each.place, middle, end], _CLEAR, clear)
    x, y = points[-1]
    lower = _line(points) + f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    if clear:
        lower += _ring(end, 17.5, "line")
    return lower, cross(_along(points, 0.5)) if failed else ""


def _free_spot(path: list[Point], places: Sequence[Point]) -> Point:
    def cost(share: float) -> float:
        spot = _along(path, share)
        nearest = min((math.dist(spot, place) for place in places), default=_FREE)
        return max(0.0, _FREE - nearest) + 10 * abs(share - 0.5)

    return _along(path, min((i / 40 for i in range(6, 35)), key=cost))


def considered(drawing: Drawing, power: str, text: str, place: Point, share: float) -> str:
    """Return a move that a player considered, as wide as it is likely; nothing for other orders."""
    try:
        order = read_order(drawing.map, text)
    except UserError:
        return ""
    if order.kind not in (MOVE, RETREAT):
        return ""
    points = _path(drawing, (), _Drawn(GivenOrder(power, text, order, ""), order, place))
    points = _shortened(points, _CLEAR, 6.0)
    x, y = _along(points, 0.7)
    path = _curve(points)
    return (
        f'<g class="thought" data-thought={quoteattr(text)} data-power="{power}">'
        f"<title>{escape(text)} ({power.capitalize()}): {share:.0%}</title>"
        f'<path class="line" d="{path}" stroke-width="{1.5 + 9 * share:.1f}"/>'
        + (f'<text x="{x:.1f}" y="{y + 3:.1f}">{100 * share:.0f}</text>' if share < 0.95 else "")
        + "</g>"
    )


def _towards(start: Point, end: Point, length: float) -> Point:
    """Return the point `length` from `start` on the way to `end`, at most almost there."""
    gap = math.dist(start, end)
    share = min(length / gap, 0.85) if gap else 0.0
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _shortened(points: list[Point], first: float, last: float) -> list[Point]:
    return [
        _towards(points[0], points[1], first),
        *points[1:-1],
        _towards(points[-1], points[-2], last),
    ]


def _along(points: list[Point], share: float) -> Point:
    spots = _smooth(points)
    lengths = [math.dist(a, b) for a, b in itertools.pairwise(spots)]
    remaining = share * sum(lengths)
    for (a, b), length in zip(itertools.pairwise(spots), lengths):
        if remaining <= length and length:
            part = remaining / length
            return a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part
        remaining -= length
    return spots[-1]


def _legs(points: list[Point]) -> Iterator[tuple[Point, Point, Point, Point]]:
    """Yield the cubic curves of the smooth path (Catmull-Rom; a parabola if three) by points."""
    if len(points) == 3:
        first, middle, last = points
        peak = [2 * middle[i] - (first[i] + last[i]) / 2 for i in (0, 1)]
        yield (
            first,
            (first[0] + (peak[0] - first[0]) * 2 / 3, first[1] + (peak[1] - first[1]) * 2 / 3),
            (last[0] + (peak[0] - last[0]) * 2 / 3, last[1] + (peak[1] - last[1]) * 2 / 3),
            last,
        )
        return
    for i in range(len(points) - 1):
        p0, p1, p2 = points[max(i - 1, 0)], points[i], points[i + 1]
        p3 = points[min(i + 2, len(points) - 1)]
        yield (
            p1,
            (p1[0] + (p2[0] - p0[0]) / 6, p1[1] + (p2[1] - p0[1]) / 6),
            (p2[0] - (p3[0] - p1[0]) / 6, p2[1] - (p3[1] - p1[1]) / 6),
            p2,
        )


def _smooth(points: list[Point]) -> list[Point]:
    smooth = [points[0]]
    for a, b, c, d in _legs(points):
        for i in range(1, 13):
            t = i / 12
            s = 1 - t
            smooth.append(
                (
                    s**3 * a[0] + 3 * s * s * t * b[0] + 3 * s * t * t * c[0] + t**3 * d[0],
                    s**3 * a[1] + 3 * s * s * t * b[1] + 3 * s * t * t * c[1] + t**3 * d[1],
                )
            )
    return smooth


def _line(points: list[Point]) -> str:
    path = _curve(points)
    return f'<path class="edge" d="{path}"/><path class="line" d="{path}"/>'


def _curve(points: list[Point]) -> str:
    return f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(
        f"C{b[0]:.1f} {b[1]:.1f} {c[0]:.1f} {c[1]:.1f} {d[0]:.1f} {d[1]:.1f}"
        for _, b, c, d in _legs(points)
    )


def _arrow_head(points: list[Point]) -> str:
    tip, back = points[-1], _along(points, 0.9)
    dx, dy = tip[0] - back[0], tip[1] - back[1]
    length = math.hypot(dx, dy) or 1.0
    dx, dy = dx / length * _HEAD, dy / length * _HEAD
    x, y = tip[0] + dx * 0.3, tip[1] + dy * 0.3
    corner = (x - dx - dy * 0.62, y - dy + dx * 0.62)
    other_corner = (x - dx + dy * 0.62, y - dy - dx * 0.62)
    corners = "L".join(f"{u:.1f} {v:.1f}" for u, v in (corner, (x, y), other_corner))
    return f'<path class="head" d="M{corners}Z"/>'


def _ring(place: Point, radius: float, name: str) -> str:
    return f'<circle class="{name}" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius:g}"/>'


def cross(place: Point, size: float = 5.0) -> str:
    x, y = place
    wide = 2 * size
    path = f"M{x - size:.1f} {y - size:.1f}l{wide:g} {wide:g}m0 {-wide:g}l{-wide:g} {wide:g}"
    return f'<path class="cross edge" d="{path}"/><path class="cross" d="{path}"/>'


def plus(place: Point) -> str:
    x, y = place[0] + 13, place[1] - 13
    return (
        f'<circle class="badge" cx="{x:.1f}" cy="{y:.1f}" r="6.5"/>'
        f'<path class="plus" d="M{x - 3.5:.1f} {y:.1f}h7m-3.5 -3.5v7"/>'
    )
