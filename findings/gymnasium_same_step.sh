#!/usr/bin/env bash
# gymnasium 1.4.0: its own wrappers of observations on vector environments that reset in the same step.
#
# AutoresetMode.SAME_STEP is one of Gymnasium's three modes, and the one without a dead step after
# each episode. The vector wrappers that change observations refuse it; those that change rewards or
# record episodes take it.
#
# Seen:
#   SAME_STEP, FlattenObservation: ValueError
#   SAME_STEP, NormalizeObservation: ValueError
#   and six lines that end with ok: the other two wrappers, and all four with NEXT_STEP
#
# One would guess otherwise: both the modes and the wrappers are Gymnasium's own.
#
# Here: the vector environments reset in the same step, as a game of Diplomacy is short and a dead step
# costs. So flat, scaled observations are a setting of the environments, flat=True.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq gymnasium==1.4.0 numpy==2.4.6
cat >see.py <<'PY'
import gymnasium
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector

WRAPPERS = ("FlattenObservation", "NormalizeObservation", "NormalizeReward", "RecordEpisodeStatistics")
seen = {}
for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
    for name in WRAPPERS:
        games = gymnasium.make_vec(
            "CartPole-v1", 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}
        )
        try:
            getattr(vector, name)(games)
            seen[mode.name, name] = "ok"
        except ValueError as error:
            assert "autoreset_mode" in str(error)
            seen[mode.name, name] = "ValueError"
for (mode, name), found in seen.items():
    print(f"{mode}, {name}: {found}")
assert list(seen.values()) == ["ValueError"] * 2 + ["ok"] * 6, "this has changed"
PY
venv/bin/python -I see.py
