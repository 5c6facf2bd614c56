"""Orders as marks on a picture: arrows, lines to what is supported, crosses where they failed."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from ..constants import OrderKind
from ..errors import UserError
from ..rules.notation import OrderText, Place, place_text, province_of
from ..rules.reading import GivenOrder, read_order
from .drawing import Drawing, Scene

Point = complex  # x + y i
_CLEAR = 11.0  # from the middle of a unit to where its line begins, below its edge
_BEFORE = 21.5  # from the middle of a unit to an arrow that ends there: outside of its ring
_HEAD = 13.5  # length of an arrow's head
_BEND = 0.1  # how far an arrow bows out, as a share of its length
_FREE = 30.0  # from the middle of any unit to a line's end that points at no unit
GONE = 11.0  # half the cross of a unit that leaves the board
_SHORT, _BOW = 46.0, 17.0  # a line between neighbors closer than this bows out so far
LEAST_SHARE = 0.03  # of an order that is shown as considered
_FAILURES = {"bounce", "void", "cut", "no convoy", "disrupted"}


class _Drawn(NamedTuple):
    record: GivenOrder
    order: OrderText
    place: Point  # of the ordered unit


def order_marks(
    drawing: Drawing, scene: Scene, places: Mapping[str, Sequence[float]]
) -> tuple[str, str, list[tuple[str, str, tuple[float, float]]]]:
    """Return SVG text that belongs below the units, what belongs above them, and what is built.

    `places` are (x, y) of units, with a `*` before the text of dislodged ones.
    """
    marks = _Marks(drawing, scene, places)
    below, above, built = [], [], []
    for each in marks.drawn:
        shown = each.record
        failed = bool(_FAILURES & set(shown.words))
        lower, upper = marks.of(each, failed)
        classes = f"order {each.order.verb}{' failed' if failed else ''}"
        result = f" data-result={quoteattr(', '.join(shown.words))}" if shown.words else ""
        title = f"{shown.text} ({shown.power.capitalize()}){': ' if shown.said else ''}{shown.said}"
        below.append(
            f'<g class="{classes}" data-order={quoteattr(shown.text)} data-power="{shown.power}"'
            f"{result}><title>{escape(title)}</title>{lower}</g>"
        )
        above.append(upper)
        if each.order.kind == OrderKind.BUILD and not failed:
            built.append((shown.power, shown.unit, (each.place.real, each.place.imag)))
    disbanded = {each.record.unit for each in marks.drawn if each.order.kind == OrderKind.DISBAND}
    for unit, words in scene.outcome.items():
        place = marks.units.get(f"*{unit}" if scene.retreating else unit)
        if place is not None and "dislodged" in words:
            above.append(ring(place, 18, "dislodged-ring"))
        if place is not None and "disband" in words and unit not in disbanded:
            above.append(cross(place, GONE))
    return "".join(below), "".join(above), built


class _Marks:
    """The orders of a scene that can be drawn, and what their marks point at."""

    def __init__(self, drawing: Drawing, scene: Scene, places: Mapping[str, Sequence[float]]):
        self.drawing = drawing
        self.units = {unit: complex(*place) for unit, place in places.items()}
        self.drawn = list(self._drawable(scene))
        self.paths = {
            each.order.unit.place.province: _path(drawing, self.drawn, each)
            for each in self.drawn
            if each.order.kind in (OrderKind.MOVE, OrderKind.RETREAT)
        }
        self.standing = {
            drawing.map.province_index[province_of(unit)]: place
            for unit, place in self.units.items()
            if not unit.startswith("*")
        }

    def _drawable(self, scene: Scene) -> Iterator[_Drawn]:
        for shown in itertools.chain(*scene.orders.values()):
            if shown.order is None or shown.order.kind == OrderKind.WAIVE:
                continue
            place = self.units.get(f"*{shown.unit}" if scene.retreating else shown.unit)
            if place is None and shown.order.kind == OrderKind.BUILD:
                place = _spot(self.drawing, shown.order.unit.place)
            if place is not None:
                yield _Drawn(shown, shown.order, place)

    def of(self, each: _Drawn, failed: bool) -> tuple[str, str]:
        """Return SVG of an order to lie below and above the units."""
        order, place = each.order, each.place
        if order.kind in (OrderKind.MOVE, OrderKind.RETREAT):
            points = self.paths[order.unit.place.province]
            occupied = order.target.province in self.standing and order.kind == OrderKind.MOVE
            points = _shortened(points, _CLEAR, _BEFORE if occupied else 4.0)
            lower = _line(points) + _arrow_head(points)
            return lower, cross(_along(points, 0.62)) if failed else ""
        if order.kind == OrderKind.HOLD:
            return ring(place, 16.5, "line"), cross(place) if failed else ""
        if order.kind in (OrderKind.SUPPORT_HOLD, OrderKind.SUPPORT_MOVE, OrderKind.CONVOY):
            return self._help(each, failed)
        if order.kind == OrderKind.BUILD:
            return ring(place, 18, "line"), cross(place, 9) if failed else plus(place)
        # A removal beyond those owed: the unit stays, so only the order is crossed, beside it.
        return "", cross(place + 13 - 13j) if failed else cross(place, GONE)

    def _help(self, each: _Drawn, failed: bool) -> tuple[str, str]:
        """Return a support or convoy: a broken line to the unit, or to a free spot of its arrow."""
        order, other = each.order, each.order.other.place.province
        path = self.paths.get(other) if order.kind != OrderKind.SUPPORT_HOLD else None
        if order.kind == OrderKind.CONVOY and path is not None and each.place in path:
            return ring(each.place, 18, "line"), cross(each.place) if failed else ""
        start = self.standing.get(other, _spot(self.drawing, order.other.place))
        if path is None and order.targets:  # not ordered: show where it was expected
            goal = _spot(self.drawing, order.target)
            path = [start, (start + goal) / 2, goal]
        end, clear = start, 19.0
        if path is not None:
            end, clear = _free_spot(path, self.units.values()), 0.0
        way = end - each.place
        # Between neighbors nothing would be left of a straight line: it goes around.
        bend = _BOW / abs(way) if clear and 0 < abs(way) < _SHORT else 0.06
        middle = each.place + way / 2 + 1j * way * bend
        points = _shortened([each.place, middle, end], _CLEAR, clear)
        lower = _line(points) + dot(points[-1])
        if clear:
            lower += ring(end, 17.5, "line")
        return lower, cross(_along(points, 0.5)) if failed else ""


def _spot(drawing: Drawing, place: Place) -> Point:
    text, spots = place_text(drawing.map, place), drawing.layout.units
    return complex(*spots[text if text in spots else province_of(text)])


def _path(drawing: Drawing, drawn: Sequence[_Drawn], mover: _Drawn) -> list[Point]:
    """Return the points that a mover's arrow runs through: over its fleets, or a slight bow."""
    start, end = mover.place, _spot(drawing, mover.order.target)
    way = end - start
    fleets = [
        each.place
        for each in drawn
        if each.order.kind == OrderKind.CONVOY
        and each.order.other.place.province == mover.order.unit.place.province
        and each.order.target.province == mover.order.target.province
    ]
    if fleets and mover.order.kind == OrderKind.MOVE:
        return [start, *sorted(fleets, key=lambda p: ((p - start) * way.conjugate()).real), end]
    return [start, (start + end) / 2 + 1j * way * _BEND, end]


def _free_spot(path: list[Point], places: Iterable[Point]) -> Point:
    def cost(share: float) -> float:
        spot = _along(path, share)
        nearest = min((abs(spot - place) for place in places), default=_FREE)
        return max(0.0, _FREE - nearest) + 10 * abs(share - 0.5)

    return _along(path, min((i / 40 for i in range(6, 35)), key=cost))


def considered(
    drawing: Drawing, power: str, text: str, place: Sequence[float], share: float
) -> str:
    """Return a move that a player considered, as wide as it is likely; nothing for other orders."""
    try:
        order = read_order(drawing.map, text)
    except UserError:
        return ""
    if order.kind not in (OrderKind.MOVE, OrderKind.RETREAT):
        return ""
    points = _path(drawing, (), _Drawn(GivenOrder(power, text, order, ""), order, complex(*place)))
    points = _shortened(points, _CLEAR, 6.0)
    x, y = _xy(_along(points, 0.7) + 3j).split()
    path = _curve(points)
    return (
        f'<g class="thought" data-thought={quoteattr(text)} data-power="{power}">'
        f"<title>{escape(text)} ({power.capitalize()}): {share:.0%}</title>"
        f'<path class="line" d="{path}" stroke-width="{1.5 + 9 * share:.1f}"/>'
        + (f'<text x="{x}" y="{y}">{100 * share:.0f}</text>' if share < 0.95 else "")
        + "</g>"
    )


def _towards(start: Point, end: Point, length: float) -> Point:
    """Return the point `length` from `start` on the way to `end`, at most almost there."""
    gap = abs(end - start)
    return start + (end - start) * min(length / gap, 0.85) if gap else start


def _shortened(points: list[Point], first: float, last: float) -> list[Point]:
    begin, end = _towards(points[0], points[1], first), _towards(points[-1], points[-2], last)
    return [begin, *points[1:-1], end]


def _along(points: list[Point], share: float) -> Point:
    legs = list(itertools.pairwise(_smooth(points)))
    lengths = [abs(b - a) for a, b in legs]
    remaining = share * sum(lengths)
    for (a, b), length in zip(legs, lengths):
        if remaining <= length and length:
            return a + (b - a) * (remaining / length)
        remaining -= length
    return legs[-1][1]


def _legs(points: list[Point]) -> Iterator[tuple[Point, Point, Point, Point]]:
    """Yield the cubic curves of the smooth path (Catmull-Rom; a parabola if three) by points."""
    if len(points) == 3:
        first, middle, last = points
        peak = 2 * middle - (first + last) / 2
        yield first, first + (peak - first) * 2 / 3, last + (peak - last) * 2 / 3, last
        return
    for p0, p1, p2, p3 in zip([points[0], *points], points, points[1:], [*points[2:], points[-1]]):
        yield p1, p1 + (p2 - p0) / 6, p2 - (p3 - p1) / 6, p2


def _smooth(points: list[Point]) -> list[Point]:
    steps = [(i / 12, 1 - i / 12) for i in range(1, 13)]
    curves = [
        s**3 * a + 3 * s * s * t * b + 3 * s * t * t * c + t**3 * d
        for a, b, c, d in _legs(points)
        for t, s in steps
    ]
    return [points[0], *curves]


def _line(points: list[Point]) -> str:
    path = _curve(points)
    return f'<path class="edge" d="{path}"/><path class="line" d="{path}"/>'


def _xy(point: Point) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


def _curve(points: list[Point]) -> str:
    legs = (" ".join(map(_xy, leg[1:])) for leg in _legs(points))
    return f"M{_xy(points[0])}" + "".join(f"C{leg}" for leg in legs)


def _arrow_head(points: list[Point]) -> str:
    tip, back = points[-1], _along(points, 0.9)
    ahead = (tip - back) / (abs(tip - back) or 1.0) * _HEAD
    tip += ahead * 0.3
    corners = tip - ahead + 0.62j * ahead, tip, tip - ahead - 0.62j * ahead
    return f'<path class="head" d="M{"L".join(map(_xy, corners))}Z"/>'


def ring(place: Point, radius: float, name: str) -> str:
    x, y = place.real, place.imag
    return f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>'


def dot(place: Point) -> str:
    return ring(place, 5, "dot")


def cross(place: Point, size: float = 5.0) -> str:
    wide = 2 * size
    path = f"M{_xy(place - size - 1j * size)}l{wide:g} {wide:g}m0 {-wide:g}l{-wide:g} {wide:g}"
    return f'<path class="cross edge" d="{path}"/><path class="cross" d="{path}"/>'


def plus(place: Point) -> str:
    at = place + 13 - 13j
    return ring(at, 6.5, "badge") + f'<path class="plus" d="M{_xy(at - 3.5)}h7m-3.5 -3.5v7"/>'
