#!/usr/bin/env bash
# textarena 0.7.4: winter in its Diplomacy.
#
# France takes Belgium and Portugal in 1901, and may build two units. The engine lists the builds as
# possible orders, then refuses each of them: it looks for the unit that is ordered, in the province
# where it is to be built. So nobody ever builds; games stay at 22 units, and what a model is said to
# have done wrong is an order from the list that it was given.
#
# Seen:
#   may be ordered at PAR: ['A PAR B', 'WAIVE']
#   A PAR B: No A unit found at PAR for FRANCE
#   France: 5 centers, 3 units
#
# One would guess otherwise: benchmarks of language models play this game.
#
# Here: a test draws orders, and sees that those in the list are accepted and no others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq textarena==0.7.4
cat >see.py <<'PY'
import contextlib
import io

from textarena.envs.Diplomacy.game_engine import DiplomacyGameEngine


def resolve(engine, *orders):
    every_power = {power: [] for power in engine.powers} | {"FRANCE": list(orders)}
    with contextlib.redirect_stdout(io.StringIO()):
        engine.resolve_orders(every_power)


engine = DiplomacyGameEngine()
resolve(engine, "A MAR - SPA", "A PAR - BUR")
resolve(engine)
resolve(engine, "A SPA - POR", "A BUR - BEL")
resolve(engine)
assert engine.phase.value == "Adjustments"
listed = engine.get_possible_orders("FRANCE")
print(f"may be ordered at PAR: {listed.get('PAR')}")
resolve(engine, "A PAR B", "A MAR B")
refused = engine.order_history[-1]["invalid_orders"]["FRANCE"]
france = engine.powers["FRANCE"]
print(f"{refused[0]['orders'][0]}: {refused[0]['reason']}")
print(f"France: {len(france.controlled_centers)} centers, {len(france.units)} units")
assert len(refused) == 2, "this has changed"
assert (len(france.controlled_centers), len(france.units)) == (5, 3), "this has changed"
PY
venv/bin/python -I see.py
