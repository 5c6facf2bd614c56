#!/usr/bin/env bash
# numba 0.68.1 with numpy 2.4.6: a member of an IntEnum as a number.
#
# Compiled, a member is an index of an array, an exponent, the length of a range, and np.int64() of it
# is its number. But int(), float(), bool() and min() of it are not compiled. In Python all are the
# same number, for a member is an int.
#
# Seen:
#   a[k] 1, 2**k 2, len(range(k)) 1, np.int64(k) 1; int(k), float(k), bool(k), min(k, 3) TypingError
#
# One would guess otherwise: what can be an index can be made an int.
#
# Here: a kernel that another one calls takes members as int64 (`get_call_template` in _jit.py), so
# in it they are plain numbers, and no kernel converts a member that it names itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq numba==0.68.1 numpy==2.4.6
cat >see.py <<'PY'
from enum import IntEnum

import numba
import numpy as np


class Kind(IntEnum):
    ARMY = 0
    FLEET = 1


WAYS = {
    "a[k]": lambda k, a: a[k],
    "2**k": lambda k, a: 2**k,
    "len(range(k))": lambda k, a: len(range(k)),
    "np.int64(k)": lambda k, a: np.int64(k),
    "int(k)": lambda k, a: int(k),
    "float(k)": lambda k, a: float(k),
    "bool(k)": lambda k, a: bool(k),
    "min(k, 3)": lambda k, a: min(k, 3),
}
seen = {}
for way, function in WAYS.items():
    assert function(Kind.FLEET, np.arange(4)) == (2 if way == "2**k" else 1), way
    try:
        seen[way] = int(numba.njit(function)(Kind.FLEET, np.arange(4)))
    except numba.TypingError:
        seen[way] = "TypingError"
print(*(f"{way} {value}" for way, value in seen.items()), sep="\n")
assert [*seen.values()] == [1, 2, 1, 1, *["TypingError"] * 4], "this has changed"
PY
venv/bin/python -I see.py
