#!/usr/bin/env bash
# diplomacy 1.1.2: `Game.set_orders` a second time in one phase.
#
# It adds to what was set before, where the same request to the package's server replaces it. In
# winter, builds that were ordered first win: taking both back by WAIVE does nothing.
#
# Seen:
#   spring: A PAR - BUR, then A MAR - SPA: ['A PAR - BUR', 'A MAR - SPA']
#   winter: A PAR B and A BRE B, then WAIVE twice: ['A PAR B', 'A BRE B']
#   after clear_orders: []
#
# One would guess otherwise by the name, by the server, and since in spring a second order for one unit
# does replace its first.
#
# Here: `Game.submit` replaces a power's orders, on our server commands as in Python. A program that
# plays in both engines calls clear_orders first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq diplomacy==1.1.2
cat >see.py <<'PY'
from diplomacy import Game

game = Game()
game.set_orders("FRANCE", ["A PAR - BUR"])
game.set_orders("FRANCE", ["A MAR - SPA"])
spring = game.get_orders("FRANCE")
print("spring: A PAR - BUR, then A MAR - SPA:", spring)
again = Game()
again.set_orders("FRANCE", ["A PAR - BUR"])
again.set_orders("FRANCE", ["A PAR - PIC"])
assert again.get_orders("FRANCE") == ["A PAR - PIC"], "this has changed"

game.clear_units()
game.set_units("FRANCE", ["A SPA"])
game.set_centers("FRANCE", ["SPA", "PAR", "BRE"], reset=True)
game.set_current_phase("W1901A")
game.clear_orders()
game.set_orders("FRANCE", ["A PAR B", "A BRE B"])
game.set_orders("FRANCE", ["WAIVE", "WAIVE"])
winter = game.get_orders("FRANCE")
print("winter: A PAR B and A BRE B, then WAIVE twice:", winter)
game.clear_orders("FRANCE")
game.set_orders("FRANCE", ["WAIVE", "WAIVE"])
print("after clear_orders:", game.get_orders("FRANCE"))
assert spring == ["A PAR - BUR", "A MAR - SPA"], "this has changed"
assert winter == ["A PAR B", "A BRE B"] and not game.get_orders("FRANCE"), "this has changed"
PY
venv/bin/python -I see.py
