#!/usr/bin/env bash
# tyro 1.0.17 with msgspec 0.22.0: limits of a Struct's fields, on the command line.
#
# tyro makes flags of a msgspec Struct and fills it. Limits written as Meta are msgspec's own way to say
# what a field may be, and a file that breaks one is refused; a flag that does is not. Types are checked
# in both.
#
# Seen:
#   from a file: Expected `int` >= 1 - at `$.num_envs`
#   from flags:  Settings(num_envs=-5)
#
# One would guess otherwise: settings that come from files and from flags are held to one schema.
#
# Here: what the flags gave goes through msgspec once more, with the file's settings below it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq tyro==1.0.17 msgspec==0.22.0
cat >see.py <<'PY'
from typing import Annotated

import msgspec
import tyro


class Settings(msgspec.Struct):
    num_envs: Annotated[int, msgspec.Meta(ge=1)] = 256


def from_file(text):
    try:
        return msgspec.toml.decode(text, type=Settings)
    except msgspec.ValidationError as error:
        return error


from_flags = tyro.cli(Settings, args=["--num-envs", "-5"])
print(f"from a file: {from_file('num_envs = -5')}")
print(f"from flags:  {from_flags}")
assert isinstance(from_file("num_envs = -5"), msgspec.ValidationError)
assert from_file("num_envs = 5") == tyro.cli(Settings, args=["--num-envs", "5"])
assert from_flags.num_envs == -5, "this has changed"
PY
venv/bin/python -I see.py
