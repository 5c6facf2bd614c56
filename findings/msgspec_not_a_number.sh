#!/usr/bin/env bash
# msgspec 0.22.0: a float that is not a number, written as JSON and read back.
#
# It is written as null, as are both infinities. Reading the text back as the type it was written from
# is refused, since null is not a float. Python's json writes NaN and reads it. So a table of metrics,
# in which an explained variance of nothing is NaN, can be kept but not read.
#
# Seen:
#   written: {"explained_variance":null}
#   read:    Expected `float`, got `null` - at `$.explained_variance`
#   by json: {'explained_variance': nan}
#
# One would guess otherwise: what was written by a type is read by it, or refused on writing.
#
# Here: results are written by Python's json, and settings that are not finite are refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq msgspec==0.22.0
cat >see.py <<'PY'
import json
import math

import msgspec


class Metrics(msgspec.Struct):
    explained_variance: float


def read(text):
    try:
        return msgspec.json.decode(text, type=Metrics)
    except msgspec.ValidationError as error:
        return error


text = msgspec.json.encode(Metrics(math.nan))
by_json = json.loads(json.dumps({"explained_variance": math.nan}))
print(f"written: {text.decode()}")
print(f"read:    {read(text)}")
print(f"by json: {by_json}")
assert read(msgspec.json.encode(Metrics(0.5))) == Metrics(0.5)
assert text == msgspec.json.encode(Metrics(math.inf)) == b'{"explained_variance":null}', "this has changed"
assert isinstance(read(text), msgspec.ValidationError), "this has changed"
assert math.isnan(by_json["explained_variance"])
PY
venv/bin/python -I see.py
