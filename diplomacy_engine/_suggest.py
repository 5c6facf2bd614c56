"""Hints and quotations for error messages."""

import difflib
from collections.abc import Iterable


def quoted(value: object, width: int = 80) -> str:
    """Return a value that came from outside as Python writes it, cut to `width` characters.

    Whatever it is: lists nested too deep, or numbers too long, for Python to write are named by
    their type.
    """
    try:
        return f"{value!r:.{width}}"
    except (RecursionError, ValueError):
        return f"something of type {type(value).__name__}"


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the choice most like a word; nothing if none is like it."""
    near = difflib.get_close_matches(word, list(choices), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
