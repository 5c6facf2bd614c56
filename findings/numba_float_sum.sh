#!/usr/bin/env bash
# numba 0.68.1 with numpy 2.4.6: the sum of a float32 array in compiled code.
#
# Numba adds one number after the other into a float32, where NumPy adds by halves. From 16,777,216
# on, adding 1 changes nothing any more, so a compiled sum of ones stops there, and the mean of
# 33,554,432 ones is a half. No warning.
#
# Seen:
#   sum of 33554432 ones: compiled 16777216.0, plain 33554432.0
#   mean: compiled 0.5, plain 1.0
#
# One would guess otherwise: Numba lists `sum` and `mean` as supported, and the same function gives
# the right number as plain Python. A rounding error of some digits would be no surprise, a half is.
#
# Here: kernels hold millions of float32 numbers. They add up short rows only, such as the orders of
# one board; means over a batch are PyTorch's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq numba==0.68.1 numpy==2.4.6
cat >see.py <<'PY'
import numba
import numpy as np


def total(x):
    return x.sum()


def mean(x):
    return x.mean()


ones = np.ones(2**25, np.float32)
seen = {}
for function in (total, mean):
    seen[function.__name__] = float(numba.njit(function)(ones)), float(function(ones))
print(f"sum of {len(ones)} ones: compiled {seen['total'][0]}, plain {seen['total'][1]}")
print(f"mean: compiled {seen['mean'][0]}, plain {seen['mean'][1]}")
assert seen == {"total": (2.0**24, 2.0**25), "mean": (0.5, 1.0)}, "this has changed"
PY
venv/bin/python -I see.py
