#!/usr/bin/env bash
# tbparse 0.0.9: a run that was resumed from an earlier step.
#
# A run writes steps 0 to 4, stops, is resumed from step 3, and says so to the writer with
# `purge_step=3`. TensorBoard's reader drops what the first file has from there on. tbparse, which uses
# that reader on each file by itself, keeps it: steps 3 and 4 have two values, in one table without a
# column that tells them apart. With `pivot=True` these are lists, and the whole column is no number.
#
# Seen:
#   tensorboard: 0: 0, 1: 1, 2: 2, 3: 13, 4: 14, 5: 15
#   tbparse: 0: 0, 1: 1, 2: 2, 3: 3, 3: 13, 4: 4, 4: 14, 5: 15
#   tbparse, pivot: 0: 0.0, 1: 1.0, 2: 2.0, 3: [3.0, 13.0], 4: [4.0, 14.0], 5: 15.0 (object)
#
# One would guess otherwise: a table of what TensorBoard shows, for the files are the same.
#
# Here: a resumed run cuts its files back to the checkpoint, so that nothing need be purged.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq tbparse==0.0.9 tensorboard==2.21.0 tensorboardX==2.6.5 pandas==3.1.1 numpy==2.4.6
cat >see.py <<'PY'
import logging

from tbparse import SummaryReader
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboardX import SummaryWriter

logging.getLogger("tensorboard").setLevel(logging.ERROR)
for part, (steps, purge) in enumerate(((range(5), None), (range(3, 6), 3))):
    with SummaryWriter("run", purge_step=purge, filename_suffix=f".{part}") as writer:
        for step in steps:
            writer.add_scalar("loss", 10 * part + step, step)
reader = EventAccumulator("run")
reader.Reload()
shown = [(event.step, round(event.value)) for event in reader.Scalars("loss")]
table = SummaryReader("run").scalars
rows = [(step, round(value)) for step, value in zip(table["step"], table["value"])]
pivot = SummaryReader("run", pivot=True).scalars
cells = list(zip(pivot["step"], pivot["loss"]))
for name, pairs in (("tensorboard", shown), ("tbparse", rows), ("tbparse, pivot", cells)):
    kind = f" ({pivot['loss'].dtype})" if pairs is cells else ""
    print(f"{name}: {', '.join(f'{step}: {value}' for step, value in pairs)}{kind}")
assert shown == [(0, 0), (1, 1), (2, 2), (3, 13), (4, 14), (5, 15)], "this has changed"
assert sorted(rows) == sorted([*shown, (3, 3), (4, 4)]), "this has changed"
assert list(table.columns) == ["step", "tag", "value"] and pivot["loss"].dtype == object
PY
venv/bin/python -I see.py
