"""Settings as fields of a dataclass: what each may be, and whether a value is.

Fields may be bool, int, float, str, Literal, `tuple[X, ...]` of those, and each of them or None; or
Any, whose value is for others to check.
`Annotated[int, Between(1, 10)]` gives a number its range, wherever its value comes from, and some
ranges have names: `gamma: Share = 0.99`.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Container
from numbers import Integral
from typing import Annotated, Any, NamedTuple

from ._suggest import did_you_mean, quoted
from .errors import UserError

ENOUGH = 10**9  # a greatest number from here on is only there so that nothing overflows


@dataclasses.dataclass(frozen=True)
class Between:
    """The range of a number, with both its ends."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        if self.low == -math.inf:
            return f"up to {self.high:,}"
        return f"from {self.low:,} " + ("on" if self.high >= ENOUGH else f"to {self.high:,}")


Positive = Annotated[int, Between(1, 10**15)]
Natural = Annotated[int, Between(0, 10**15)]
NonNegative = Annotated[float, Between(0, 10**9)]  # PyTorch computes with far smaller ones, too
Share = Annotated[float, Between(0, 1)]


ALIASES = {"reward_mix": "reward", "threads": "processes"}  # names of fields in version 0.2


def today(name: str, known: Container[str]) -> str:
    """Return the name that a field has today; `known` are those of a class."""
    return name if name in known else ALIASES.get(name, name)


class Kind(NamedTuple):
    """What a field may be."""

    type: Any
    range: Between | None  # of a number
    optional: bool  # or None


def kind_of(hint: Any) -> Kind:
    """Return what an annotation allows."""
    limits, optional = None, False
    while True:
        if typing.get_origin(hint) is Annotated:
            hint, *notes = typing.get_args(hint)
            limits = next((note for note in notes if isinstance(note, Between)), limits)
        elif typing.get_origin(hint) in (typing.Union, types.UnionType):
            rest = [part for part in typing.get_args(hint) if part is not type(None)]
            if len(rest) != 1:
                raise TypeError(f"a setting must have one type, or one type or None, not {hint}")
            hint, optional = rest[0], True
        else:
            return Kind(hint, limits, optional)


def field_kinds(args_class: type) -> dict[str, Kind]:
    hints = typing.get_type_hints(args_class, include_extras=True)
    return {field.name: kind_of(hints[field.name]) for field in dataclasses.fields(args_class)}


def check_values(args_class: type, values: dict, source: str) -> dict[str, Any]:
    """Return the values converted to the fields' types; UserError names what does not fit."""
    kinds = field_kinds(args_class)
    checked = {}
    for key, value in values.items():
        name = today(key.replace("-", "_"), kinds) if isinstance(key, str) else key
        if name not in kinds:
            raise UserError(
                f"{source}: unknown setting {quoted(key, 60)}{did_you_mean(str(name), kinds)}"
            )
        if name in checked:
            raise UserError(f"{source}: {quoted(key, 60)} is set twice")
        try:
            checked[name] = convert(kinds[name], value)
        except (ValueError, OverflowError):
            kind = kinds[name]
            literal = typing.get_origin(kind.type) is typing.Literal and isinstance(value, str)
            hint = did_you_mean(value, map(str, typing.get_args(kind.type))) if literal else ""
            raise UserError(
                f"{source}: {quoted(key, 60)} must be {kind_text(kind)}, "
                f"not {quoted(value, 60)}{hint}"
            ) from None
    return checked


def convert(kind: Kind, value: Any) -> Any:
    """Return a TOML, JSON or Python value as a field's type; ValueError if it does not fit."""
    if kind.type is Any or (value is None and kind.optional):
        return value
    if typing.get_origin(kind.type) is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError
        item = kind_of(typing.get_args(kind.type)[0])
        return tuple(convert(item, part) for part in value)
    if typing.get_origin(kind.type) is typing.Literal:
        for choice in typing.get_args(kind.type):
            if type(choice) is type(value) and choice == value:
                return choice
        raise ValueError
    if kind.type is int and type(value) is float and value.is_integer():
        value = int(value)
    elif kind.type is int and isinstance(value, Integral) and type(value) is not bool:
        value = int(value)  # of NumPy, too
    elif kind.type is float and type(value) in (int, float) and math.isfinite(value):
        value = float(value)
    elif kind.type not in (bool, int, str) or type(value) is not kind.type:
        raise ValueError
    if kind.type is str and "\0" in value:  # no name of a file has it
        raise ValueError
    if kind.range is not None and not kind.range.low <= value <= kind.range.high:
        raise ValueError
    return value


def kind_text(kind: Kind) -> str:
    if typing.get_origin(kind.type) is typing.Literal:
        text = "one of " + ", ".join(filter(None, map(str, typing.get_args(kind.type))))
    elif typing.get_origin(kind.type) is tuple:
        text = "a list, each " + kind_text(kind_of(typing.get_args(kind.type)[0]))
    else:
        names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        text = names[kind.type]
    if kind.range is not None:
        text += f" {kind.range}"
    return text + ", or none" if kind.optional else text
