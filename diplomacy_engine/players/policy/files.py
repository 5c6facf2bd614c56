"""Where a policy is: in a run folder, in a file, or bundled with the package."""

import json
import os
from pathlib import Path

from ..._files import REFERENCE
from ...errors import UserError
from ...records import shipped_toml
from ..bots import BOTS

CHECKPOINT = "checkpoint.pt"
POLICY = "policy.pt"  # a policy alone, as in runs/reference: no optimizer, no pool
# How a policy was trained, by the second part of its name.
_TRAINING = shipped_toml(__package__, "training.toml")


def policy_file(path: str | Path) -> Path:
    """Return a policy's file.

    Of a folder that is checkpoint.pt, else policy.pt; of a bundled policy's name its file, unless
    a file here has that name. Any other path is returned as it is.
    """
    named, path = str(path), Path(path)
    if not os.path.isdir(path):  # which no name is too long for
        return path if os.path.isfile(path) else ready_policies().get(named, path)
    checkpoint, policy = path / CHECKPOINT, path / POLICY
    return checkpoint if checkpoint.is_file() or not policy.is_file() else policy


def ready_policies() -> dict[str, Path]:
    files = sorted(REFERENCE.glob(f"*__*/{POLICY}"))
    return {file.parent.name.replace("__", "-"): file for file in files}


def training_of(ready: str) -> str:
    return _TRAINING.get(ready.split("-")[1], "")


def wins_against_dumbbot(policy: Path) -> dict[str, float] | None:
    file = policy.with_name("against_dumbbot.json")
    return json.loads(file.read_text())["overall"]["win"] if file.is_file() else None


def policies_of(map_name: str) -> list[str]:
    def wins(name: str) -> float:
        share = wins_against_dumbbot(ready[name])
        return share["value"] if share else 0.0

    ready = ready_policies()
    names = (name for name in ready if name.startswith(f"{map_name}-"))
    return sorted(names, key=wins, reverse=True)


def policy_path(flag: str, name: str) -> tuple[str, Path]:
    """Return the script that a name such as mine.py:PATH has, or "", and the policy's file."""
    script, colon, name = name.rpartition(".py:")
    path, what = policy_file(name), "there is no such checkpoint"
    if name in BOTS:
        what = f"{name!r} is a bot: --pool-bots {name} --pool-bot-prob 1 trains against it"
    elif os.path.isfile(path):
        return Path(f"{script}.py").name if colon else "", path
    elif os.path.isdir(name):
        what = f"the folder has neither {CHECKPOINT} nor {POLICY}"
    raise UserError(f"--{flag} {name}: {what}")
