"""Which network learns most in equal time.

    python tests/benchmarks/compare_networks.py --map standard --seconds 240 --json result.json

Trains a run for each variant, one after the other, until it has used as many seconds of one
processor; then evaluates each against DumbBot, and seats all of them at mixed tables. Runs that are
already in --folder are not trained again. Processor time, not the clock's, so that other work on
the machine favors none; the learning rate does not fall, as nobody knows when a run will end.
Flags that are not known here go to the trainer.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_trainer import ROOT

from diplomacy_engine.players.names import short_names
from diplomacy_engine.players.policy_files import CHECKPOINT

SCRIPT = str(ROOT / "ppo_selfplay_diplomacy.py")
VARIANTS = {
    "as it is": "",
    "orders independent of each other": "--no-autoregressive",
    "no exchange between provinces": "--num-layers 0",
    "1 layer": "--num-layers 1",
    "3 layers": "--num-layers 3",
    "32 hidden units": "--hidden 32",
    "128 hidden units": "--hidden 128",
}
NEVER = "1000000000"


def used_seconds(process: int) -> float:
    """Return the processor time that a running process has used (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def compile_kernels(map_name: str) -> None:
    """Train for a moment, so that no run's time goes into compiling the game's kernels."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--map", map_name, "--total-timesteps", "2000", "--runs-folder", folder]
        command = [sys.executable, SCRIPT, *words, "--eval-games", "7", "--league-games", "0"]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def train(folder: Path, flags: list[str], seconds: float) -> Path:
    """Train in a new run folder below `folder` for so long; return it."""
    words = ["--processes", "1", "--no-anneal-lr", "--total-timesteps", NEVER, *flags]
    words += ["--eval-interval", NEVER, "--save-interval", NEVER, "--league-games", "0"]
    command = [sys.executable, SCRIPT, *words, "--runs-folder", str(folder)]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    while running.poll() is None and used_seconds(running.pid) < seconds:
        time.sleep(0.2)
    running.send_signal(signal.SIGTERM)  # it writes a checkpoint
    if running.wait() != 0:
        raise SystemExit(f"training with {' '.join(flags)} failed")
    (run,) = folder.iterdir()
    return run


def call(folder: Path, *words: str) -> dict:
    """Return the JSON that a command of the engine writes."""
    path = folder / "result.json"
    command = [sys.executable, "-m", "diplomacy_engine", *words, "--json", str(path)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())


def decisions_of(run: Path) -> int:
    """Return the learner decisions of a run's last update."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return max(line["global_step"] for line in lines)


def main() -> None:
    """Train, evaluate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="standard", help="map to train on")
    parser.add_argument("--seconds", type=float, default=240, help="of one processor, each")
    parser.add_argument("--games", type=int, default=700, help="of each evaluation")
    parser.add_argument("--max-years", default="15", help="of each evaluation's games")
    parser.add_argument("--seed", default="1", help="of the training")
    parser.add_argument("--folder", default="runs/networks", help="for the runs")
    parser.add_argument("--json", help="file for the figures")
    arguments, flags = parser.parse_known_args()
    root = (ROOT / arguments.folder / arguments.map / arguments.seed).resolve()
    match = ["--map", arguments.map, "--games", str(arguments.games)]
    match += ["--max-years", arguments.max_years]
    compile_kernels(arguments.map)
    runs = {}
    for number, (name, variant) in enumerate(VARIANTS.items()):
        folder = root / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        words = ["--map", arguments.map, "--seed", arguments.seed, *variant.split(), *flags]
        made = [path.parent for path in folder.glob(f"*/{CHECKPOINT}")]
        runs[name] = made[0] if made else train(folder, words, arguments.seconds)
        print(f"{name}: {decisions_of(runs[name]):,} decisions", flush=True)
    players = [*map(str, runs.values()), "dumbbot"]
    table = call(root, "tournament", *match, "--players", *players)
    shown = dict(zip(runs, short_names(players)))
    found = {}
    print("| variant | decisions | sum of squares against DumbBot | rating among these |")
    print("|---|---|---|---|")
    for name, run in runs.items():
        against = call(root, "evaluate", *match, "--player", str(run), "--against", "dumbbot")
        score = against["overall"]["sum_of_squares"]
        rating = table["players"][shown[name]]["rating"]
        found[name] = {
            "flags": VARIANTS[name],
            "decisions": decisions_of(run),
            "sum_of_squares": score,
            "rating": rating,
        }
        shares = [f"{100 * score[key]:.1f}" for key in ("value", "low", "high")]
        numbers = [f"{rating[key]:.1f}" for key in ("value", "low", "high")]
        print(
            f"| {name} | {decisions_of(run):,} | {shares[0]} % ({shares[1]} - {shares[2]}) "
            f"| {numbers[0]} ({numbers[1]} - {numbers[2]}) |",
            flush=True,
        )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
