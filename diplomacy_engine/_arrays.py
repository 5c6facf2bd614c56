"""Records of arrays, such as the state of games, whose fields say what shape and type each has."""

import math
from functools import lru_cache
from typing import TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool]
Int8s = NDArray[np.int8]
Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Uint8s = NDArray[np.uint8]
Uint32s = NDArray[np.uint32]
Uint64s = NDArray[np.uint64]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
_Record = TypeVar("_Record", bound=tuple)


def new_arrays(record: type[_Record], **sizes: int) -> _Record:
    """Return a record with new arrays, `sizes` being what letters stand for; None in other fields.

    A field of an array is `Annotated[Int16s, "V, C + 1"]`, its shape in letters that its record
    explains, and after it what the array is full of, if not zeros.
    """
    return record(
        *[
            array and (np.full(*array) if array[1] else np.zeros(array[0], array[2]))
            for array in _arrays_of(record, *sizes.items())
        ]
    )


@lru_cache(maxsize=256)
def _arrays_of(record: type, *sizes: tuple[str, int]) -> list:
    """Return (shape, value, type) of each array of a record; 0 of a field without one."""
    lengths, arrays = dict(sizes), []
    for kind in record.__annotations__.values():
        shape, value = (*getattr(kind, "__metadata__", ()), 0, 0)[:2]
        axes = shape and [_length(axis, lengths) for axis in shape.split(", ")]
        arrays.append(axes and (axes, value, get_args(get_args(kind.__origin__)[1])[0]))
    return arrays


def _length(axis: str, sizes: dict[str, int]) -> int:
    terms = [term.split() for term in axis.split(" + ")]
    return sum(math.prod(sizes[w] if w in sizes else int(w) for w in term) for term in terms)
