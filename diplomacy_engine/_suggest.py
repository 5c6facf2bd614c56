"""Hints for error messages."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the choice most like a word; nothing if none is like it."""
    near = difflib.get_close_matches(word, list(choices), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
