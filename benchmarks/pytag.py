"""PyTAG's figures on our maps: wins, ties and score difference against its players over training.

    python benchmarks/pytag.py --map small --out pytag_small
    python benchmarks/pytag.py --map standard --runs runs/standard__... --against lookahead

Trains with each reward and seed, or takes the runs that are named; plays every kept checkpoint
against each player; draws OUT.svg, and prints the last evaluations as a table. Stopped and started
again, it goes on: runs are resumed, and OUT.jsonl has what was played. Needs matplotlib.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib
import numpy as np
import tyro

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import evaluate_player, load_player
from diplomacy_engine.learning import run_folder, startup
from diplomacy_engine.learning.settings import parse_args
from diplomacy_engine.scoring.rewards import lead

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first

FIGURES = {"win": 100, "tie": 100, "lead": 1}  # and by what they are multiplied


@dataclass
class Args:
    """What is trained and played, and where it goes."""

    map: str = "small"
    """map of the games"""
    rewards: tuple[str, ...] = ("terminal", "score")
    """rewards to train with; those of PyTAG"""
    seeds: int = 3
    """seeds of each, from 1 on"""
    decisions: int = 200_000
    """learner decisions of each run"""
    evaluations: tuple[int, ...] = (20,)
    """evaluations of each run, at equal distances; of each player or, as below, of all alike"""
    runs: tuple[Path, ...] = ()
    """run folders to evaluate, instead of training"""
    runs_folder: Path = Path("runs/pytag")
    """folder for the runs"""
    against: tuple[str, ...] = ("random", "osla", "mcts-plain")
    """who plays the other seats"""
    games: tuple[int, ...] = (60, 60, 12)
    """games of an evaluation"""
    last_games: tuple[int, ...] = (300, 300, 60)
    """games of a run's last evaluation"""
    out: Path = Path("pytag")
    """picture and file of results, without suffix"""


def train(args: Args, reward: str, seed: int) -> Path:
    """Train a run, or what is missing of it, and return its folder."""

    def saved() -> list[Path]:
        return sorted(args.runs_folder.glob(f"{args.map}__{reward}__{seed}__*/checkpoint.pt"))

    if begun := saved():
        settings = parse_args(ppo.Args, ["--resume", str(begun[-1].parent)])
    else:
        settings = replace(
            parse_args(ppo.Args, ["--map", args.map]),  # with the map's own settings
            reward=reward,
            seed=seed,
            exp_name=reward,
            runs_folder=str(args.runs_folder),
            total_timesteps=args.decisions,
            eval_interval=-(-args.decisions // max(args.evaluations)),
            eval_games=1,
            eval_bots=("random",),
            processes=1,
        )
    run_folder.KEPT = max(args.evaluations)  # all of them are played later
    if status := startup.main(ppo.LEARNER_SPEC, ppo.train, settings):
        raise SystemExit(status)
    return saved()[-1].parent


def play(checkpoint: Path, bot: str, games: int, map_name: str) -> dict:
    """Return the mean of each figure in games of a checkpoint against copies of a bot."""
    player = load_player(checkpoint)
    report = evaluate_player(map_name, player, load_player(bot), games, seed=1, threads=1)
    mine, (values, _) = report.seats == 0, report.figures()
    tie = values["most_centers"] - values["win"]
    figures = {"win": values["win"], "tie": tie, "lead": lead(report.outcomes.centers)}
    means = {name: float(value[mine].mean()) for name, value in figures.items()}
    return {"step": int(checkpoint.stem), "against": bot, "games": int(mine.sum())} | means


def evaluate(args: Args, folders: list[Path]) -> dict[str, dict[str, dict[int, list[dict]]]]:
    """Play what OUT.jsonl lacks; return its rows by reward (a run's name), player and seed."""
    file = args.out.with_suffix(".jsonl")
    lines = file.read_text().splitlines() if file.exists() else []
    known = {(row["run"], row["against"], row["step"]): row for row in map(json.loads, lines)}
    result = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for number, bot in enumerate(args.against):
        count, games, last = (
            values[min(number, len(values) - 1)]
            for values in (args.evaluations, args.games, args.last_games)
        )
        for folder in folders:
            run = folder.name.rpartition("__")[0]
            settings = json.loads((folder / "args.json").read_text())
            newest_first = sorted(folder.glob("checkpoints/*.pt"), reverse=True)
            step = -(-len(newest_first) // count)
            for checkpoint in newest_first[::step][::-1]:
                key = (run, bot, int(checkpoint.stem))
                if key not in known:
                    played = last if checkpoint is newest_first[0] else games
                    known[key] = {"run": run} | play(checkpoint, bot, played, args.map)
                    with file.open("a") as out:
                        out.write(json.dumps(known[key]) + "\n")
                result[settings["exp_name"]][bot][settings["seed"]].append(known[key])
    return result


def draw(args: Args, results: dict) -> None:
    """Draw the figures over the decisions: the mean of the seeds, and the range of wins."""
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "none"})
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    shape, size = (2, len(args.against)), (2.3 * len(args.against) + 0.5, 4.2)
    image, panels = plt.subplots(
        *shape, figsize=size, sharex=True, sharey="row", layout="constrained", squeeze=False
    )
    for bot, column in zip(args.against, panels.T):
        for number, (name, bots) in enumerate(results.items()):
            for figure, panel, style in zip(FIGURES, column[[0, 0, 1]], ("-", "--", "-")):
                seeds, color = list(bots[bot].values()), f"C{number}"
                grid = np.array([row["step"] for row in seeds[0]])
                steps = [[row["step"] for row in rows] for rows in seeds]
                values = [[FIGURES[figure] * row[figure] for row in rows] for rows in seeds]
                curves = np.array([np.interp(grid, *pair) for pair in zip(steps, values)])
                panel.plot(grid / 1000, curves.mean(0), style, color=color, label=name)
                if figure != "tie":
                    ends = curves.min(0), curves.max(0)
                    panel.fill_between(grid / 1000, *ends, color=color, alpha=0.2, linewidth=0)
        column[0].set_title(f"{args.map}: against {bot}", fontsize=9)
        column[0].set_ylim(-2, 102)
        column[1].set_xlabel("thousand decisions")
        for panel in column:
            panel.grid(alpha=0.25, linewidth=0.6)
    panels[0, 0].set_ylabel("wins; dashed: ties, %")
    panels[1, 0].set_ylabel("score difference")
    panels[0, 0].legend(handles=panels[1, 0].lines, frameon=False)
    image.savefig(args.out.with_suffix(".svg"), metadata={"Date": None})


def main(args: Args) -> None:
    """Train, play, draw, and print the table."""
    pairs = [(reward, seed) for seed in range(1, args.seeds + 1) for reward in args.rewards]
    results = evaluate(args, list(args.runs) or [train(args, *pair) for pair in pairs])
    draw(args, results)
    for name, bots in results.items():
        for bot, seeds in bots.items():
            last, cells = [rows[-1] for rows in seeds.values()], []
            for figure, scale in FIGURES.items():
                cells.append(", ".join(f"{scale * row[figure]:.1f}" for row in last))
            print(f"| `{name}` | `{bot}` | {last[0]['games']} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
