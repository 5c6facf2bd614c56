#!/usr/bin/env bash
# pydip 0.1.8: the names of Bulgaria's coasts.
#
# Its board has the same 75 provinces and the same borders as the `diplomacy` package's, for armies and
# for fleets. But Bulgaria's coast on the Black Sea, everywhere else the east coast, is its north coast.
#
# Seen:
#   pydip: ['Bulgaria North Coast', 'Bulgaria South Coast']; Black Sea borders Bulgaria North Coast
#   diplomacy: ['BUL/EC', 'BUL/SC']; BLA borders BUL/EC
#
# One would guess otherwise: the coasts' names are part of the board, and of the rules' notation. Spain
# and St. Petersburg do have a north coast, so a reader of orders takes "/NC" without a complaint.
#
# Here: every reader of ours knows the coasts of each province, and refuses one that it does not have.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq pydip==0.1.8 diplomacy==1.1.2
cat >see.py <<'PY'
from diplomacy import Map
from pydip.map.predefined.vanilla_dip import generate_map

theirs, board = generate_map(), Map("standard")
names = sorted(name for name in theirs.name_map if name.startswith("Bulgaria "))
near = sorted(name for name in theirs.adjacency["Black Sea"] if name.startswith("Bulgaria "))
codes = sorted(place for place in map(str.upper, board.locs) if place.startswith("BUL/"))
coasts = sorted(place for place in codes if board.abuts("F", "BLA", "-", place))
print(f"pydip: {names}; Black Sea borders {', '.join(near)}")
print(f"diplomacy: {codes}; BLA borders {', '.join(coasts)}")
assert names == ["Bulgaria North Coast", "Bulgaria South Coast"], "this has changed"
assert near == names[:1] and codes == ["BUL/EC", "BUL/SC"] and coasts == codes[:1], "this has changed"
PY
venv/bin/python -I see.py
