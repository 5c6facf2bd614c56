"""Values inside dictionaries, lists and tuples."""

from collections.abc import Callable
from typing import Any


def each(function: Callable, value: Any) -> Any:
    """Return `value`, with `function` applied to all that a dictionary, list or tuple holds."""
    if isinstance(value, dict):
        return {key: function(item) for key, item in value.items()}
    if isinstance(value, list):
        return [function(item) for item in value]
    return tuple(function(item) for item in value) if isinstance(value, tuple) else value
