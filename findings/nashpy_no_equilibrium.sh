#!/usr/bin/env bash
# nashpy 0.0.43: the equilibria of a game of two rows and three columns.
#
# The game has one equilibrium: the row player plays 1/3 and 2/3, the other never plays the first
# column. It is not degenerate: nothing is tied, and fractions show that every unused action is worse.
# `support_enumeration` says that there is none. `vertex_enumeration` and `lemke_howson` give it, and so
# does `support_enumeration` once the unused column is left out.
#
# Seen:
#   what the column player would gain by the first column: -3.67
#   support_enumeration: none
#   support_enumeration, tol=1e-9: (0.333, 0.667), (0.000, 0.714, 0.286)
#   vertex_enumeration: (0.333, 0.667), (0.000, 0.714, 0.286)
#   lemke_howson: (0.333, 0.667), (0.000, 0.714, 0.286)
#   support_enumeration, columns 2 and 3: (0.333, 0.667), (0.714, 0.286)
#   games of whole numbers up to 9 without ties: none is found in 2 of 300
#
# One would guess otherwise: every game has an equilibrium, and this is the method that goes through all
# supports. The share of the unused column comes out as 1.1e-16 instead of 0, and the tolerance is 1e-16;
# with `tol=1e-9` the equilibrium is there. The warning names another cause, a degenerate game.
#
# Here: no solver of games is used. How far a player can be exploited is measured in games against one
# that learns to.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq nashpy==0.0.43 numpy==2.4.6 scipy==1.17.1
cat >see.py <<'PY'
import warnings
from fractions import Fraction

import nashpy
import numpy as np

warnings.simplefilter("ignore")  # of an even number of equilibria
ROWS, COLUMNS = np.array([[3, 2, 5], [1, 4, 0]]), np.array([[3, 6, 2], [1, 5, 7]])


def show(equilibria):
    texts = []
    for pair in equilibria:
        texts.append(", ".join("(" + ", ".join(f"{abs(x):.3f}" for x in s) + ")" for s in pair))
    return "; ".join(texts) or "none"


first, second = [Fraction(1, 3), Fraction(2, 3)], [Fraction(0), Fraction(5, 7), Fraction(2, 7)]
by_row = [sum(int(a) * p for a, p in zip(row, second)) for row in ROWS]
by_column = [sum(int(b) * p for b, p in zip(column, first)) for column in COLUMNS.T]
assert by_row[0] == by_row[1] and by_column[0] < by_column[1] == by_column[2]
print(f"what the column player would gain by the first column: {float(by_column[0] - by_column[1]):.2f}")
game = nashpy.Game(ROWS, COLUMNS)
supports = list(game.support_enumeration())
vertices = list(game.vertex_enumeration())
print("support_enumeration:", show(supports))
tolerant = list(game.support_enumeration(tol=1e-9))
print("support_enumeration, tol=1e-9:", show(tolerant))
print("vertex_enumeration:", show(vertices))
print("lemke_howson:", show([game.lemke_howson(initial_dropped_label=0)]))
smaller = list(nashpy.Game(ROWS[:, 1:], COLUMNS[:, 1:]).support_enumeration())
print("support_enumeration, columns 2 and 3:", show(smaller))
draws, empty, games = np.random.default_rng(0), 0, 0
while games < 300:
    a, b = draws.integers(0, 10, (2, 2, 3))
    if (a[0] != a[1]).all() and all(len(set(row)) == 3 for row in b.tolist()):
        games += 1
        empty += not list(nashpy.Game(a, b).support_enumeration())
print(f"games of whole numbers up to 9 without ties: none is found in {empty} of {games}")
counts = [len(x) for x in (supports, tolerant, vertices, smaller)]
assert counts == [0, 1, 1, 1] and empty, "this has changed"
PY
venv/bin/python -I see.py
