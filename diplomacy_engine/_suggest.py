"""Hints, quotations and other words of messages."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

_SHOWN = 20  # items of a list or table that are looked at
_DEPTH = 3  # lists within lists


def quoted(value: object, width: int = 80) -> str:
    """Return a value that came from outside as Python writes it, cut to `width` characters.
    Whatever it is: of texts and lists only the beginning is looked at, and what Python cannot
    write, such as a number of 5,000 digits, is named by its type."""
    try:
        return _written(value, width, _DEPTH)[:width]
    except (RecursionError, ValueError):
        return f"something of type {type(value).__name__}"


def _written(value: object, width: int, depth: int) -> str:
    """Return `repr` of the beginning of a value: a list may hold itself, or the same list often."""
    if isinstance(value, str | bytes):
        return repr(value[:width])
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return repr(value)
    if depth == 0:
        return "..."
    parts = [_written(item, width, depth - 1) for item, _ in zip(value, range(_SHOWN))]
    if isinstance(value, dict):
        held = (_written(item, width, depth - 1) for item in value.values())
        parts = [f"{key}: {item}" for key, item in zip(parts, held)]
    if len(value) > len(parts):
        parts.append("...")
    inside = ", ".join(parts)
    if isinstance(value, tuple):
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return f"[{inside}]" if isinstance(value, list) else f"{{{inside}}}"


def printable(text: str) -> str:
    """Return a text with everything but letters, signs and spaces as Python writes it, one line. A
    terminal obeys some control characters, and others turn what follows them around."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def counted(number: int, what: str) -> str:
    """Return a number of things, `1 center` or `3 centers`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: `a`, `a and b`, or `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the choice most like a word, or that the word stands for.
    `--lr` stands for `--learning-rate` and `--total` for `--total-timesteps`. Nothing if no choice
    is like it."""
    word, choices = word[:80], list(choices)
    near = difflib.get_close_matches(word, choices, 1)
    near = near or [choice for choice in choices if _stands_for(word, choice)]
    return f"; did you mean {near[0]!r}?" if near else ""


def _stands_for(word: str, choice: str) -> bool:
    """Tell whether a word is the initials of a choice of several words, or some of these."""
    word_parts, choice_parts = (
        text.strip("-").replace("_", "-").split("-") for text in (word, choice)
    )
    initials = "".join(part[:1] for part in choice_parts)
    return len(choice_parts) > 1 and (
        word_parts == [initials] or set(word_parts) <= set(choice_parts)
    )


def install(extra: str) -> str:
    """Return the command that installs more packages, in a clone or for an installed wheel."""
    is_clone = (Path(__file__).parents[1] / "pyproject.toml").is_file()
    return f"pip install '{'.' if is_clone else 'diplomacy-selfplay'}[{extra}]'"


def array_shapes(self: NamedTuple) -> str:
    """Return a named tuple of arrays as their names, shapes and types: a `__repr__`."""
    shown = (
        f"{name} {array.dtype}{list(array.shape)}" if hasattr(array, "dtype") else f"{name} {array}"
        for name, array in zip(self._fields, self)
    )
    return f"{type(self).__name__}({', '.join(shown)})"


class _Named(Protocol):
    name: str


def player_name(self: _Named) -> str:
    """Return a player's class and name: a `__repr__`."""
    return f"{type(self).__name__}({self.name!r})"
