#!/usr/bin/env bash
# torch 2.13.0: attention over a row that is all padding, such as a power without units.
#
# `nn.MultiheadAttention` gets a key_padding_mask that masks every key. Whether its output is NaN or
# 0 depends on three switches that should not change it: whether weights are returned, whether the
# module trains, and whether gradients are on. A network that is sound in training becomes NaN once it
# plays.
#
# Seen:
#   need_weights=True: NaN, always
#   need_weights=False, train(): 0
#   need_weights=False, eval() with gradients: 0
#   need_weights=False, eval() under no_grad: NaN
#
# One would guess otherwise: NaN everywhere, as the softmax of nothing.
#
# Here: means over provinces and units divide by a count of at least one; nothing is padded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq torch==2.13.0 numpy
cat >see.py <<'PY'
import torch

attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
x, all_padding = torch.randn(1, 4, 8), torch.ones(1, 4, dtype=torch.bool)


def is_nan(need_weights, trains, gradients):
    attention.train(bool(trains))
    with torch.set_grad_enabled(bool(gradients)):
        out, _ = attention(x, x, x, key_padding_mask=all_padding, need_weights=need_weights)
    assert out.isnan().all() or not out.any()
    return bool(out.isnan().any())


always = {is_nan(True, trains, gradients) for trains in (0, 1) for gradients in (0, 1)}
print("need_weights=True:", "NaN, always" if always == {True} else always)
train = is_nan(False, True, True), is_nan(False, True, False)
print("need_weights=False, train():", "NaN" if any(train) else 0)
print("need_weights=False, eval() with gradients:", "NaN" if is_nan(False, False, True) else 0)
played = is_nan(False, False, False)
print("need_weights=False, eval() under no_grad:", "NaN" if played else 0)
assert always == {True} and not any(train) and not is_nan(False, False, True), "this has changed"
assert played, "this has changed"
PY
venv/bin/python -I see.py
