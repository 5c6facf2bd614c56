"""What a first start costs: processor seconds, compiled kernels included.

    python benchmarks/bench_start.py . ../base    # checkouts of two commits, in turn
    python benchmarks/bench_start.py . --edit players/bots/dumbbot_moves.py

Trains for a moment in a copy of each checkout, by this Python, with an empty cache of kernels. With
`--edit` then again, after a line was added to a file of the engine.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = ("ppo_selfplay_diplomacy.py", "--map", "small", "--total-timesteps", "3000")


def start(checkout: Path, cache: Path, flags: list[str]) -> float:
    """Return the processor seconds of one training, its other processes included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(checkout)}
    environment.pop("NUMBA_CACHE_DIR", None)
    subprocess.run(
        [sys.executable, *COMMAND, *flags],
        cwd=checkout,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--edit", help="a file of diplomacy_engine/")
    parser.add_argument("--rounds", type=int, default=1)
    args, flags = parser.parse_known_args()
    for _ in range(args.rounds):
        for checkout in args.checkouts:
            with tempfile.TemporaryDirectory() as folder:
                copy, cache = Path(folder, "copy"), Path(folder, "cache")
                left_out = shutil.ignore_patterns(".*", "runs", "tests", "docs", "__pycache__")
                shutil.copytree(checkout, copy, ignore=left_out)
                print(f"{checkout}: cold {start(copy, cache, flags):.1f} s", flush=True)
                print(f"{checkout}: warm {start(copy, cache, flags):.1f} s", flush=True)
                if args.edit:
                    edited = copy / "diplomacy_engine" / args.edit
                    edited.write_text(edited.read_text() + "\nEDITED = 1\n")
                    print(f"{checkout}: edited {start(copy, cache, flags):.1f} s", flush=True)


if __name__ == "__main__":
    main()
