"""How long `evaluate` takes once the kernels are compiled.

    python tests/benchmarks/bench_evaluate.py runs/small__.../checkpoint.pt --games 1000

The whole command is timed, as a user would wait for it.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def evaluate_seconds(arguments: argparse.Namespace, games: int) -> float:
    """Return the seconds of one `evaluate` of so many games."""
    command = [sys.executable, "-m", "diplomacy_engine", "evaluate", "--map", arguments.map]
    command += ["--player", str(arguments.player.resolve()), "--against", arguments.against]
    start = time.perf_counter()
    done = subprocess.run([*command, "--games", str(games)], cwd=ROOT, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(done.returncode)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("player", type=Path, help="a checkpoint or a run folder")
    parser.add_argument("--map", default="small")
    parser.add_argument("--against", default="dumbbot")
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    arguments = parser.parse_args()
    start = evaluate_seconds(arguments, 2)  # compiles what is not compiled yet
    start = min(start, evaluate_seconds(arguments, 2))
    seconds = evaluate_seconds(arguments, arguments.games)
    print(f"{arguments.games:,} games against {arguments.against}: {seconds:.1f} s")
    print(f"of which start of the program: {start:.1f} s")
    if arguments.json:
        figures = {"games": arguments.games, "seconds": seconds, "start_seconds": start}
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
