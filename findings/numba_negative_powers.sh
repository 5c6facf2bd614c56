#!/usr/bin/env bash
# numba 0.68.1: a whole number to a negative power.
#
# `2 ** -3` is 0.125 in Python, and NumPy refuses it for integers. Compiled it is 0, an integer and
# without a word, whether the exponent is a variable or written out. With a float as base, all three
# agree. So a discount such as `2 ** -age` is 1 for age 0 and else nothing.
#
# Seen:
#   2 ** -3: Python 0.125, NumPy ValueError, compiled 0
#   2.0 ** -3: Python 0.125, NumPy 0.125, compiled 0.125
#
# One would guess otherwise: what cannot be an integer is a float, or an error.
#
# Here: bases are floats.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq numba==0.68.1 numpy==2.4.6
cat >see.py <<'PY'
import numpy as np
from numba import njit


def power(base, exponent):
    return base ** exponent


@njit
def written_out(base):
    return base ** -3


def by_numpy(base):
    try:
        return float(power(np.array([base]), np.array([-3]))[0])
    except ValueError as error:
        return type(error).__name__


compiled = njit(power)
for base in (2, 2.0):
    print(f"{base} ** -3: Python {power(base, -3)}, NumPy {by_numpy(base)}, compiled {compiled(base, -3)}")
assert (power(2, -3), by_numpy(2)) == (0.125, "ValueError")
assert compiled(2, -3) == written_out(2) == 0, "this has changed"
assert compiled(2.0, -3) == by_numpy(2.0) == 0.125
PY
venv/bin/python -I see.py
