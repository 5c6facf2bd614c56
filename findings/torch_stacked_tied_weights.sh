#!/usr/bin/env bash
# torch 2.13.0: several networks at once by torch.func, when two layers share a weight.
#
# PyTorch's recipe is stack_module_state, a copy of a network moved to "meta", and vmap over
# functional_call. Moving to "meta" takes shared weights apart (moving to another type does not),
# stack_module_state names a shared weight once, and so the second layer computes with a weight that
# has no data. No error: the outputs are ordinary tensors of the CPU, and wrong.
#
# Seen:
#   shared after .to(float32): True, after .to("meta"): False
#   outputs right with the first: True, with the second: False
#
# One would guess otherwise: .to() keeps weights shared elsewhere, and PyTorch refuses to multiply
# tensors of the CPU and of "meta".
#
# Here: people edit the network, and frozen copies play many at once. They are deep copies with their
# own weights, and each run begins by checking that they choose as the learner does. On "meta" the
# project looks at names and shapes only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq torch==2.13.0 numpy==2.4.6
cat >see.py <<'PY'
import copy

import torch
from torch.func import functional_call, stack_module_state


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3, bias=False)
        self.second = torch.nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


networks, x = [Tied() for _ in range(2)], torch.randn(4, 3)
parameters, buffers = stack_module_state(networks)
right, shared = [], []
for where in (torch.float32, "meta"):
    base = copy.deepcopy(networks[0]).to(where)
    shared.append(base.first.weight is base.second.weight)
    outputs = torch.vmap(lambda *state: functional_call(base, state, (x,)))(parameters, buffers)
    right.append(all(torch.allclose(out, net(x)) for out, net in zip(outputs, networks)))
print(f'shared after .to(float32): {shared[0]}, after .to("meta"): {shared[1]}')
print(f"outputs right with the first: {right[0]}, with the second: {right[1]}")
assert shared == right == [True, False], "this has changed"
PY
venv/bin/python -I see.py
