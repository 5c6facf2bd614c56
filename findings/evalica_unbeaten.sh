#!/usr/bin/env bash
# evalica 0.4.2: Bradley-Terry scores when one player has never lost.
#
# `a` has beaten `b` and `c`, who have beaten each other once. `elo`, `average_win_rate`, `counting` and
# `pagerank` put `a` first. `bradley_terry` and `newman` give all three the same score, a millionth,
# without an error or a warning: the likelihood has no maximum, the scores of the beaten run to zero,
# and what is returned is the floor under them, for the unbeaten, too. The ranking is a tie.
#
# Seen:
#   elo: a first
#   average_win_rate: a first
#   counting: a first
#   pagerank: a first
#   bradley_terry: all equal (1e-06)
#   newman: all equal (1e-06)
#
# One would guess otherwise: that the unbeaten player has the highest score, or that it is refused.
#
# Here: ratings have a prior, so that the unbeaten player is first, and by how much is finite.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq evalica==0.4.2
cat >see.py <<'PY'
import evalica
from evalica import Winner

first, second = ["a", "a", "b", "b"], ["b", "c", "c", "c"]
winners = [Winner.X, Winner.X, Winner.X, Winner.Y]
methods = ("elo", "average_win_rate", "counting", "pagerank", "bradley_terry", "newman")
seen = {}
for method in methods:
    scores = getattr(evalica, method)(first, second, winners).scores.to_dict()
    seen[method] = sorted(scores, key=scores.get)[-1] if len({*scores.values()}) > 1 else "nobody"
    shown = f"all equal ({scores['a']:g})" if seen[method] == "nobody" else f"{seen[method]} first"
    print(f"{method}: {shown}")
assert all(seen[method] == "a" for method in methods[:4]), "this has changed"
assert all(seen[method] == "nobody" for method in methods[4:]), "this has changed"
PY
venv/bin/python -I see.py
