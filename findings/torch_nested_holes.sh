#!/usr/bin/env bash
# torch 2.13.0: the sum of a jagged nested tensor whose rows have lengths.
#
# `nested_tensor_from_jagged(values, offsets, lengths)` makes rows that do not fill their place: ragged
# decisions in a buffer, say. Reducing along the ragged axis is refused. But `sum()` and `mean()` of
# the whole tensor are taken over `values`, what lies between the rows included.
#
# Seen (two rows of ones, of lengths 2 and 3, in places of 4 and 6 full of hundreds):
#   number of elements in the rows: 5
#   sum: 505.0
#   mean: 50.5
#   sum along the rows: RuntimeError
#
# One would guess otherwise: a sum of 5 and a mean of 1, or an error as for the axis.
#
# Here: ragged arrays are dense, and have edges alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq torch==2.13.0 numpy
cat >see.py <<'PY'
import torch

values = torch.full((10, 1), 100.0)
values[0:2] = values[4:7] = 1.0
offsets, lengths = torch.tensor([0, 4, 10]), torch.tensor([2, 3])
rows = torch.nested.nested_tensor_from_jagged(values, offsets, lengths)
count = sum(row.numel() for row in rows.unbind())
assert all((row == 1).all() for row in rows.unbind())
print("number of elements in the rows:", count)
print("sum:", rows.sum().item())
print("mean:", rows.mean().item())
try:
    rows.sum(1)
    refused = False
except RuntimeError:
    refused = True
    print("sum along the rows: RuntimeError")
assert count == 5 and rows.sum() == 505 and rows.mean() == 50.5 and refused, "this has changed"
PY
venv/bin/python -I see.py
