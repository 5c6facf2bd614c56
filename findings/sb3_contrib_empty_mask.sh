#!/usr/bin/env bash
# sb3-contrib 2.9.2 with stable-baselines3 2.9.2 and torch 2.13.0: a mask that allows nothing.
#
# MaskablePPO sets the logits of masked actions to one large negative number, so where all are masked
# all are alike: an action is drawn uniformly, and every one of them is illegal. There is no error, and
# the distribution says of itself that its entropy is 0. In a MultiDiscrete space, where an entry
# stands for a unit that there may or may not be, such a mask comes easily.
#
# Seen:
#   one of four allowed: probabilities [1.0, 0.0, 0.0, 0.0], entropy 0.0
#   none of four:        probabilities [0.25, 0.25, 0.25, 0.25], entropy 0.0
#
# One would guess otherwise: an error, or no action.
#
# Here: an entry without a unit may only be 0, "no order", so a mask always allows something.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq torch==2.13.0
venv/bin/pip install -qq sb3-contrib==2.9.2 stable-baselines3==2.9.2
cat >see.py <<'PY'
import numpy as np
import torch
from sb3_contrib.common.maskable.distributions import MaskableCategorical

masks = np.array([[True, False, False, False], [False, False, False, False]])
torch.manual_seed(1)
one, none = (MaskableCategorical(logits=torch.randn(1, 4), masks=mask[None]) for mask in masks)
for title, distribution in (("one of four allowed:", one), ("none of four:", none)):
    entropy = abs(float(distribution.entropy()))
    print(f"{title:20} probabilities {distribution.probs[0].tolist()}, entropy {entropy}")
assert one.probs.tolist() == [[1, 0, 0, 0]]
assert none.probs.tolist() == [[0.25] * 4] and float(none.entropy()) == 0, "this has changed"
assert set(none.sample((100,)).flatten().tolist()) == {0, 1, 2, 3}, "this has changed"
PY
venv/bin/python -I see.py
