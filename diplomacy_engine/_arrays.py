"""Records of arrays, such as the state of games, whose fields say what shape and type each has."""

import math
from functools import lru_cache
from typing import Annotated, Any

import numpy as np


def shaped(shape: str, kind: type, fill: int = 0) -> Any:
    """The type of such a field, as in `shaped("V, C + 1", np.int16)`; its record explains V, C."""
    return Annotated[np.ndarray, shape, kind, fill]


def new_arrays(record: type, **sizes: int) -> Any:
    """Return a record with new arrays, `sizes` being what letters stand for; None in other fields.

    Each array is full of what its field says, or zeros.
    """
    arrays = []
    for kind in record.__annotations__.values():
        shape, *rest = getattr(kind, "__metadata__", (None,))
        arrays.append(shape and np.full([_length(a, sizes) for a in _axes(shape)], *reversed(rest)))
    return record(*arrays)


@lru_cache(maxsize=256)
def _axes(shape: str) -> list[list[list[str]]]:
    return [[term.split() for term in axis.split(" + ")] for axis in shape.split(", ")]


def _length(axis: list[list[str]], sizes: dict[str, int]) -> int:
    return sum(math.prod(sizes[w] if w in sizes else int(w) for w in term) for term in axis)
