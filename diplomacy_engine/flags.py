"""Command lines: the flags of a dataclass, which tyro fills."""

import dataclasses
import re
import typing
from collections.abc import Sequence
from typing import TypeVar

import tyro

from .errors import UserError
from .records import Dataclass, convert, refuse_without_effect

_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_Flags = TypeVar("_Flags", bound=Dataclass)


def parse(flags_class: type[_Flags], argv: Sequence[str], prog: str) -> _Flags:
    """Return the flags of a command line; UserError if one is out of range or has no effect, else
    tyro's SystemExit."""
    words = read_words(flags_class, argv)
    flags = checked(tyro.cli(flags_class, args=words, prog=prog))
    spellings = _spellings(flags_class)
    refuse_without_effect(flags, named_flags(flags_class, words), lambda name: spellings[name][0])
    return flags


def named_flags(flags_class: type, words: Sequence[str]) -> set[str]:
    """Return the fields whose flags are among the words of a command line."""
    there = {word.replace("_", "-") if word.startswith("--") else word for word in words}
    return {name for name, flags in _spellings(flags_class).items() if there & set(flags)}


def _spellings(flags_class: type) -> dict[str, list[str]]:
    """Return by field how its flag may be written; first comes its name."""
    spellings = {}
    for name, hint in typing.get_type_hints(flags_class, include_extras=True).items():
        own = [mark for mark in getattr(hint, "__metadata__", ()) if hasattr(mark, "aliases")]
        aliases = [alias for mark in own for alias in mark.aliases or ()]
        first = next((mark.name for mark in own if mark.name), name)
        spellings[name] = [dashed(first), dashed(f"no_{first}"), *aliases]
    return spellings


def dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def checked(flags: _Flags) -> _Flags:
    values = {field.name: getattr(flags, field.name) for field in dataclasses.fields(flags)}
    try:
        return convert(type(flags), values, "flag")
    except UserError as error:
        name, _, reason = str(error).removeprefix("flag: ").partition(": ")
        raise UserError(f"{dashed(name)}: {reason}") from None


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
