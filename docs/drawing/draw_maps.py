"""Draw the maps that come along: writes diplomacy_engine/maps/*_layout.json.

    pip install shapely==2.2.0 && python docs/drawing/draw_maps.py

Coasts and borders of europe.py cut the plane into areas; each becomes a province's outline, its
lines made a little rough and then round, the same line for both of its sides.
"""

import itertools
import json
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import shapely
from shapely import (
    LineString,
    MultiPolygon,
    Point,
    Polygon,
    box,
    line_merge,
    maximum_inscribed_circle,
    polygonize,
    unary_union,
)

sys.path.insert(0, str(Path(__file__).parents[2]))

import europe

from diplomacy_engine.constants import SEA
from diplomacy_engine.pictures.layout import LABEL_SIZE, NAME_SIZE, name_lines, text_width
from diplomacy_engine.rules.map import MAPS_FOLDER, Map, load_map
from diplomacy_engine.rules.notation import province_of

WIDTH, HEIGHT = 1200.0, 1000.0
MERIDIAN = 12.0  # degrees east, upright in the middle of the picture
WIDE = (6.5, 48.8)  # degrees; what lies around it is magnified, for there the provinces are small
MAGNIFY, REACH = 2.0, 11.0  # how much, and degrees over which it fades
SCALE = 16.2  # pixels a degree, far away
MIDDLE = (472.0, 600.0)  # pixels of the place that is magnified
FLEET_SIDE, ARMY_SIDE = 18.0, 13.5  # pixels from a unit's middle that names keep clear of
LENSES = (  # places where names and units would cover each other: degrees, how much, pixels
    ((-3.4, 55.3), 0.62, 108.0),  # Great Britain
    ((12.0, 56.5), 0.42, 68.0),  # Denmark and Sweden
    ((22.3, 38.9), 0.5, 80.0),  # Greece
)


def conic(lon: float, lat: float) -> tuple[float, float]:
    """Return degrees east and south of a place in an equidistant conic projection."""
    cone = math.sin(math.radians(50))
    radius = 1 / math.tan(math.radians(50)) + math.radians(50 - lat)
    turn = cone * math.radians(lon - MERIDIAN)
    return math.degrees(radius * math.sin(turn)), math.degrees(radius * math.cos(turn))


def plain(lon: float, lat: float) -> tuple[float, float]:
    """Return pixels of a place: conic, and widened in the middle of Europe."""
    x, y = (here - home for here, home in zip(conic(lon, lat), conic(*WIDE)))
    far = math.hypot(x, y) / REACH
    # The integral of a magnification that falls from MAGNIFY to 1 with the distance.
    stretch = 1 + (MAGNIFY - 1) * (math.atan(far) / far if far else 1.0)
    return MIDDLE[0] + SCALE * x * stretch, MIDDLE[1] + SCALE * y * stretch


def project(lon: float, lat: float) -> tuple[float, float]:
    """Return pixels of a place: as `plain`, and widened further under the lenses."""
    here = plain(lon, lat)
    found = list(here)
    for spot, more, wide in LENSES:
        middle = plain(*spot)
        # Places keep their order along any ray as long as 2 more exp(-1.5) < 1.
        push = more * math.exp(-((math.dist(here, middle) / wide) ** 2))
        found = [part + push * (a - b) for part, a, b in zip(found, here, middle)]
    return found[0], found[1]


def dense(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a line's pixels; long legs are cut so that they follow the projection."""
    found = []
    for (x1, y1), (x2, y2) in itertools.pairwise([*points, points[-1]]):
        parts = max(1, math.ceil(max(abs(x2 - x1), abs(y2 - y1)) / 3))
        found += [
            project(x1 + (x2 - x1) * i / parts, y1 + (y2 - y1) * i / parts) for i in range(parts)
        ]
    return found


def closed(points: list[tuple[float, float]]) -> Polygon:
    """Return the area inside a closed line, in pixels."""
    return Polygon(dense([*points, points[0]])).buffer(0)


def rough(line: LineString, amount: float) -> LineString:
    """Return a line with its legs bent at random, the same way every time, and its turns round."""
    points = np.array(line.coords)
    rng = np.random.default_rng(round(abs(float(points.sum()))))
    for _ in range(2):
        legs = points[1:] - points[:-1]
        side = np.column_stack([-legs[:, 1], legs[:, 0]])
        bend = amount * np.clip(rng.standard_normal((len(legs), 1)), -1.4, 1.4)
        bend[np.hypot(*legs.T) < 7] *= 0.3
        middles = (points[1:] + points[:-1]) / 2 + side * bend
        points = np.insert(points, np.arange(1, len(points)), middles, axis=0)
    for _ in range(2):  # Chaikin's corner cutting; both ends stay
        cut = np.empty((2 * len(points), 2))
        cut[0], cut[-1] = points[0], points[-1]
        cut[1:-1:2] = 0.75 * points[:-1] + 0.25 * points[1:]
        cut[2:-1:2] = 0.25 * points[:-1] + 0.75 * points[1:]
        points = cut[1:-1] if (points[0] == points[-1]).all() else cut
        if (line.coords[0] == line.coords[-1]) and len(points):
            points = np.vstack([points, points[:1]])
    return LineString(points).simplify(0.35)


def areas() -> tuple[dict[str, MultiPolygon | Polygon], list[Polygon], list[Polygon]]:
    """Return province -> its area, the neutral land, and the inland water."""
    frame = box(0, 0, WIDTH, HEIGHT)
    land = unary_union([closed(coast) for coast in europe.COASTS])
    land = land.difference(unary_union([closed(lake) for lake in europe.LAKES]))
    wide = frame.buffer(60)
    inner = [LineString(dense(points)) for points in europe.BORDERS]
    outer = [LineString(dense(points)) for points in europe.SEA_BORDERS]
    cut = [
        land.intersection(wide).boundary,
        wide.boundary,
        *(line.intersection(land.buffer(1.5)) for line in inner),
        *(line.difference(land.buffer(-1.5)) for line in outer),
    ]
    network = unary_union([line for line in cut if not line.is_empty])
    faces = [face for face in polygonize(list(network.geoms)).geoms if face.area > 1]
    coast = land.boundary.buffer(0.01)
    # Only lines between two areas; what dangles is none.
    lines = line_merge(unary_union([face.boundary for face in faces]))
    arcs = []
    for line in lines.geoms:
        on_coast = line.intersection(coast).length > 0.9 * line.length
        at_sea = not on_coast and not line.interpolate(0.5, normalized=True).within(land)
        arcs.append(rough(line, 0.0 if at_sea else 0.13 if on_coast else 0.1))
    faces = list(polygonize(list(unary_union(arcs).geoms)).geoms)
    found: dict[str, list[Polygon]] = {}
    neutral, slivers = [], []
    spots = {code: Point(project(*spot)) for code, spot in europe.LABELS.items()}
    extra = {Point(project(11.5, 55.4)): "DEN"}
    for face in faces:
        codes = [code for code, spot in spots.items() if face.contains(spot)]
        codes += [code for spot, code in extra.items() if face.contains(spot) and not codes]
        if len(codes) > 1:
            raise SystemExit(f"one area has the labels of {codes}: a border between them is open")
        inside = face.intersection(frame)
        if inside.is_empty or inside.area < 3:
            continue
        if codes:
            found.setdefault(codes[0], []).append(inside)
        elif inside.representative_point().within(land):
            neutral.append(inside)
        elif inside.area > 60:
            raise SystemExit(f"a part of the sea has no label: {inside.representative_point()}")
        else:  # where two rough lines cross each other
            slivers.append(inside)
    for sliver in slivers:
        code = max(found, key=lambda code: sliver.buffer(0.1).intersection(found[code][0]).area)
        found[code].append(sliver.buffer(0.05))
    missing = europe.LABELS.keys() - found.keys()
    if missing:
        raise SystemExit(f"no area has the label of {sorted(missing)}")
    water = [
        Polygon(rough(LineString([*(p := dense([*lake, lake[0]])), p[0]]), 0.1)).intersection(frame)
        for lake in europe.INLAND_WATER
    ]
    water = [lake for lake in water if lake.area > 10]
    return {code: unary_union(parts) for code, parts in found.items()}, neutral, water


def path(shape) -> str:
    """Return an area, or lines, as path data with relative steps of tenths of a pixel."""
    text = []
    for part in getattr(shape, "geoms", [shape]):
        lines = [part.exterior, *part.interiors] if isinstance(part, Polygon) else [part]
        for line in lines:
            points = np.round(np.array(line.coords) * 10).astype(int)
            steps = points[1:] - points[:-1]
            steps = steps[(steps != 0).any(1)]
            if isinstance(part, Polygon):
                steps = steps[:-1]
            start = "M" + " ".join(f"{x / 10:g}" for x in points[0])
            numbers = "".join(f"{x / 10:g} " for x in steps.ravel()).strip().replace(" -", "-")
            text.append(f"{start}l{numbers}" + "Z" * isinstance(part, Polygon))
    return "".join(text)


class Item(NamedTuple):
    """Something to be placed in or by a province: a code, a name or the mark of a center."""

    area: object  # of the province
    near: tuple[float, float]  # where it would best be, for its middle
    width: float
    height: float
    stray: float  # cost of a square pixel outside of the province


def covered(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the areas (n,) of boxes (n, 4: left, top, right, bottom) that lie on any of others."""
    if not len(others):
        return np.zeros(len(boxes))
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.prod(np.maximum(high - low, 0), axis=-1).sum(1)


def placed(items: dict, taken: np.ndarray, sea) -> dict:
    """Return a middle for each item: on nothing taken, on no other item, inside if that can be.

    Each has a few hundred possible places with a cost; then one after the other takes the place
    that is best beside where the others are now, until nothing moves.
    """
    spots, costs = {}, {}
    steps = np.array(list(itertools.product(range(-75, 76, 3), repeat=2)), float)
    for key, item in items.items():
        half = np.array([item.width, item.height]) / 2
        middles = np.array(item.near) + steps
        inside = (middles >= half + 2).all(1) & (middles <= [WIDTH, HEIGHT] - half - 2).all(1)
        middles = middles[inside]
        boxes = np.hstack([middles - half, middles + half])
        away = np.hypot(0.8 * steps[inside, 0], steps[inside, 1])
        shapes = shapely.box(*boxes.T)
        home = shapely.area(shapely.intersection(shapes, item.area))
        water = shapely.area(shapely.intersection(shapes, sea.difference(item.area)))
        stray = item.width * item.height - home
        cost = 0.5 * away + item.stray * (stray - 0.6 * water) + 9 * covered(boxes, taken)
        best = np.argsort(cost, kind="stable")[:900]
        spots[key], costs[key] = boxes[best], cost[best]
    at = dict.fromkeys(items, 0)
    for _ in range(60):
        moved = False
        for key in items:
            others = np.array([spots[other][at[other]] for other in items if other != key])
            best = int(np.argmin(costs[key] + 9 * covered(spots[key], others)))
            moved |= best != at[key]
            at[key] = best
        if not moved:
            break
    return {key: (spots[key][n, :2] + spots[key][n, 2:]) / 2 for key, n in at.items()}


def rounded(point) -> list[float]:
    return [round(float(part), 1) for part in point]


def crossing(start, end, home, goal) -> list[float]:
    """Return the part of a line between two units that lies outside their provinces, and a bit."""
    way = LineString([start, end])
    first, last = (
        way.project(Point(spot)) for spot in _ends(way.difference(unary_union([home, goal])))
    )
    spots = [way.interpolate(max(0, first - 8)), way.interpolate(min(way.length, last + 8))]
    return [round(part, 1) for spot in spots for part in (spot.x, spot.y)]


def _ends(shape) -> tuple:
    parts = getattr(shape, "geoms", [shape])
    return parts[0].coords[0], parts[-1].coords[-1]


def is_sea(game_map: Map, code: str) -> bool:
    return game_map.board.terrain[game_map.province_index[code]] == SEA


def layout(name: str, land: dict, neutral: list, lakes: list) -> dict:
    """Return a map's layout as layout.py reads it."""
    game_map = load_map(name)
    board = game_map.board
    frame = box(0, 0, WIDTH, HEIGHT)
    units = {}
    for code in game_map.provinces:
        area = land[code]
        wide = max(getattr(area, "geoms", [area]), key=lambda part: part.area)
        spot = Point(maximum_inscribed_circle(wide, tolerance=0.5).coords[0])
        x, y = spot.x, spot.y
        chosen = europe.UNITS if name == "standard" else europe.UNITS_ARMIES
        if code in chosen:
            x, y = project(*chosen[code])
        units[code] = rounded((x, y))
    for place, spot in europe.COAST_UNITS.items():
        if place in game_map.location_index:
            units[place] = rounded(project(*spot))
    dry = [area for code, area in land.items() if not is_sea(game_map, code)]
    sea = frame.difference(unary_union([*dry, *neutral]))
    taken, items, names = [], {}, {}
    facts = game_map.facts.get("fleet_borders", {})
    fleets = facts.keys() | {place for others in facts.values() for place in others.split()}
    for place, (x, y) in units.items():
        half = FLEET_SIDE if place in fleets else ARMY_SIDE
        taken.append((x - half, y - 16, x + half, y + 15))
    for v, code in enumerate(game_map.provinces):
        here = land[code].intersection(frame)
        near = units[code]
        wide = text_width(code, LABEL_SIZE) + 3
        items[code] = Item(here, (near[0], near[1] + 23), wide, LABEL_SIZE * 0.73 + 3, 0.5)
        if board.province_center[v] >= 0:
            items[code, "center"] = Item(here, (near[0] + 20, near[1]), 12, 12, 6.0)
        lines = name_lines(game_map.province_names[code])
        wide = max(text_width(line, NAME_SIZE) for line in lines) + 2
        names[code] = Item(here, near, wide, NAME_SIZE * 1.05 * len(lines), 0.2)
    found = placed(items, np.array(taken), sea)
    labels = {code: rounded(found[code]) for code in game_map.provinces}
    centers = {key[0]: rounded(spot) for key, spot in found.items() if isinstance(key, tuple)}
    marks = np.array([[x - 6, y - 6, x + 6, y + 6] for x, y in centers.values()])
    spots = placed(names, marks, sea)
    borders = {
        frozenset((province_of(first), province_of(second)))
        for key in ("army_borders", "fleet_borders")
        for first, others in game_map.facts[key].items()
        for second in others.split()
    }
    touching = {
        frozenset(pair): shared
        for pair in itertools.combinations(game_map.provinces, 2)
        if (shared := land[pair[0]].buffer(0.3).intersection(land[pair[1]].buffer(0.3))).area > 3
    }
    walls = [
        line_merge(land[min(pair)].boundary.intersection(land[max(pair)].buffer(0.4)))
        for pair in sorted(touching.keys() - borders, key=sorted)
    ]
    links = [
        [*pair, *crossing(*(units[code] for code in pair), *(land[code] for code in pair))]
        for pair in sorted(sorted(pair) for pair in borders - touching.keys())
    ]
    walled = sorted(map(sorted, touching.keys() - borders))
    print(f"{name}: links {[link[:2] for link in links]}, walls {walled}")
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "shapes": {code: path(land[code]) for code in game_map.provinces},
        "units": units,
        "centers": centers,
        "labels": labels,
        "names": {code: rounded(spot) for code, spot in spots.items()},
        "neutral": [path(area) for area in neutral],
        "lakes": [path(area) for area in lakes],
        "links": links,
        "walls": "".join(path(wall.simplify(0.5)) for wall in walls),
    }


def main() -> None:
    """Write the layouts."""
    found, neutral, lakes = areas()
    terrain = dict(zip(load_map("standard").provinces, load_map("standard").board.terrain))
    seas = {code for code in found if terrain[code] == SEA}
    for name in ("standard", "small", "three"):
        land, rest = found, neutral
        if name != "standard":
            parts = europe.SMALL if name == "small" else europe.THREE
            land = {
                code: unary_union([found[part].buffer(0.15) for part in codes.split()])
                for code, codes in parts.items()
            }
            used = {part for codes in parts.values() for part in codes.split()}
            rest = neutral + [found[code] for code in sorted(found.keys() - used - seas)]
        facts = layout(name, land, rest, lakes)
        file = MAPS_FOLDER / f"{name}_layout.json"
        file.write_text(json.dumps(facts, indent=0, sort_keys=True) + "\n")
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
