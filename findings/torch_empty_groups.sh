#!/usr/bin/env bash
# torch 2.13.0: sums, means and maxima of groups of which one is empty, and whole numbers behind a mask.
#
# Rows of three games, of which the second has none. `segment_reduce` takes lengths, `scatter_reduce`
# the number of each row's game, with `include_self=False`. For the empty game the first has a mean of
# NaN and a maximum of -inf, the other what was in the result before: 0, which is the best of all when
# the others are below 0. `torch.masked` over padding agrees with the first; but of whole numbers its
# `logsumexp` is a whole number, too, cut off, where `torch.logsumexp` makes them floats.
#
# Seen:
#   mean of -1, -3 | nothing | -5, -7: segment_reduce [-2.0, nan, -6.0], scatter_reduce [-2.0, 0.0, -6.0]
#   max of the same: segment_reduce [-1.0, -inf, -5.0], scatter_reduce [-1.0, 0.0, -5.0]
#   logsumexp of 1, 2: torch 2.3133, torch.masked with one more masked 2
#
# One would guess otherwise: that the two give one answer, and that a mask changes no kind of number.
#
# Here: lists of legal orders differ in length. They are reduced by lengths, in compiled loops, and no
# list is empty.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq torch==2.13.0 numpy
cat >see.py <<'PY'
import torch

values = torch.tensor([-1.0, -3.0, -5.0, -7.0])
lengths, game = torch.tensor([2, 0, 2]), torch.tensor([0, 0, 2, 2])
seen = {}
for segment, scatter in (("mean", "mean"), ("max", "amax")):
    by_length = torch.segment_reduce(values, segment, lengths=lengths).tolist()
    by_game = torch.zeros(3).scatter_reduce(0, game, values, scatter, include_self=False).tolist()
    seen[segment] = by_length[1], by_game[1]
    what = "mean of -1, -3 | nothing | -5, -7" if segment == "mean" else "max of the same"
    print(f"{what}: segment_reduce {by_length}, scatter_reduce {by_game}")
whole, mask = torch.tensor([1, 2, 9]), torch.tensor([True, True, False])
plain = torch.logsumexp(whole[:2], 0).item()
masked = torch.masked.logsumexp(whole, 0, mask=mask).item()
print(f"logsumexp of 1, 2: torch {plain:.4f}, torch.masked with one more masked {masked}")
assert str(seen["mean"]) == "(nan, 0.0)" and str(seen["max"]) == "(-inf, 0.0)", "this has changed"
assert masked == 2 and abs(plain - 2.3133) < 1e-3, "this has changed"
PY
venv/bin/python -I see.py
