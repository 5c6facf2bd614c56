"""Command lines: the flags of a dataclass, which tyro fills; settings that have no effect."""

import dataclasses
import re
import typing
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

import tyro

from .errors import UserError
from .records import convert

_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_Flags = TypeVar("_Flags")


def parse(flags_class: type[_Flags], argv: Sequence[str], prog: str) -> _Flags:
    """Return the flags of a command line; UserError if one is out of range or has no effect, else
    tyro's SystemExit."""
    words = read_words(flags_class, argv)
    flags = checked(tyro.cli(flags_class, args=words, prog=prog))
    refuse_without_effect(flags, named_flags(flags_class, words), _dashed)
    return flags


class OnlyIf(NamedTuple):
    """A condition without which a setting has no effect.

    It stands in the setting's type, `Annotated[str, OnlyIf(...)]`, or in front of the class for
    all settings of some records, `@OnlyIf(...).for_all(Record)`.
    """

    reason: str  # part of the error message
    applies: Callable[[Any], Any]  # of all settings: whether it has an effect

    def for_all(self, *records: type) -> Callable[[type], type]:
        """Return a decorator of a settings class."""

        def decorate(cls: type) -> type:
            names = [field.name for record in records for field in dataclasses.fields(record)]
            cls._conditions = [*getattr(cls, "_conditions", ()), *((n, self) for n in names)]
            return cls

        return decorate


def refuse_without_effect(
    settings: Any, given_names: Collection[str], shown: Callable[[str], str] = str
) -> None:
    """Raise UserError if a setting that the user made has no effect, see `OnlyIf`.

    These are the settings in `given_names`, and all that differ from their defaults. `shown` turns
    a field's name into what the user writes.
    """
    hints = typing.get_type_hints(type(settings), include_extras=True)
    conditions = [*getattr(settings, "_conditions", ())]
    for name, hint in hints.items():
        marks = getattr(hint, "__metadata__", ())
        conditions += [(name, mark) for mark in marks if isinstance(mark, OnlyIf)]
    usual = {f.name for f in dataclasses.fields(settings) if getattr(settings, f.name) == f.default}
    idle: dict[str, list[str]] = {}
    for name, condition in conditions:
        if (name in given_names or name not in usual) and not condition.applies(settings):
            idle.setdefault(condition.reason, []).append(shown(name))
    for reason, names in idle.items():
        verb = "has" if len(names) == 1 else "have"
        raise UserError(f"{', '.join(names)} {verb} no effect: {reason}")


def named_flags(flags_class: type, words: Sequence[str]) -> set[str]:
    """Return the fields whose flags are among the words of a command line."""
    names = {word for word in words if word.startswith("--")}
    fields = [field.name for field in dataclasses.fields(flags_class)]
    return {n for n in fields if {_dashed(n), _dashed(f"no_{n}")} & names}


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def checked(flags: _Flags) -> _Flags:
    values = {field.name: getattr(flags, field.name) for field in dataclasses.fields(flags)}
    try:
        return convert(type(flags), values, "flag")
    except UserError as error:
        name, _, reason = str(error).removeprefix("flag: ").partition(": ")
        raise UserError(f"{_dashed(name)}: {reason}") from None


def read_words(args_class: type, argv: Sequence[str]) -> list[str]:
    """Return a command line in the forms that tyro reads. W&B's `${args}` sends `--track=False`,
    `--anneal_lr True` and lists in brackets, and people write `1e6` for a whole number."""
    hints = typing.get_type_hints(args_class)
    words: list[str] = []
    kinds: tuple = ()  # of the flag before a word
    for word in (part for text in argv for part in _split(text)):
        if word.startswith("--"):
            hint = hints.get(word[2:].replace("-", "_"))
            kinds = (hint, *typing.get_args(hint))
            words.append(word)
        elif bool in kinds and word.lower() in _BOOLS:
            words[-1] = words[-1] if _BOOLS[word.lower()] else f"--no-{words[-1][2:]}"
            kinds = ()
        elif int in kinds and re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d+", word):
            number = float(word)
            words.append(str(int(number)) if number.is_integer() else word)
        elif Ellipsis in kinds and word[:1] in ("[", "("):
            words += filter(None, (part.strip(" '\"") for part in word.strip("()[]").split(",")))
        else:
            words.append("None" if type(None) in kinds and word.lower() == "none" else word)
    return words


def _split(word: str) -> list[str]:
    flag, equals, value = word.partition("=")
    return [flag, value] if equals and flag.startswith("--") else [word]
