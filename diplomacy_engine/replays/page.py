"""The page that replays games: one file that needs nothing but itself.

All phases are drawn here and stored compressed, so that the browser needs no second implementation
of the drawing.
"""

import base64
import json
import re
import zlib
from collections.abc import Sequence
from html import escape

from ..pictures.board import phase_title, thoughts_svg
from ..pictures.chart import values_svg
from ..pictures.drawing import drawing_of
from ..pictures.page import CHART, content_policy, filled, map_facts, phase_facts, web_file
from ..rules.map import Map
from .replay import Replay, chart_svg
from .text import order_lines
from .thoughts import thought_view

_MODULE = r"^(export |import [^;]*;\n)"  # in a script of a page that has all of them in one


def page(
    replays: Sequence[Replay], title: str, reviews: Sequence[dict | None] = (), file: str = ""
) -> str:
    """Return the page; `reviews`: of each replay, as reviewed.py gives it; `file` has the games."""
    maps: dict[Map, str] = {}
    values = [_values(replay) for replay in replays]
    games = [
        {
            "id": replay.id,
            "map": maps.setdefault(replay.map, str(len(maps))),
            "phases": [frame.scene.phase for frame in replay.frames],
            "titles": [phase_title(frame.scene.phase) for frame in replay.frames],
            "players": replay.players,
            "title": replay.title,
            "data": _packed(replay),
            "chart": _compressed(chart_svg(replay)),
            "values": values[number],
            "expected": _compressed(_expected_svg(replay, values[number])),
            "review": _compressed(json.dumps(reviews[number] if reviews else None)),
        }
        for number, replay in enumerate(replays)
    ]
    shown = {
        key: facts | {"ground": _compressed(facts["ground"])}
        for key, facts in ((key, map_facts(drawing_of(game_map))) for game_map, key in maps.items())
    }
    facts = {"games": games, "maps": shown, "chart": CHART, "file": file}
    # Inside a script element only this sign could end it.
    data = json.dumps(facts, separators=(",", ":")).replace("<", "\\u003c")
    scripts = web_file("page.js"), web_file("review.js"), web_file("replay.js", __package__)
    script = "\n" + "\n".join(re.sub(_MODULE, "", text, flags=re.MULTILINE) for text in scripts)
    return filled(
        web_file("replay.html", __package__),
        policy=content_policy(script, "img-src data:"),
        title=escape(title),
        style=web_file("page.css"),
        script=script,
        data=data,
    )


def _values(replay: Replay) -> dict[str, list[float | None]]:
    """Return power -> the result that it expected in each phase, None where it thought nothing."""
    frames = replay.frames
    rows = {
        power: [
            frame.thoughts[power].value if power in frame.thoughts else None for frame in frames
        ]
        for power in replay.map.powers
    }
    return {power: row for power, row in rows.items() if any(value is not None for value in row)}


def _expected_svg(replay: Replay, values: dict[str, list[float | None]]) -> str:
    """Return the chart of `_values`, or nothing if no power expected any."""
    names = [frame.scene.phase for frame in replay.frames]
    return values_svg(drawing_of(replay.map), names, values) if values else ""


def _packed(replay: Replay) -> str:
    """Return what the page shows of each phase, compressed."""
    frames, drawing = [], drawing_of(replay.map)
    for number, frame in enumerate(replay.frames):
        centers, units = frame.scene.centers, frame.scene.units
        powers: dict[str, dict] = {
            power: {"centers": len(centers[power]), "units": len(units[power])}
            for power in replay.map.powers
        }
        for power, thought in frame.thoughts.items():
            powers[power]["thought"] = thought_view(replay.map, thought)
        considered = {power: thought.orders for power, thought in frame.thoughts.items()}
        facts = {
            "thoughts": thoughts_svg(drawing, frame.scene, considered),
            "talk": frame.talk + frame.declared,
            "orders": order_lines(replay, number),
            "powers": powers,
        }
        frames.append(phase_facts(drawing, frame.scene) | facts)
    return _compressed(json.dumps(frames, separators=(",", ":")))


def _compressed(text: str) -> str:
    """Return a text as the page's DecompressionStream("deflate") reads it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
