#!/usr/bin/env bash
# torch 2.13.0: torch.vmap over a network that has an autograd.Function of its own.
#
# vmap asks such a function for rules of its own even where no gradient can be wanted, under no_grad.
# Both ways of writing the function are refused.
#
# Seen:
#   no_grad alone: outputs right: True
#   vmap, forward(ctx, x): RuntimeError: ... must override the setup_context ...
#   vmap, setup_context: RuntimeError: ... does not have vmap support ...
#
# One would guess otherwise: nothing is recorded, and vmap runs the same forward pass as a function.
#
# Here: the networks' layers have gradients of their own (diplomacy_engine/learning/ops.py), and frozen
# copies play many at once. They do so by slices of one batch, not by vmap.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq torch==2.13.0 numpy==2.4.6
cat >see.py <<'PY'
import torch


class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


class New(Old):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


CASES = {Old: "must override the setup_context", New: "does not have vmap support"}
x, seen = torch.arange(6.0).view(2, 3), []
with torch.no_grad():
    right = all(torch.equal(f.apply(x), x * x) for f in CASES)
    assert torch.equal(torch.vmap(New.forward)(x), x * x)
    for function, message in CASES.items():
        try:
            torch.vmap(function.apply)(x)
        except RuntimeError as error:
            seen.append(message if message in str(error) else str(error))
print(f"no_grad alone: outputs right: {right}")
print(f"vmap, forward(ctx, x): RuntimeError: ... {seen[0]} ...")
print(f"vmap, setup_context: RuntimeError: ... {seen[1]} ...")
assert right and seen == list(CASES.values()), "this has changed"
PY
venv/bin/python -I see.py
