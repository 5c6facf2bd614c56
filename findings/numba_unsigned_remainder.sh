#!/usr/bin/env bash
# numba 0.68.1 with numpy 2.4.6: `x % n` of an unsigned hash and a signed count.
#
# Compiled, the unsigned number is read as a signed one, and for hashes from 2**63 on the remainder is
# that of a negative number. As plain Python (NUMBA_DISABLE_JIT=1) NumPy makes both a float64, which
# loses the last digits. So one line has two answers, and both are wrong.
#
# Seen:
#   9223372036854775809 % 10: compiled 3, plain 8.0, by Python's whole numbers 9
#
# One would guess otherwise: the two would agree, since NUMBA_DISABLE_JIT is what one debugs with,
# or one of them would be right.
#
# Here: each game draws from a uint64 state of its own. A draw keeps the upper 32 bits and makes them
# an int64 before anything else is done with them, so compiled and plain games are the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq numba==0.68.1 numpy==2.4.6
cat >see.py <<'PY'
import numba
import numpy as np


def remainder(x, n):
    return x % n


x, n = np.uint64(2**63 + 1), np.int64(10)
seen = numba.njit(remainder)(x, n), remainder(x, n).item(), int(x) % int(n)
print("{} % {}: compiled {}, plain {}, by Python's whole numbers {}".format(int(x), int(n), *seen))
assert seen == (3, 8.0, 9), "this has changed"
PY
venv/bin/python -I see.py
