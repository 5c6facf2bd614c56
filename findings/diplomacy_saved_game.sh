#!/usr/bin/env bash
# diplomacy 1.1.2: what a game has lost when it is read back from its saved form.
#
# to_saved_game_format and from_saved_game_format keep phases, orders, results and messages. They do
# not keep how a game ended, nor that errors in orders are passed over: a game that was drawn is read
# as `forming`, without an outcome, though its phase is COMPLETED. Its note says "Victory by" before as
# after. Game.to_dict and Game.from_dict keep all of it.
#
# Seen:
#   before:      completed ['S1901M', 'FRANCE', 'ITALY'] Victory by: FRA, ITA ['NO_PRESS', 'IGNORE_ERRORS']
#   saved game:  forming [] Victory by: FRA, ITA ['NO_PRESS']
#   dict:        completed ['S1901M', 'FRANCE', 'ITALY'] Victory by: FRA, ITA ['NO_PRESS', 'IGNORE_ERRORS']
#
# One would guess otherwise: the saved form is what the package's games are published in, and who
# counts outcomes of games that were read finds none, without an error.
#
# Here: how a game ended is read from its note.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq diplomacy==1.1.2
cat >see.py <<'PY'
import json

from diplomacy import Game
from diplomacy.utils.export import from_saved_game_format, to_saved_game_format


def facts(game):
    return game.status, game.outcome, game.note, game.rules


def through_json(value):
    return json.loads(json.dumps(value))


game = Game(rules=["NO_PRESS", "IGNORE_ERRORS"])
game.draw(["FRANCE", "ITALY"])
before = facts(game)
saved = from_saved_game_format(through_json(to_saved_game_format(game)))
from_dict = Game.from_dict(through_json(game.to_dict()))
for title, one in (("before", before), ("saved game", facts(saved)), ("dict", facts(from_dict))):
    print(f"{title + ':':12} {' '.join(map(str, one))}")
assert saved.get_current_phase() == "COMPLETED"
assert facts(saved) == ("forming", [], "Victory by: FRA, ITA", ["NO_PRESS"]), "this has changed"
assert facts(from_dict) == before, "this has changed"
PY
venv/bin/python -I see.py
