#!/usr/bin/env bash
# openskill 6.2.0: a first game of seven newcomers, rated by its five models.
#
# One wins, six share the last place. Four models leave each player a deviation of 6.5 to 8.3, of 8.33
# before. ThurstoneMostellerFull leaves the six 0.083: each pair takes its share of the variance away,
# all from the variance before the game, and ties take most. With five ties or more nothing is left,
# and the least it may be, a ten-thousandth, is what remains. The six are thereby known for good: if
# one of them wins the next game, its rating rises by 0.02, and the first winner's falls by ten.
#
# Seen:
#   PlackettLuce: least deviation 8.29, the next winner gains 2.41
#   BradleyTerryFull: least deviation 6.56, the next winner gains 13.10
#   BradleyTerryPart: least deviation 8.07, the next winner gains 2.56
#   ThurstoneMostellerPart: least deviation 8.20, the next winner gains 2.08
#   ThurstoneMostellerFull: least deviation 0.08, the next winner gains 0.02
#
# One would guess otherwise: a rating after one game is a guess, whatever the model.
#
# Here: ratings follow Plackett and Luce, fitted to all games at once.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq openskill==6.2.0
cat >see.py <<'PY'
from openskill.models import (
    BradleyTerryFull,
    BradleyTerryPart,
    PlackettLuce,
    ThurstoneMostellerFull,
    ThurstoneMostellerPart,
)

FIRST_WINS = [0, 1, 1, 1, 1, 1, 1]
LAST_WINS = FIRST_WINS[::-1]


def two_games(make_model):
    """Return the least deviation after the first game, and what the second one's winner gains."""
    model = make_model()
    newcomers = [[model.rating()] for _ in range(7)]
    after_one = model.rate(newcomers, ranks=FIRST_WINS)
    after_two = model.rate(after_one, ranks=LAST_WINS)
    return min(team[0].sigma for team in after_one), after_two[6][0].mu - after_one[6][0].mu


models = [
    PlackettLuce,
    BradleyTerryFull,
    BradleyTerryPart,
    ThurstoneMostellerPart,
    ThurstoneMostellerFull,
]
seen = {model.__name__: two_games(model) for model in models}
for name, (deviation, gain) in seen.items():
    print(f"{name}: least deviation {deviation:.2f}, the next winner gains {gain:.2f}")
deviation, gain = seen.pop("ThurstoneMostellerFull")
assert deviation < 0.1 and gain < 0.1, "this has changed"
assert all(deviation > 6 and gain > 2 for deviation, gain in seen.values()), "this has changed"
PY
venv/bin/python -I see.py
