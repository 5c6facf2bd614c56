"""Compare settings or scripts over several seeds: mean and interval of each, as curves and a table.

    python -m examples.compare_runs runs/small__ppo_selfplay_diplomacy__* runs/small__mine__*
    python -m examples.compare_runs --train ppo_selfplay_diplomacy.py mine.py --seeds 3
    python -m examples.compare_runs --train "ppo_selfplay_diplomacy.py" \\
        "ppo_selfplay_diplomacy.py --exp-name hot --opponent-temperature 5" --seeds 5

Runs of one script with the same settings, but for seed and folders, are compared as one; where
two of one name differ, the table says in what. --train trains each command with the seeds 1, 2, ...
first, one after the other. The band and the table have Student's 95% intervals of the mean over
seeds, and Welch's of how much a mean exceeds the first one; with five seeds a bootstrap, as in
Agarwal et al. 2021, is a third narrower, which is too narrow. One seed alone, or one seed twice,
has no interval. Needs matplotlib.
"""

import hashlib
import importlib.util
import itertools
import json
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diplomacy_engine._progress import fail

if __name__ == "__main__" and importlib.util.find_spec("matplotlib") is None:
    sys.exit(fail("this needs a package: pip install matplotlib"))

import matplotlib
import numpy as np
import tyro

from diplomacy_engine.errors import UserError
from diplomacy_engine.matches.figures import student_quantile
from diplomacy_engine.records import read_json

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # of Okabe and Ito
NO_SETTINGS = {"seed", "runs_folder", "config", "resume", "track"}  # they may differ among seeds


@dataclass
class Args:
    """What is compared, and how it is shown."""

    runs: tyro.conf.Positional[tuple[Path, ...]] = ()
    """run folders"""
    train: tuple[str, ...] = ()
    """commands to train first: a script and flags, each in quotes"""
    seeds: int = 5
    """seeds of each command of --train"""
    runs_folder: Path = Path("runs/compared")
    """folder in which --train makes the run folders"""
    figures: tuple[str, ...] = ("eval/dumbbot/win", "eval/random/win")
    """figures of metrics.jsonl, a panel each"""
    out: Path = Path("comparison.png")
    """picture to draw"""


def trained(args: Args) -> list[Path]:
    """Train each command with each seed; return the new run folders."""
    before = set(args.runs_folder.glob("*"))
    for command, seed in itertools.product(args.train, range(1, args.seeds + 1)):
        words = [*shlex.split(command), "--seed", str(seed), "--runs-folder", args.runs_folder]
        if status := subprocess.run([sys.executable, *map(str, words)]).returncode:
            raise UserError(f"{command!r} with seed {seed} ended with exit status {status}")
    return sorted(set(args.runs_folder.glob("*")) - before)


def curve(folder: Path, figure: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps (n,) at which a run has a figure, and its values (n,)."""
    try:
        lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    except OSError as error:
        raise UserError(f"{folder}/metrics.jsonl cannot be read: {error.strerror}") from None
    found = [(line["global_step"], line[figure]) for line in lines if figure in line]
    if not found:
        raise UserError(f"{folder} has no figure {figure}")
    steps, values = zip(*found)
    return np.array(steps), np.array(values, float)


def settings_of(folder: Path) -> dict[str, object]:
    """Return what a run was made with: its settings, and the hash of its script."""
    script = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    args = read_json(dict[str, object], folder / "args.json", 1_000_000)
    game_map, exp_name = (*folder.name.split("__"), "")[:2]  # of learners without these settings
    args = {"map": game_map, "exp_name": exp_name} | args
    return args | {"script_sha256": hashlib.sha256(script).hexdigest()[:8]}


def by_settings(folders: Sequence[Path]) -> dict[str, dict[Path, int]]:
    """Return the seeds of the runs of each setting, by a name that has what not all share."""
    groups: dict[tuple, dict[Path, int]] = defaultdict(dict)
    for folder in folders:
        args = settings_of(folder)
        alike = tuple((name, str(args[name])) for name in sorted(args.keys() - NO_SETTINGS))
        groups[alike][folder] = int(args["seed"])
    shared, named = set.intersection(*map(set, groups)) if groups else set(), {}
    for alike, seeds in groups.items():
        args = dict(alike)
        shared |= {("exp_name", args["exp_name"]), ("map", args["map"])}
        own = [f"{name} {value}" for name, value in alike if (name, value) not in shared]
        named[", ".join([f"{args['exp_name']} on {args['map']}", *own])] = seeds
    return named


def mean_and_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over seeds of `values` (seeds, n), and the ends of its 95% interval, (n,)."""
    mean = values.mean(0)
    if len(values) == 1:
        return mean, mean, mean
    error = values.std(0, ddof=1) / len(values) ** 0.5
    half = student_quantile(len(values) - 1) * error
    return mean, mean - half, mean + half


def difference(values: np.ndarray, first: np.ndarray) -> tuple[float, float, float]:
    """Return by how much the mean of `values` (seeds,) exceeds that of `first`, and the ends of its
    95% interval (Welch 1947); two seeds or more each."""
    mean = float(values.mean() - first.mean())
    errors = np.array([sample.var(ddof=1) / len(sample) for sample in (values, first)])
    if not errors.any():
        return mean, mean, mean
    freedom = errors.sum() ** 2 / (errors**2 / (len(values) - 1, len(first) - 1)).sum()
    half = student_quantile(freedom) * errors.sum() ** 0.5
    return mean, mean - half, mean + half


def main(args: Args) -> None:
    """Train if asked to, then draw and print the comparison."""
    settings = by_settings([*args.runs, *trained(args)])
    if not settings:
        raise UserError("name run folders, or commands with --train")
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    size = 3.6 * len(args.figures), 2.8
    image, (panels,) = plt.subplots(
        1, len(args.figures), figsize=size, layout="constrained", squeeze=False
    )
    for figure, panel in zip(args.figures, panels):
        print(f"{figure}, mean of the last value of each seed (95% interval)")
        first = None
        for (name, seeds), color in zip(settings.items(), itertools.cycle(COLORS)):
            curves, count = [curve(folder, figure) for folder in seeds], len(set(seeds.values()))
            last = np.array([values[-1] for _, values in curves])
            mean, low, high = mean_and_interval(last)
            spread = f" ({low:.3f} to {high:.3f}), seeds: {count}"
            wanted = [settings_of(folder).get("total_timesteps", 0) for folder in seeds]
            short = sum(steps[-1] < end for (steps, _), end in zip(curves, wanted))
            if alone := count == 1 or count < len(seeds):
                spread = f"; runs: {len(seeds)}, seeds: {count}, so there is no interval"
            elif first is None:
                first = last
            else:
                more, low, high = difference(last, first)
                spread += f"; {more:+.3f} ({low:+.3f} to {high:+.3f}) against the first"
            unfinished = f"; {short} not finished" if short else ""
            print(f"  {name}: {mean:.3f}{spread}{unfinished}")
            begin, end = max(s[0] for s, _ in curves), min(s[-1] for s, _ in curves)
            grid = np.unique(np.concatenate([steps for steps, _ in curves]).clip(begin, end))
            rows = np.array([np.interp(grid, steps, values) for steps, values in curves])
            mean, low, high = mean_and_interval(rows)
            panel.plot(grid / 1000, mean, color=color, label=f"{name} (seeds: {count})")
            if not alone:
                panel.fill_between(grid / 1000, low, high, color=color, alpha=0.2, linewidth=0)
        panel.set_title(figure, fontsize=9)
        panel.set_xlabel("learner decisions (thousands)")
        panel.grid(alpha=0.25, linewidth=0.6)
    image.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", frameon=False)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    image.savefig(args.out, dpi=150)
    print(args.out)


if __name__ == "__main__":
    try:
        main(tyro.cli(Args, description=__doc__))
    except UserError as error:
        sys.exit(fail(error))
