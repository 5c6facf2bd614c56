#!/usr/bin/env bash
# trueskill 0.4.5: a draw of several players, listed in another order.
#
# Three players with ratings of their own draw. `rate` gets them in each of the six orders, with the
# same rank for all. The new ratings depend on the order of the list: the model compares only
# neighbors of the list, and those at its ends are compared through the one between them.
#
# Seen:
#   a, b, c: a 29.476 b 26.168 c 25.376
#   a, c, b: a 29.476 b 26.122 c 25.491
#   b, a, c: a 29.462 b 26.209 c 25.494
#   the rating of c differs by up to 0.118, its deviation by 0.070
#
# One would guess otherwise: players of one rank have no order.
#
# Here: ties are broken at random, so that a tie is worth half a win in whatever order it is listed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq trueskill==0.4.5
cat >see.py <<'PY'
import itertools

import trueskill

model = trueskill.TrueSkill(draw_probability=0.3)
before = {
    "a": model.create_rating(30, 2),
    "b": model.create_rating(25, 5),
    "c": model.create_rating(20, 8),
}
of_c = []
for order in itertools.permutations(before):
    rated = model.rate([(before[name],) for name in order], ranks=[0, 0, 0])
    after = {name: rating for name, (rating,) in zip(order, rated)}
    of_c.append(after["c"])
    if order < order[::-1]:
        print(", ".join(order) + ":", *(f"{n} {after[n].mu:.3f}" for n in before))
means, deviations = [r.mu for r in of_c], [r.sigma for r in of_c]
mean, deviation = max(means) - min(means), max(deviations) - min(deviations)
print(f"the rating of c differs by up to {mean:.3f}, its deviation by {deviation:.3f}")
assert mean > 0.1 and deviation > 0.05, "this has changed"
PY
venv/bin/python -I see.py
