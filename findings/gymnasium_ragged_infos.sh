#!/usr/bin/env bash
# gymnasium 1.4.0: SyncVectorEnv over environments whose `info` has arrays of differing length.
#
# The first environment's array decides the shape, and the others are assigned into it. An array of
# three and one of two is a ValueError. An array of three and one of one is none: the single number is
# repeated, so the second environment's list of one legal action becomes that action three times.
#
# Seen:
#   lengths 3 and 2: ValueError
#   lengths 3 and 1: [[0, 1, 2], [7, 7, 7]]
#   lengths 1 and 3: ValueError
#
# One would guess otherwise: `info` may hold anything, and values that do not fit together become an
# array of objects, as final observations do.
#
# Here: the number of legal orders differs from unit to unit and from game to game. `info` has arrays
# of one shape in all games and at all steps.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq gymnasium==1.4.0 numpy==2.4.6
cat >see.py <<'PY'
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class Game(gymnasium.Env):
    observation_space, action_space = Box(0, 1, (1,)), Discrete(8)

    def __init__(self, legal):
        self.legal = np.array(legal)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {"legal": self.legal}


def infos(*legal):
    games = gymnasium.vector.SyncVectorEnv([lambda a=a: Game(a) for a in legal])
    try:
        return games.reset()[1]["legal"].tolist()
    except ValueError as error:
        return type(error).__name__


seen = [infos(*legal) for legal in (([0, 1, 2], [6, 7]), ([0, 1, 2], [7]), ([7], [0, 1, 2]))]
for lengths, found in zip(("3 and 2", "3 and 1", "1 and 3"), seen):
    print(f"lengths {lengths}: {found}")
assert seen == ["ValueError", [[0, 1, 2], [7, 7, 7]], "ValueError"], "this has changed"
PY
venv/bin/python -I see.py
