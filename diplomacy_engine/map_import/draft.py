"""A map that is being read from another program's file, and the text of its map file."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from .._files import read_file
from ..rules.map import MAP_NAMES, MAX_FILE_BYTES, Map, MapError

BORDERS = ("army_borders", "fleet_borders")


class Draft:
    """What a map file will say.

    Attributes:
        facts: as a map file says them; see docs/own_map.md.
        notes: what the report says besides the counts, a sentence each.
    """

    def __init__(self, path: Path):
        self.path = path
        self.facts: dict = {}
        self.notes: list[str] = []

    def finished(self) -> Map:
        """Return the map, checked.

        Raises:
            MapError: it cannot be played; the message names the province or power.
        """
        return Map(self.facts, str(self.path))


def refuse(path: Path, line: int, reason: str) -> NoReturn:
    """Raise the MapError of a line that cannot be read or played."""
    raise MapError(str(path), [f"line {line}: {reason}"])


def read_text(path: Path) -> str:
    """Return a file's text; MapError if it is none."""
    try:
        content = read_file(path, MAX_FILE_BYTES)
    except OSError as error:
        raise MapError(str(path), [f"cannot be read: {error.strerror}"]) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        refuse(path, line, "it is not UTF-8 text")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.removesuffix("\r").replace("\t", " ").isprintable():
            refuse(path, number, "there is a control character in it")
    return text


def map_name(name: str, notes: list[str]) -> str:
    """Return a name for a map, made of another program's; `notes` tells if it had to change."""
    word = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:40].strip("_") or "map"
    if word in MAP_NAMES:
        word = f"{word}_imported"
    if word != name:
        notes.append(f"the map is called {word}")
    return word


def map_file_text(facts: Mapping, source: str) -> str:
    """Return the text of the map file that says these facts."""
    lines = [f"# Imported from {source}.", "# Format: docs/own_map.md.", ""]
    for key, value in facts.items():
        if not isinstance(value, dict):
            lines.append(f"{key} = {_value(value)}")
    lines += ["", "[start_units]"]
    lines += [f"{power} = {_value(units)}" for power, units in facts["start_units"].items()]
    lines += ["", "[provinces]"]
    for code, province in sorted(facts["provinces"].items()):
        inside = ", ".join(f"{key} = {_value(value)}" for key, value in province.items())
        lines.append(f"{code} = {{ {inside} }}")
    for key in BORDERS:
        lines += ["", f"[{key}]"]
        lines += [
            f"{_value(place) if '/' in place else place} = {_value(near)}"
            for place, near in sorted(facts[key].items())
        ]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    """Return a text, number, truth value or list of these as TOML, which here is as JSON."""
    return json.dumps(value, ensure_ascii=False)


def border_lines(borders: set[tuple[str, str]]) -> dict[str, str]:
    """Return borders as a map file lists them: each once, under its first end."""
    found: dict[str, list[str]] = {}
    for first, second in sorted({(min(pair), max(pair)) for pair in borders}):
        found.setdefault(first, []).append(second)
    return {place: " ".join(near) for place, near in found.items()}
