"""How fast two processes learn, started by the script or by torchrun, against one.

    python benchmarks/bench_ranks.py --map three --decisions 30000 --rounds 2

Runs all in turn, so that other work on the machine slows all down alike, and prints the
decisions/s of each and their ratio to those of one. The first --warm-up decisions are left out,
evaluations too. Flags that are not known here go to the trainer.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_trainer import ROOT, measure, read_updates

SCRIPT = str(ROOT / "ppo_selfplay_diplomacy.py")
RANKS = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
WAYS = {
    "one process": [SCRIPT, "--processes", "1"],
    "two processes": [SCRIPT, "--processes", "2"],
    "two ranks of torchrun": [*RANKS, SCRIPT],
}


def speed(way: list[str], map_name: str, decisions: int, warm_up: int, flags: list[str]) -> float:
    """Return the learner decisions/s of one way to train."""
    never = str(10 * (decisions + warm_up))
    words = ["--map", map_name, "--total-timesteps", str(decisions + warm_up), *flags]
    words += ["--eval-interval", never, "--eval-games", "2", "--save-interval", never]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *way, *words, "--capture-games", "0", "--runs-folder", folder]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        (run,) = Path(folder).iterdir()
        return measure(read_updates(run), warm_up)["decisions_per_second"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="three", help="map to train on")
    parser.add_argument("--decisions", type=int, default=30_000, help="learner decisions to time")
    parser.add_argument("--warm-up", type=int, default=10_000, help="decisions before those")
    parser.add_argument("--rounds", type=int, default=2, help="how often each way is measured")
    arguments, flags = parser.parse_known_args()
    for _ in range(arguments.rounds):
        found = [
            speed(way, arguments.map, arguments.decisions, arguments.warm_up, flags)
            for way in WAYS.values()
        ]
        for name, value in zip(WAYS, found):
            ratio = value / found[0]
            print(f"{name:22} {value:10,.0f} decisions/s, {ratio:5.2f} times one", flush=True)


if __name__ == "__main__":
    main()
