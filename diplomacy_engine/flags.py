"""Command lines: the flags of a dataclass, which tyro fills."""

import dataclasses
import re
import typing
from collections.abc import Sequence
from typing import TypeVar

import tyro

from .errors import UserError
from .records import convert

_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_Flags = TypeVar("_Flags")


def parse(flags_class: type[_Flags], argv: Sequence[str], prog: str) -> _Flags:
    """Return the flags of a command line; UserError if one is out of range, else tyro's
    SystemExit."""
    return checked(tyro.cli(flags_class, args=read_words(flags_class, argv), prog=prog))


def checked(flags: _Flags) -> _Flags:
    values = {field.name: getattr(flags, field.name) for field in dataclasses.fields(flags)}
    try:
        return convert(type(flags), values, "flag")
    except UserError as error:
        name, _, reason = str(error).removeprefix("flag: ").partition(": ")
        raise UserError(f"--{name.replace('_', '-')}: {reason}") from None


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
