#!/usr/bin/env bash
# gymnasium 1.4.0: two Dict spaces that are equal, and what is flattened from them.
#
# A Dict made of a dictionary sorts its keys; one made of pairs or keywords keeps the order it was
# given. `==` does not look at the order, `flatten` follows it. So one observation has two flat forms
# in spaces that are equal.
#
# Seen:
#   equal: True; flat: [1.0, 2.0] and [2.0, 1.0]
#
# One would guess otherwise: Gymnasium's vector environments compare spaces by == to learn whether
# games fit together.
#
# Here: a policy trained on flat observations plays through other forms of the environment later. With
# flat=True the parts are always in the order of their names, however the space was made.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq gymnasium==1.4.0 numpy==2.4.6
cat >see.py <<'PY'
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.spaces.utils import flatten

parts = {"owner": Box(0, 9, (1,), np.float32), "center": Box(0, 9, (1,), np.float32)}
board = {"center": np.ones(1, np.float32), "owner": np.full(1, 2, np.float32)}
first, second = Dict(parts), Dict(list(parts.items()))
flat = [flatten(space, board).tolist() for space in (first, second)]
print(f"equal: {first == second}; flat: {flat[0]} and {flat[1]}")
assert first == second and flat == [[1, 2], [2, 1]], "this has changed"
PY
venv/bin/python -I see.py
