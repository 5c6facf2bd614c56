#!/usr/bin/env bash
# torch 2.13.0 with numpy 2.4.6: a method under `torch.compile` that takes NumPy arrays.
#
# Under torch.no_grad() it works. Under torch.inference_mode() its first call ends with an
# AssertionError that calls itself a bug: the array, made a tensor while the method is compiled, does
# not have the dispatch keys that the guard expects. The backend does not matter; here it is "eager".
#
# Seen:
#   no_grad: 6.0
#   inference_mode: AssertionError: Guard failed on the same frame it was created.
#
# One would guess otherwise: torch.compile takes NumPy arrays by its manual, and inference_mode is
# described as a faster no_grad.
#
# Here: policies read boards as NumPy arrays, and frozen copies play under inference_mode. So
# torch.compile around such a method is refused before training; around a layer it is fine.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq torch==2.13.0 numpy==2.4.6
cat >see.py <<'PY'
import numpy as np
import torch


class Policy:
    @torch.compile(backend="eager")
    def encode(self, board):
        return torch.from_numpy(board).sum() * 2


def outcome(mode):
    torch.compiler.reset()
    try:
        with mode():
            return str(Policy().encode(np.ones(3, np.float32)).item())
    except AssertionError as error:
        return f"AssertionError: {str(error).partition(' This is')[0]}"


seen = {mode.__name__: outcome(mode) for mode in (torch.no_grad, torch.inference_mode)}
for name, text in seen.items():
    print(f"{name}: {text}")
assert seen["no_grad"] == "6.0", "this has changed"
assert seen["inference_mode"].startswith("AssertionError: Guard failed"), "this has changed"
PY
venv/bin/python -I see.py
