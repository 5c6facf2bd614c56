"""Arrays inside dictionaries, lists and tuples, which `torch.load` only takes as tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np


def each(function: Callable, value: Any) -> Any:
    """Return `value`, with `function` applied to all that a dictionary, list or tuple holds."""
    if isinstance(value, dict):
        return {key: function(item) for key, item in value.items()}
    if isinstance(value, list):
        return [function(item) for item in value]
    return tuple(function(item) for item in value) if isinstance(value, tuple) else value


def with_tensors(value: Any, from_numpy: Callable[[np.ndarray], Any]) -> Any:
    """Return `value` with its arrays copied as tensors, and NumPy's numbers as Python's."""
    if isinstance(value, np.ndarray):
        return from_numpy(value.copy())
    if isinstance(value, np.generic):
        return value.item()
    return each(lambda item: with_tensors(item, from_numpy), value)


def with_arrays(value: Any, tensor: type) -> Any:
    """Undo `with_tensors`: values of the type `tensor` become arrays."""
    if isinstance(value, tensor):
        return value.numpy()
    return each(lambda item: with_arrays(item, tensor), value)
