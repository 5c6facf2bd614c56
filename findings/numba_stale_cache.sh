#!/usr/bin/env bash
# numba 0.68.1: `cache=True` over two modules.
#
# A compiled function is kept by the date of its own file. What it calls in another module has been
# compiled into it, and that file is not looked at: after an edit there the old machine code goes on,
# without a word, in every later process.
#
# Seen:
#   before the edit: 2; after it: play(1) = 2, but pay(1) = 101
#
# One would guess otherwise, unless one has read the limits of caching in Numba's manual: the called
# function is itself decorated with cache=True, and called directly it is compiled anew.
#
# Here: adjudication, legal orders and bots are kernels in some thirty files that call each other. The
# project has a folder of kernels for each hash of all these files (diplomacy_engine/_jit.py).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq numba==0.68.1 numpy==2.4.6
cat >see.py <<'PY'
import os
import subprocess
import sys
from pathlib import Path

RULES = "from numba import njit\n\n@njit(cache=True)\ndef pay(x):\n    return x + {}\n"
GAME = "from numba import njit\nimport rules\n\n@njit(cache=True)\ndef play(x):\n    return rules.pay(x)\n"


def run(code):
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(found.stdout)


os.environ["NUMBA_CACHE_DIR"] = str(Path("kept").resolve())
Path("rules.py").write_text(RULES.format(1))
Path("game.py").write_text(GAME)
before = run("import game; print(game.play(1))")
Path("rules.py").write_text(RULES.format(100))
after = run("import game; print(game.play(1))"), run("import rules; print(rules.pay(1))")
print(f"before the edit: {before}; after it: play(1) = {after[0]}, but pay(1) = {after[1]}")
assert (before, *after) == (2, 2, 101), "this has changed"
PY
venv/bin/python -I see.py
