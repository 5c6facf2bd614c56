"""Tell whether a change leaves training as it was, bit for bit.

    python benchmarks/fingerprint.py > before.txt
    (change something)
    python benchmarks/fingerprint.py > after.txt && diff before.txt after.txt

Prints a hash of all weights after short trainings with one process. That policies play as they did,
the slow tests of tests/script/test_reference_policies.py say.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

REPOSITORY = Path(__file__).parents[1]
TRAININGS = {  # name -> flags
    **{f"{m} {s}": f"--map {m} --seed {s}" for m in ("small", "three", "standard") for s in (1, 2)},
    "both seats": "--map small --learner-seats 2 --random-start-prob 0.3",
    "bots": "--map three --pool-bots dumbbot --pool-bot-prob 0.3 --average-exponent 0",
    "truncated": "--map small --year-limit truncate --max-years 4",
}
SAME = "--processes 1 --eval-interval 1_000_000 --eval-games 6 --capture-games 0"


def trained(flags: str, timesteps: int) -> str:
    """Return the hash of the weights of a training."""
    with tempfile.TemporaryDirectory() as folder:
        words = f"{flags} {SAME} --total-timesteps {timesteps} --runs-folder {folder}"
        command = [sys.executable, "ppo_selfplay_diplomacy.py", *words.split()]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        (path,) = Path(folder).glob("*/checkpoint.pt")
        weights = torch.load(path, weights_only=True)["model"]
    content = b"".join(weights[name].numpy().tobytes() for name in sorted(weights))
    return hashlib.sha256(content).hexdigest()[:16]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timesteps", type=int, default=30_000)
    parser.add_argument("--only", default="", help="part of the name of what is to be run")
    options = parser.parse_args()
    for name, flags in TRAININGS.items():
        if options.only in name:
            print(name, trained(flags, options.timesteps), flush=True)
