#!/usr/bin/env bash
# torch 2.13.0: the row of an embedding that stands for padding.
#
# `nn.Embedding(padding_idx=0)` says that this row "is not updated during training". Its gradient is 0.
# But an optimizer's weight decay moves it, Adam's by the whole step, whatever the decay; and with
# `max_norm` looking it up rescales it, in training or not.
#
# Seen (the row was 1 everywhere; one step of size 0.1):
#   SGD, weight decay 0.1: 0.9900
#   AdamW, weight decay 0.1: 0.9900
#   Adam, weight decay 0.1: 0.9000
#   looked up with max_norm=0.5 under no_grad: 0.3536
#
# One would guess otherwise: the row stays as it was set.
#
# Here: there is no padding row; ragged lists have lengths.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq torch==2.13.0 numpy
cat >see.py <<'PY'
import torch


def table(**options):
    embedding = torch.nn.Embedding(3, 2, padding_idx=0, **options)
    with torch.no_grad():
        embedding.weight[0] = 1.0
    return embedding


seen = {}
for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.Adam):
    embedding = table()
    optimizer = kind(embedding.parameters(), lr=0.1, weight_decay=0.1)
    embedding(torch.tensor([0, 1])).sum().backward()
    assert not embedding.weight.grad[0].any()
    optimizer.step()
    seen[f"{kind.__name__}, weight decay 0.1"] = embedding.weight[0, 0].item()
embedding = table(max_norm=0.5)
with torch.no_grad():
    embedding(torch.tensor([0]))
seen["looked up with max_norm=0.5 under no_grad"] = embedding.weight[0, 0].item()
for name, value in seen.items():
    print(f"{name}: {value:.4f}")
assert all(value < 0.995 for value in seen.values()), "this has changed"
PY
venv/bin/python -I see.py
