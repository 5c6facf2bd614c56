"""The parts of pages that show games: a stylesheet, a script, a map's facts as JSON.

The script draws no board itself: board.py has drawn what lies on it in each phase.
"""

import base64
import hashlib
import re
from importlib.resources import files

from .board import full_names, overlay, province_owners, scene_svg
from .chart import LEFT, RIGHT, WIDTH
from .drawing import Drawing, Scene
from .layout import LABEL_SIZE, NAME_SIZE
from .signs import signs

CHART = {"left": LEFT, "right": RIGHT, "width": WIDTH}  # what a page must know of the chart


def web_file(name: str, package: str = __package__) -> str:
    return (files(package) / "web" / name).read_text(encoding="utf-8")


def filled(template: str, **parts: str) -> str:
    """Return a page with its parts in place of their names, as in {{title}}. All at once: what a
    game says may look like a place for another part."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def content_policy(script: str, *more: str) -> str:
    """Return the Content-Security-Policy of a page of one file: only this script of it runs."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = ("default-src 'none'", f"script-src 'sha256-{digest}'", "style-src 'unsafe-inline'")
    return "; ".join((*parts, *more, "base-uri 'none'", "form-action 'none'"))


def map_facts(drawing: Drawing) -> dict:
    ground = scene_svg(drawing, Scene("", {}, {}, {}, {}), legend=False)
    ground = ground.replace(f"<style>{drawing.style('auto')}</style>", "")
    return {
        "name": drawing.map.name,
        "powers": drawing.map.powers,
        "names": drawing.map.province_names,
        "ground": ground.removesuffix("</svg>") + full_names(drawing) + "</svg>",
        "style": drawing.style("light", "dark", "auto"),
        "signs": signs(drawing),
        "sizes": {"labels": LABEL_SIZE, "names": NAME_SIZE},
    }


def phase_facts(drawing: Drawing, scene: Scene) -> dict:
    owners = province_owners(drawing, scene)
    return {
        "owners": {code: f"{power} {held}" for code, (power, held) in owners.items()},
        "overlay": overlay(drawing, scene),
    }
