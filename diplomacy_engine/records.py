"""What strangers write - files, messages of servers, settings - as typed records.

A record is a `msgspec.Struct`, settings are a dataclass; both give a number its range with
`Annotated[int, Meta(ge=1)]`. What does not fit is a UserError: `source: path.to.field: reason`.
"""

import dataclasses
import functools
import json
import math
import re
import tomllib
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from ._files import read_file, refusing
from ._suggest import did_you_mean, quoted
from .errors import UserError

_hints = functools.cache(typing.get_type_hints)
_Record = TypeVar("_Record")
_AT = re.compile(r"(?P<reason>.*) - at (?P<key>`key` in )?`\$\.?(?P<path>.*)`", re.DOTALL)
_FIELD = re.compile(r"Object (?P<what>missing|contains) [a-z]+ field `(?P<name>.*)`", re.DOTALL)

# Reading time of TOML grows with the square of the parts of a dotted key, which is on one line.
_MOST_DOTS = 100


def convert(cls: type[_Record], values: object, source: object, strict: bool = True) -> _Record:
    """Return `values`, as json or tomllib read them, as a record; UserError, which names `source`,
    if they do not fit. A key may have dashes; unless `strict`, texts stand for numbers."""
    if dataclasses.is_dataclass(cls):
        values = _settings(cls, values, source)
    try:
        return msgspec.convert(values, cls, strict=strict)
    except msgspec.ValidationError as error:
        raise UserError(f"{source}: {_told(cls, str(error))}") from None
    except UnicodeEncodeError:  # of half a pair of UTF-16, which JSON can write
        raise UserError(f"{source}: a text in it is not Unicode") from None


class Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]


class OnlyIf(NamedTuple):
    """A condition without which a setting has no effect.

    It stands in the setting's type, `Annotated[str, OnlyIf(...)]`, or in front of the class for
    settings by name and for all of some records, `@OnlyIf(...).for_all(Record, "name")`.
    """

    reason: str  # part of the error message
    applies: Callable[..., object]  # of all settings: whether it has an effect

    def for_all(self, *parts: type[Dataclass] | str) -> Callable[[type[_Record]], type[_Record]]:
        """Return a decorator of a settings class."""

        def decorate(cls: type[_Record]) -> type[_Record]:
            fields = [[p] if isinstance(p, str) else p.__dataclass_fields__ for p in parts]
            added = [(name, self) for names in fields for name in names]
            conditions = [*getattr(cls, "_conditions", ()), *added]
            setattr(cls, "_conditions", conditions)  # noqa: B010
            return cls

        return decorate


def changed(settings: Dataclass) -> set[str]:
    """Return the names of the settings that differ from their defaults."""
    fields = dataclasses.fields(settings)
    return {field.name for field in fields if getattr(settings, field.name) != field.default}


def refuse_without_effect(
    settings: Dataclass, names: Iterable[str], shown: Callable[[str], str] = str
) -> None:
    """Raise UserError if a setting of these `names`, which the user made, has no effect, see
    `OnlyIf`. `shown` turns a name into what the user writes."""
    hints = typing.get_type_hints(type(settings), include_extras=True)
    conditions = [*getattr(settings, "_conditions", ())]
    for name, hint in hints.items():
        marks = getattr(hint, "__metadata__", ())
        conditions += [(name, mark) for mark in marks if isinstance(mark, OnlyIf)]
    idle: dict[str, list[str]] = {}
    for name, condition in conditions:
        if name in names and not condition.applies(settings):
            idle.setdefault(condition.reason, []).append(shown(name))
    for reason, words in idle.items():
        verb = "has" if len(words) == 1 else "have"
        raise UserError(f"{', '.join(words)} {verb} no effect: {reason}")


def read_json(cls: type[_Record], path: str | Path, most: int) -> _Record:
    """Return the record in a JSON file of at most so many bytes; UserError if it has none."""
    return convert(cls, parse_json(read_content(path, most), path), path)


def parse_json(content: bytes | str, source: object) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # also of numbers too long for Python
        raise UserError(f"{source}: not JSON: {error}") from None


def read_toml(path: str | Path, most: int) -> dict[str, object]:
    """Return what is in a TOML file of at most so many bytes; UserError if it cannot be read."""
    return parse_toml(read_content(path, most), path)


def parse_toml(content: bytes, source: object) -> dict[str, object]:
    for number, line in enumerate(content.splitlines(), 1):
        if line.count(b".") > _MOST_DOTS:
            raise UserError(f"{source}: more than {_MOST_DOTS} dots in line {number}")
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{source}: not TOML: {error}") from None


def shipped_toml(package: str, name: str) -> dict:
    """Return what is in a TOML file that lies beside the modules of a package of ours."""
    return tomllib.loads((files(package) / name).read_text(encoding="utf-8"))


def shipped_patterns(
    tables: Mapping[str, Sequence[str]], standing_for: Mapping[str, str]
) -> dict[str, re.Pattern[str]]:
    """Return patterns by name, each of alternatives, with `filled_pattern`."""
    return {name: filled_pattern("|".join(rows), standing_for) for name, rows in tables.items()}


def filled_pattern(pattern: str, standing_for: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern whose words in capitals stand for other patterns, the first ones first."""
    for word, stands_for in standing_for.items():
        pattern = pattern.replace(word, stands_for)
    return re.compile(pattern)


def read_content(path: str | Path, most: int) -> bytes:
    """Return what is in a file of at most so many bytes; UserError if it cannot be read."""
    with refusing(path, "read"):
        return read_file(path, most)


def _settings(cls: type[Dataclass], values: object, source: object) -> dict[str, object]:
    if not isinstance(values, Mapping):
        raise UserError(f"{source}: expected a table of settings, not {quoted(values, 60)}")
    hints, settings = _hints(cls), {}
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    for key, value in values.items():
        name = str(key).replace("-", "_")
        if name not in names:
            raise UserError(f"{source}: {str(key)[:60]}: unknown{did_you_mean(name, names)}")
        if name in settings:
            raise UserError(f"{source}: {name}: is set twice")
        try:
            settings[name] = value if hints[name] is object else _plain(value)
        except ValueError as error:
            raise UserError(f"{source}: {name}: {error}") from None
    return settings


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be finite")
    if isinstance(value, str) and "\0" in value:  # no name of a file has it
        raise ValueError("contains a NUL character")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _told(cls: type, message: str) -> str:
    """Return msgspec's message with the path in front, as in `phases[2].name: expected str`."""
    at = _AT.fullmatch(message)
    path, reason = (at["path"], at["reason"]) if at else ("", message)
    field = _FIELD.fullmatch(reason)
    if field:
        field_names = () if path else _hints(cls)
        missing, name = field["what"] == "missing", field["name"]
        path = f"{path}.{name[:60]}".lstrip(".")
        reason = "is missing" if missing else f"unknown{did_you_mean(name, field_names)}"
    first = re.match(r"\w+", path)
    if first and reason.startswith("Invalid enum value"):
        choices = [str(choice) for choice in _choices(_hints(cls)[first[0]])]
        near = did_you_mean(reason.removeprefix("Invalid enum value ").strip("'"), choices)
        field_names = (
            f", expected one of {', '.join(filter(None, choices))}{near}" if choices else ""
        )
        reason = reason[:80] + field_names
    reason = reason[:400].replace("`", "")
    key = "key: " if at and at["key"] else ""
    return (f"{path}: " if path else "") + f"{key}{reason[:1].lower()}{reason[1:]}"


def _choices(hint: object) -> list:
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    return [choice for part in typing.get_args(hint) for choice in _choices(part)]
