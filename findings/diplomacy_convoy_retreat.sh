#!/usr/bin/env bash
# diplomacy 1.1.2: where a unit may retreat to that an army dislodged which came by sea.
#
# The army in Belgium is dislodged from Holland, and may go to Burgundy and the Ruhr. Dislodged from
# London over the North Sea it may go anywhere next to it: also to Picardy, where a unit stands.
#
# Seen:
#   from HOL by land: BUR, RUH
#   from LON by sea: BUR, HOL, PIC, RUH
#
# One would guess otherwise: the rules open one place more after a convoy, the one that the attacker
# came from, if it is next to the unit. No retreat leads to where a unit stands. The package calls
# itself compliant with the DATC, and agrees with the rules on nearly all positions.
#
# Here: the package's games are read, and our players sit at its server. A slow test plays all its maps
# against it and passes over the places of such retreats alone, by rule.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq diplomacy==1.1.2
cat >see.py <<'PY'
from diplomacy import Game


def retreats(attacker, orders):
    game = Game()
    game.clear_units()
    game.set_units("FRANCE", ["A BEL", "A PIC"])
    game.set_units("ENGLAND", [attacker, "F NTH", "F ENG"])
    game.set_orders("ENGLAND", [*orders, f"F ENG S {attacker} - BEL"])
    game.process()
    assert "A PIC" in game.get_units("FRANCE")
    return sorted(game.get_state()["retreats"]["FRANCE"]["A BEL"])


land = retreats("A HOL", ["A HOL - BEL"])
sea = retreats("A LON", ["A LON - BEL VIA", "F NTH C A LON - BEL"])
print("from HOL by land:", ", ".join(land))
print("from LON by sea:", ", ".join(sea))
assert (land, sea) == (["BUR", "RUH"], ["BUR", "HOL", "PIC", "RUH"]), "this has changed"
PY
venv/bin/python -I see.py
