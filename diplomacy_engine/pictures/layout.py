"""Where the provinces of a map lie in a picture.

The bundled maps are drawn (by docs/drawing/draw_maps.py); any other is laid out as discs.
"""

import json
import textwrap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..constants import SEA
from ..rules.map import MAPS_FOLDER, Map
from ..rules.notation import province_of

DISC = 30.0  # radius of a province that has no drawing
LABEL_SIZE, NAME_SIZE = 15.5, 12.5  # of the provinces' codes and full names, font size
_GAP = 92.0  # between the centers of two discs, at least
_MARGIN = 52.0
_CLEARANCE = 1.5 * DISC  # between a disc's center and the links of others, if there is room
_CLEARINGS = 40  # steps that make this room


class Layout(NamedTuple):
    """The fixed part of a picture; all numbers are units of the SVG's viewBox."""

    width: float
    height: float
    shapes: Mapping[str, str]  # province -> path data of its outline
    units: Mapping[str, Sequence[float]]  # location -> middle (x, y) of a unit there
    centers: Mapping[str, Sequence[float]]  # supply center -> middle of its mark
    labels: Mapping[str, Sequence[float]]  # province -> middle of its code
    names: Mapping[str, Sequence[float]]  # province -> middle of its full name
    neutral: Sequence[str]  # path data of land that is no province
    lakes: Sequence[str]  # path data of water that is no province
    # Borders of provinces that do not touch in the picture: codes, and x1, y1, x2, y2 of a line.
    links: Sequence[tuple[str, str, float, float, float, float]]
    walls: str  # path data of lines between provinces that touch without a border
    is_drawn: bool  # a drawing, not discs


def text_width(text: str, size: float) -> float:
    """Return how wide a text is at most in the fonts of the pictures, of which DejaVu is widest."""
    wide = {"M": 0.87, "W": 0.99, "m": 0.98, "w": 0.82, "I": 0.3, "i": 0.28, "j": 0.28, "l": 0.28}
    kind = (0.61, 0.77)  # other small letters and capitals
    return size * sum(wide.get(letter, kind[letter.isupper()]) for letter in text)


def name_lines(name: str) -> list[str]:
    return textwrap.wrap(name, 11, break_long_words=False) or [name]


def layout_of(game_map: Map) -> Layout:
    return _drawn(game_map.name) if game_map.is_included else _discs(game_map)


@lru_cache
def _drawn(name: str) -> Layout:
    text = (MAPS_FOLDER / f"{name}_layout.json").read_text(encoding="utf-8")
    return Layout(**json.loads(text), is_drawn=True)


@lru_cache(maxsize=32)
def _discs(game_map: Map) -> Layout:
    drawn = game_map.positions
    if all(code in drawn for code in game_map.provinces):
        points = np.array([drawn[code] for code in game_map.provinces], float)
    else:
        points = _by_distance(game_map.board.distance)
    links = _links(game_map)
    index = game_map.province_index
    ends = np.array([(index[a], index[b]) for a, b in links], np.int64).reshape(-1, 2)
    points = _clear_of_links(_apart(_scaled(points)), ends)
    points = points - points.min(0) + _MARGIN
    width, height = points.max(0) + _MARGIN
    spots = {code: (x, y) for code, (x, y) in zip(game_map.provinces, np.round(points, 1).tolist())}
    units = {}
    for location in game_map.locations:
        code, _, coast = location.partition("/")
        x, y = spots[code]
        number = game_map.coast_numbers[code][coast] if coast else 0
        dx, dy = _COAST_SIDES[number]
        units[location] = (x + dx * DISC * 0.9, y + dy * DISC * 0.9)
    seas = {code for v, code in enumerate(game_map.provinces) if game_map.board.terrain[v] == SEA}
    return Layout(
        width=float(round(width)),
        height=float(round(height)),
        shapes={code: (_hexagon if code in seas else _disc)(*spots[code]) for code in spots},
        units=units,
        centers={code: (x + DISC * 0.62, y + DISC * 0.62) for code, (x, y) in spots.items()},
        labels={code: (x, y - DISC * 0.62) for code, (x, y) in spots.items()},
        names=spots,
        neutral=(),
        lakes=(),
        links=tuple((a, b, *spots[a], *spots[b]) for a, b in links),
        walls="",
        is_drawn=False,
    )


_COAST_SIDES = ((0, 0.16), (0, -1), (1, 0), (0, 1), (-1, 0))  # in the order of COASTS


def _disc(x: float, y: float) -> str:
    half = f"a{DISC:g} {DISC:g} 0 1 1"
    return f"M{x - DISC:g} {y:g}{half} {2 * DISC:g} 0{half} {-2 * DISC:g} 0Z"


def _hexagon(x: float, y: float) -> str:
    """Return the outline of a sea: its shape, not only its color, tells it from land."""
    corners = [
        (x + DISC * 1.12 * np.cos(a), y + DISC * 1.12 * np.sin(a)) for a in np.arange(6) * np.pi / 3
    ]
    return "M" + "L".join(f"{u:.1f} {v:.1f}" for u, v in corners) + "Z"


def _by_distance(distance: np.ndarray) -> np.ndarray:
    """Return points (V, 2) whose distances are like the steps between the provinces. Classical
    scaling gives the start, stress majorization (SMACOF) the rest; nothing is random."""
    count = len(distance)
    if count == 1:
        return np.zeros((1, 2))
    steps = distance.astype(float)
    apart = steps >= count  # no way: a little farther than anything that has one
    steps[apart] = 1.0 + max(1.0, steps[~apart].max())
    centering = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-centering @ steps**2 @ centering / 2)
    points = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    # A sign of its own for each axis, else two machines may mirror the picture.
    points *= np.sign(points[np.abs(points).argmax(0), [0, 1]] + 1e-300)
    points = points[:, ::-1] + 1e-3 * np.column_stack(
        [np.cos(np.arange(count)), np.sin(np.arange(count))]
    )
    weight = 1 / np.maximum(steps, 1) ** 2
    np.fill_diagonal(weight, 0)
    inverse = np.linalg.pinv(np.diag(weight.sum(1)) - weight)
    for _ in range(100):
        gap = np.linalg.norm(points[:, None] - points[None], axis=-1)
        pull = np.where(gap > 1e-9, -weight * steps / np.maximum(gap, 1e-9), 0.0)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(1))
        points = inverse @ pull @ points
    return points


def _links(game_map: Map) -> list[tuple[str, str]]:
    return sorted(
        {
            (min(first, second), max(first, second))
            for key in ("army_borders", "fleet_borders")
            for one, others in game_map.facts.get(key, {}).items()
            for first in [province_of(one)]
            for second in map(province_of, others.split())
        }
    )


def _clear_of_links(points: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the points moved a little, so that fewer links pass beneath the discs of others. A
    disc and a link too close to it push each other away; what cannot be had is left. `ends` (links,
    2) are the points that each link joins."""
    numbers = np.arange(len(ends))
    for _ in range(_CLEARINGS if len(ends) else 0):
        first = points[ends[:, 0]]
        along = points[ends[:, 1]] - first
        away = points[:, None] - first[None]
        share = (away * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-9)
        away -= np.clip(share, 0, 1)[..., None] * along
        gap = np.linalg.norm(away, axis=-1)
        gap[ends[:, 0], numbers] = gap[ends[:, 1], numbers] = np.inf
        short = np.maximum(_CLEARANCE - gap, 0)
        if not short.any():
            break
        push = away * (0.2 * short / np.maximum(gap, 1e-3))[..., None]
        moved = push.sum(1)
        for side in range(2):
            np.add.at(moved, ends[:, side], -0.5 * push.sum(0))
        points = _apart(points + np.clip(moved, -DISC, DISC), steps=1)
    return _apart(points)


def _scaled(points: np.ndarray) -> np.ndarray:
    """Return points whose nearest neighbors are, in the median, a little over a gap apart."""
    if len(points) == 1:
        return points
    gap = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.fill_diagonal(gap, np.inf)
    nearest = np.median(gap.min(1))
    scale = 1.2 * _GAP / nearest if nearest > 0 else 1.0
    # A few provinces far away must not make the picture endless.
    extent = np.ptp(points, axis=0).max() or 1.0
    scale = min(scale, 4 * _GAP * np.sqrt(len(points)) / extent)
    return (points - points.mean(0)) * scale


def _apart(points: np.ndarray, steps: int = 200) -> np.ndarray:
    """Return the points with any two of them pushed a gap apart, as far as so many steps do it."""
    count = len(points)
    points = points + 1e-3 * np.column_stack([np.cos(np.arange(count)), np.sin(np.arange(count))])
    for _ in range(steps):
        difference = points[:, None] - points[None]
        gap = np.linalg.norm(difference, axis=-1)
        np.fill_diagonal(gap, np.inf)
        short = np.maximum(_GAP - gap, 0)
        if not short.any():
            break
        points = points + 0.5 * (difference * (short / gap)[..., None]).sum(1)
    return points
