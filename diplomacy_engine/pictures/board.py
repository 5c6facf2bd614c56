"""Pictures of the board: `scene_svg` draws a position, and orders as arrows with their results.

What a page or a test may rely on in the SVG:

    svg.dip-board[data-theme]                 the picture; colors are CSS variables set on it
    .province.land|coast|sea[data-province]   one outline a province; [data-owner] once it has one
    .location[data-location]                  an invisible spot for each coast of a split province
    .center[data-center][data-owner]          a supply center's mark
    .labels                                   the provinces' codes, above units and arrows
    .unit.army|fleet[data-unit][data-power]   a unit; a dislodged one has [data-dislodged]
    .order[data-order][data-power]            an order, .failed if it did; its kind is a class, too
"""

import itertools
import math
from collections.abc import Mapping
from functools import lru_cache
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from ..constants import COMPLETED, PHASE_KINDS, Terrain, parse_phase
from ..rules.notation import location_of, province_of
from .arrows import LEAST_SHARE, considered, order_marks
from .drawing import Drawing, Scene
from .layout import LABEL_SIZE, NAME_SIZE, Layout, name_lines

UNIT_RADIUS = 12.0
DISLODGED_GAP = 24.0  # between a dislodged unit and where it stood
_LEGEND_HEIGHT = 34.0
_SEASONS = ("Spring", "Spring", "Fall", "Fall", "Winter")
_TITLE_WIDTH = 240.0  # of a phase in words, in a picture's legend


def phase_title(name: str) -> str:
    if name == COMPLETED:
        return "Game over"
    year, phase = parse_phase(name)
    return f"{_SEASONS[phase]} {year}, {PHASE_KINDS[phase]}"


def scene_svg(
    drawing: Drawing,
    scene: Scene,
    theme: str = "auto",
    width: int | None = None,
    legend: bool = True,
) -> str:
    """Return the SVG of a board; `width` in pixels."""
    game_map, layout = drawing.map, drawing.layout
    height = layout.height + (_LEGEND_HEIGHT if legend else 0)
    size = "" if width is None else f' width="{width}" height="{width * height / layout.width:.0f}"'
    label = f"{game_map.name} {scene.phase}"
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="dip-board" data-theme="{theme}"'
            f' data-map={quoteattr(game_map.name)} viewBox="0 0 {layout.width:g} {height:g}"'
            f'{size} role="img" aria-label={quoteattr(label)}>',
            f"<title>{escape(label)}</title><style>{drawing.style(theme)}</style>",
            ground(drawing, province_owners(drawing, scene)),
            f'<g class="overlay">{overlay(drawing, scene)}</g>',
            _labels(drawing),
            _legend(drawing, scene) if legend else "",
            "</svg>",
        ]
    )


def province_owners(drawing: Drawing, scene: Scene) -> dict[str, tuple[str, str]]:
    """Return province -> (power, `center` or `passed`) for the provinces painted for a power."""
    game_map, seas = drawing.map, drawing.seas
    owners = {
        code: (power, "passed")
        for code, power in scene.passed.items()
        if code in game_map.province_index and code not in seas and power in game_map.power_index
    }
    for v in game_map.board.center_province.tolist():
        owners.pop(game_map.provinces[v], None)  # painted for its owner, or not at all
    for power, codes in scene.centers.items():
        owners |= {code: (power, "center") for code in codes}
    return owners


def ground(drawing: Drawing, owners: Mapping[str, tuple[str, str]]) -> str:
    parts = []
    for text, code, is_mark in _ground_parts(drawing):
        parts.append(text)
        if code in owners:
            power, held = owners[code]
            if not is_mark:
                parts.append(f' data-owner="{power}" data-held="{held}"')
            elif held == "center":
                parts.append(f' data-owner="{power}"')
    return "".join(parts)


@lru_cache(maxsize=32)
def _ground_parts(drawing: Drawing) -> tuple[tuple[str, str, bool], ...]:
    """Return the ground cut where owners are filled in. Of each part: its text, the province whose
    owner follows, whether that is a center's mark."""
    game_map, layout = drawing.map, drawing.layout
    board, parts = game_map.board, []
    terrain = {code: int(board.terrain[v]) for v, code in enumerate(game_map.provinces)}
    words: dict[int, str] = {Terrain.LAND: "land", Terrain.SEA: "sea"}
    text = f'<rect class="water" width="{layout.width:g}" height="{layout.height:g}"/>'
    text += '<g class="provinces">'
    if not layout.is_drawn:
        text += _links(layout)
    # Seas lie below the land, whose coasts are the finer lines.
    for code in sorted(game_map.provinces, key=lambda code: terrain[code] != Terrain.SEA):
        name = escape(game_map.province_names[code])
        kind = words.get(terrain[code], "coast")
        parts.append((f'{text}<path class="province {kind}" data-province="{code}"', code, False))
        text = f' d="{layout.shapes[code]}"><title>{code} {name}</title></path>'
    text += "</g>" + "".join(f'<path class="neutral" d="{path}"/>' for path in layout.neutral)
    text += "".join(f'<path class="lake" d="{path}"/>' for path in layout.lakes)
    if layout.walls:
        text += f'<path class="wall" d="{layout.walls}"/>'
    if layout.is_drawn:
        text += _links(layout)
    text += '<g class="locations">'
    for location in game_map.locations:
        if "/" in location:
            x, y = layout.units[location]
            text += (
                f'<circle class="location" data-location="{location}" cx="{x:g}" cy="{y:g}"'
                f' r="{UNIT_RADIUS:g}"><title>{location}</title></circle>'
            )
    text += '</g><g class="centers">'
    for v in game_map.board.center_province.tolist():
        code = game_map.provinces[v]
        x, y = layout.centers[code]
        parts.append((f'{text}<circle class="center" data-center="{code}"', code, True))
        text = f' cx="{x:g}" cy="{y:g}" r="4.2"/>'
    return (*parts, (text + "</g>", "", False))


@lru_cache(maxsize=32)
def _labels(drawing: Drawing) -> str:
    text = '<g class="labels">'
    for code in drawing.map.provinces:
        x, y = drawing.layout.labels[code]
        water = " sea" if code in drawing.seas else ""
        y += 0.36 * LABEL_SIZE  # from the middle of the capitals to their feet
        text += f'<text class="label{water}" x="{x:g}" y="{y:.1f}">{code}</text>'
    return text + "</g>"


@lru_cache(maxsize=32)
def full_names(drawing: Drawing) -> str:
    text = '<g class="names">'
    for code in drawing.map.provinces:
        x, y = drawing.layout.names[code]
        water = " sea" if code in drawing.seas else ""
        lines = name_lines(drawing.map.province_names[code])
        y += NAME_SIZE * (0.36 - 1.05 * (len(lines) - 1) / 2)
        text += f'<text class="label{water}" data-name="{code}">' + "".join(
            f'<tspan x="{x:g}" y="{y + 1.05 * NAME_SIZE * i:.1f}">{escape(line)}</tspan>'
            for i, line in enumerate(lines)
        )
        text += "</text>"
    return text + "</g>"


def _links(layout: Layout) -> str:
    lines = "".join(f"M{x1:g} {y1:g}L{x2:g} {y2:g}" for _, _, x1, y1, x2, y2 in layout.links)
    return f'<path class="link" d="{lines}"/>' if lines else ""


def overlay(drawing: Drawing, scene: Scene) -> str:
    places, (below, above, built) = _placed_marks(drawing, scene)
    standing = {unit for units in scene.units.values() for unit in units}
    parts = ['<g class="orders">', below, '</g><g class="units">']
    for power in sorted(scene.units):
        for unit in scene.units[power]:
            parts.append(unit_svg(drawing, power, unit, places[unit]))
    for power in sorted(scene.dislodged):
        for unit in scene.dislodged[power]:
            parts.append(unit_svg(drawing, power, unit, places[f"*{unit}"], dislodged=True))
    for power, unit, place in built:
        if unit not in standing:
            parts.append(unit_svg(drawing, power, unit, place, extra=" built"))
    return "".join([*parts, '</g><g class="marks">', above, "</g>"])


def orders_svg(drawing: Drawing, scene: Scene) -> str:
    _, (below, above, _) = _placed_marks(drawing, scene)
    return below + above


def _placed_marks(drawing: Drawing, scene: Scene) -> tuple:
    """Return where each unit stands, of dislodged ones with a `*`, and what order_marks returns."""
    standing = itertools.chain(*scene.units.values())
    places = {unit: unit_place(drawing.layout, unit) for unit in standing}
    for unit in itertools.chain(*scene.dislodged.values()):
        places[f"*{unit}"] = unit_place(drawing.layout, unit, True)
    return places, order_marks(drawing, scene, places)


def unit_place(layout: Layout, unit: str, dislodged: bool = False) -> tuple[float, float]:
    """Return where a unit stands; a dislodged one where it is clear of names and neighbors."""
    location = location_of(unit)
    x, y = layout.units[location]
    if not dislodged:
        return x, y
    taken = [place for other, place in layout.units.items() if other != location]
    taken += layout.centers.values()
    taken += [(u + part, v) for u, v in layout.labels.values() for part in (-12, 0, 12)]
    turns = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    spots = [(x + DISLODGED_GAP * np.cos(a), y + DISLODGED_GAP * np.sin(a)) for a in turns]
    u, v = max(spots, key=lambda spot: min(math.dist(spot, place) for place in taken))
    return round(float(u), 1), round(float(v), 1)


_TOKEN = 1.15  # size of a token beside the numbers of its outline
_ARMY = "M-11 -8Q-11 -10 -9 -10H9Q11 -10 11 -8V3Q10 9 0 12Q-10 9 -11 3Z"
_FLEET = "M-15 0H-2V-13L8 -2H-2V0H15L10 10Q9 12 7 12H-7Q-9 12 -10 10Z"


def unit_svg(
    drawing: Drawing,
    power: str,
    unit: str,
    place: tuple[float, float],
    dislodged: bool = False,
    extra: str = "",
) -> str:
    """Return the SVG of a `unit` such as `A PAR` at `place` (x, y); `extra`: more CSS classes."""
    army = unit.startswith("A")
    name = escape(drawing.map.province_names[province_of(unit)])
    kind = "army" if army else "fleet"
    state = ' data-dislodged="true"' if dislodged else ""
    return (
        f'<g class="unit {kind}{extra}" data-unit="{unit}" data-power="{power}"{state}'
        f' transform="translate({place[0]:g} {place[1]:g}) scale({_TOKEN:g})">'
        f"<title>{unit} ({power.capitalize()}{', dislodged' * dislodged}) {name}</title>"
        f'<path class="token" d="{_ARMY if army else _FLEET}"/></g>'
    )


def _legend(drawing: Drawing, scene: Scene) -> str:
    game_map, layout = drawing.map, drawing.layout
    y, margin, title = layout.height + _LEGEND_HEIGHT / 2, 100.0, scene.phase
    if layout.width >= 4 * _TITLE_WIDTH:
        margin, title = _TITLE_WIDTH, phase_title(scene.phase)
    elif scene.phase == COMPLETED:
        title = "End"
    step = (layout.width - margin + 4) / len(game_map.powers)
    parts = [
        f'<g class="legend"><rect class="paper" y="{layout.height:g}" width="{layout.width:g}"'
        f' height="{_LEGEND_HEIGHT:g}"/><text class="phase" x="12" y="{y + 5:g}">'
        f"{escape(title)}</text>"
    ]
    for i, power in enumerate(game_map.powers):
        x = margin + i * step
        owned, units = len(scene.centers.get(power, ())), len(scene.units.get(power, ()))
        name = power.capitalize()
        shown = name[: max(1, int((step - 44) / 8))]
        parts.append(
            f'<g data-power="{power}"><title>{name}: {owned} supply centers, {units} units</title>'
            f'<rect class="token" x="{x:g}" y="{y - 8:g}" width="16" height="16" rx="3"/>'
            f'<text class="count" x="{x + 21:g}" y="{y + 4.5:g}">{owned} {shown}</text></g>'
        )
    return "".join([*parts, "</g>"])


def thoughts_svg(drawing: Drawing, scene: Scene, orders: Mapping[str, Mapping[str, list]]) -> str:
    """Draw what powers considered: `orders` are by power and unit, with the probability of each."""
    layout, parts = drawing.layout, []
    for power, by_unit in orders.items():
        for unit, choices in by_unit.items():
            if location_of(unit) not in layout.units or power not in drawing.map.power_index:
                continue
            place = unit_place(layout, unit, scene.retreating)
            parts += [
                considered(drawing, power, text, place, share)
                for text, share in choices
                if share >= LEAST_SHARE
            ]
    return "".join(parts)
