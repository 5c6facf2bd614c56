#!/usr/bin/env bash
# pydip 0.1.8: an attack on the province from which one's supporter is attacked.
#
# Kiel moves to Denmark with support from Sweden, and the unit in Denmark moves to Sweden. By the rules
# that does not cut the support, for it is given against the very province the attack comes from. pydip
# agrees if Denmark has an army. If it has a fleet, nothing moves.
#
# Seen:
#   an army in Denmark: Kiel's army ends in Denmark
#   a fleet in Denmark: Kiel's army ends in Kiel
#
# One would guess otherwise: the rule does not ask for the kind of unit. Fleets stand on a coast's own
# name there ("Denmark Coast"), so the two places are not the same text; why it happens was not looked
# at further.
#
# Here: it is the one difference between pydip and our engine in 186 movement phases of random games.
# Our provinces and their coasts are numbers, and attacks are compared by province.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq pydip==0.1.8
cat >see.py <<'PY'
from pydip.map.predefined.vanilla_dip import generate_map
from pydip.player.command.command import MoveCommand, SupportCommand
from pydip.player.player import Player
from pydip.player.unit import UnitTypes
from pydip.turn.resolve import resolve_turn

BOARD = generate_map()


def player(name, *units):
    held = [{"territory_name": place, "unit_type": kind} for kind, place in units]
    return Player(name, BOARD, held)


def where_kiel_goes(kind, denmark, sweden):
    germany = player("Germany", (UnitTypes.TROOP, "Kiel"), (UnitTypes.TROOP, "Sweden"))
    england = player("England", (kind, denmark))
    kiel, supporter = germany.units
    orders = [
        MoveCommand(germany, kiel, "Denmark"),
        SupportCommand(germany, supporter, kiel, "Denmark"),
        MoveCommand(england, england.units[0], sweden),
    ]
    units = resolve_turn(BOARD, orders)["Germany"]
    return next(unit.position for unit in units if unit.position != "Sweden")


seen = [
    where_kiel_goes(UnitTypes.TROOP, "Denmark", "Sweden"),
    where_kiel_goes(UnitTypes.FLEET, "Denmark Coast", "Sweden Coast"),
]
for kind, place in zip(("an army", "a fleet"), seen):
    print(f"{kind} in Denmark: Kiel's army ends in {place}")
assert seen == ["Denmark", "Kiel"], "this has changed"
PY
venv/bin/python -I see.py
