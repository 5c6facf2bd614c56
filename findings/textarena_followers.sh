#!/usr/bin/env bash
# textarena 0.7.4: an army that follows another one, in its Diplomacy.
#
# Paris moves to Burgundy, and the army that is in Burgundy moves on. Where that army bounces and stays,
# the follower comes in all the same: two armies stand in Burgundy, and Paris is empty. Whether a move
# succeeds is counted for each province by itself, from the units that order something there.
#
# Seen:
#   Burgundy stays:  A BUR, A PAR, F BRE
#   Munich is empty: A BUR, A MUN, F BRE
#   Munich bounces:  A BUR, A BUR, F BRE
#
# One would guess otherwise: that a province holds one unit is the game's first rule.
#
# Here: tests adjudicate random positions a second time, by another program.
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


def resolve(engine, **orders):
    every_power = {power: orders.get(power, []) for power in engine.powers}
    with contextlib.redirect_stdout(io.StringIO()):
        engine.resolve_orders(every_power)


def in_autumn(burgundy, germany):
    engine = DiplomacyGameEngine()
    resolve(engine, FRANCE=["A MAR - BUR"])
    resolve(engine)
    resolve(engine, FRANCE=[f"A BUR {burgundy}", "A PAR - BUR"], GERMANY=germany)
    assert not any(engine.order_history[-1]["invalid_orders"].values())
    return sorted(str(unit) for unit in engine.powers["FRANCE"].units)


stays = in_autumn("H", [])
moves_on = in_autumn("- MUN", ["A MUN - TYR"])
bounces = in_autumn("- MUN", ["A MUN - RUH", "A BER - MUN"])
print(f"Burgundy stays:  {', '.join(stays)}")
print(f"Munich is empty: {', '.join(moves_on)}")
print(f"Munich bounces:  {', '.join(bounces)}")
assert moves_on == ["A BUR", "A MUN", "F BRE"]
assert bounces == ["A BUR", "A BUR", "F BRE"], "this has changed"
PY
venv/bin/python -I see.py
