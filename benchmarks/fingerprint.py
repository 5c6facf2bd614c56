"""Tell whether a change leaves training and play as they were, bit for bit.

    python benchmarks/fingerprint.py > before.txt
    (change something)
    python benchmarks/fingerprint.py > after.txt && diff before.txt after.txt

Prints a hash of all weights after short trainings with one process, and of the likeliest orders
that the ready policies give in the positions of games of `random`.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.players.policy.files import ready_policies

REPOSITORY = Path(__file__).parents[1]
TRAININGS = {  # name -> flags
    **{f"{m} {s}": f"--map {m} --seed {s}" for m in ("small", "three", "standard") for s in (1, 2)},
    "both seats": "--map small --learner-seats 2 --random-start-prob 0.3",
    "bots": "--map three --pool-bots dumbbot --pool-bot-prob 0.3 --average-exponent 0",
    "truncated": "--map small --year-limit truncate --max-years 4",
}
SAME = "--eval-interval 1_000_000 --eval-games 6 --capture-games 0"


def hash_of(arrays: dict[str, np.ndarray]) -> str:
    """Return the first digits of a hash of named arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()[:16]


def trained(flags: str, timesteps: int, processes: str) -> str:
    """Return the hash of the weights of a training."""
    with tempfile.TemporaryDirectory() as folder:
        words = f"{flags} {SAME} {processes} --total-timesteps {timesteps} --runs-folder {folder}"
        command = [sys.executable, "ppo_selfplay_diplomacy.py", *words.split()]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        (path,) = Path(folder).glob("*/checkpoint.pt")
        model = torch.load(path, weights_only=True)["model"]
    return hash_of({name: weight.numpy() for name, weight in model.items()})


def played(name: str, positions: int = 500) -> str:
    """Return the hash of the likeliest orders of a ready policy."""
    player, random_bot = load_player(name, greedy=True), load_player("random")
    games = VectorGame(name.split("-")[0], 8, seed=7, auto_reset=True)
    found = []
    for _ in range(positions // 8):
        decisions = games.decisions()
        found.append(player.act(games, decisions))
        orders = games.new_orders()
        games.write_orders(orders, decisions, random_bot.act(games, decisions))
        games.step(orders)
    return hash_of({"orders": np.concatenate(found)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timesteps", type=int, default=30_000)
    parser.add_argument("--only", default="", help="part of the name of what is to be run")
    parser.add_argument("--processes", default="--processes 1", help="how the script is told so")
    options = parser.parse_args()
    for name, flags in TRAININGS.items():
        if options.only in name:
            print(name, trained(flags, options.timesteps, options.processes), flush=True)
    for name in ready_policies():
        if options.only in name:
            print(name, played(name), flush=True)
