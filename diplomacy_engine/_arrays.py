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
    return record(
        *[
            array and (np.full(*array) if array[1] else np.zeros(array[0], *array[2:]))
            for array in _arrays_of(record, *sizes.items())
        ]
    )


@lru_cache(maxsize=256)
def _arrays_of(record: type, *sizes: tuple[str, int]) -> list[tuple | None]:
    """(shape, value, type) of each array of a record; None: of a field without one."""
    fields = [getattr(kind, "__metadata__", None) for kind in record.__annotations__.values()]
    lengths = dict(sizes)
    return [
        field and ([_length(axis, lengths) for axis in field[0].split(", ")], *field[:0:-1])
        for field in fields
    ]


def _length(axis: str, sizes: dict[str, int]) -> int:
    terms = [term.split() for term in axis.split(" + ")]
    return sum(math.prod(sizes[w] if w in sizes else int(w) for w in term) for term in terms)
