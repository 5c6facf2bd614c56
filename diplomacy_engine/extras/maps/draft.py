"""A map that is being read from another program's file, and the text of its map file."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..._files import read_file
from ...rules.map import MAP_NAMES, MAX_FILE_BYTES, Map, MapError
from ...rules.notation import province_of

BORDERS = ("army_borders", "fleet_borders")


class Draft:
    def __init__(self, path: Path):
        self.path = path
        self.facts: dict = {}
        self.notes: list[str] = []

    def finished(self) -> Map:
        return Map(self.facts, str(self.path))


class Neutral(NamedTuple):
    power: str  # what it might be called here
    where: str  # that it stands in the file
    centers: set[str]
    units: list[str]


def add_neutral(draft: Draft, nations: Mapping[str, Neutral]) -> None:
    """Let units that nobody plays be neutral; MapError if one would have to adjust in winter."""
    for nation, (_, where, centers, units) in nations.items():
        odd = centers ^ {province_of(unit) for unit in units}
        if odd:
            reason = (
                f"{where}: {nation}, which nobody plays, does not have exactly one unit in each of "
                f"its centers ({min(odd)}), so it would have to build or remove, which is not "
                "supported"
            )
            raise MapError(str(draft.path), [reason])
    nations = {nation: each for nation, each in nations.items() if each.units}
    if not nations:
        return
    names, facts = [each.power for each in nations.values()], draft.facts
    units = [unit for each in nations.values() for unit in each.units]
    facts["neutral"] = names[0] if len(names) == 1 and 2 <= len(names[0]) <= 31 else "NEUTRAL"
    facts["start_units"][facts["neutral"]] = units
    whose = " and ".join(nations)
    hold = f"units: {len(units)}, which hold"
    draft.notes.append(f"nobody plays {whose} ({hold}); its centers are nobody's")


def refuse(path: Path, line: int, reason: str) -> NoReturn:
    raise MapError(str(path), [f"line {line}: {reason}"])


def read_text(path: Path) -> str:
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
    word = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:40].strip("_") or "map"
    if word in MAP_NAMES:
        word = f"{word}_imported"
    if word != name:
        notes.append(f"the map is called {word}")
    return word


def map_file_text(facts: Mapping, source: str) -> str:
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
    return json.dumps(value, ensure_ascii=False)


def border_lines(borders: set[tuple[str, str]]) -> dict[str, str]:
    lines: dict[str, list[str]] = {}
    for first, second in sorted({(min(pair), max(pair)) for pair in borders}):
        lines.setdefault(first, []).append(second)
    return {place: " ".join(near) for place, near in lines.items()}
