"""What rewards teach: the same training under several of them, measured alike.

    python tests/benchmarks/reward_study.py rewards                     # docs/lab/rewards.md
    python tests/benchmarks/reward_study.py trees --draw trees.svg      # docs/lab/social_trees.md
    python tests/benchmarks/reward_study.py baselines --draw five.svg   # from docs/lab/baselines.md

Trains what is not yet in --folder, one run after the other with the lowest priority, 1 to 2 minutes
of one core each; seed 1 of all comes first. Then it measures and prints a table. With
--only-finished it trains nothing, and leaves out what is missing. `trees` is the case study of
Arena (Song et al. 2019, section 4): the same game where every power plays alone, where two are a
team against the third, and where all are one team. Pictures need matplotlib, one of the development
extras.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import diplomacy_engine as engine

DECISIONS, GAMES, SEED = 300_000, 400, 1000
REWARDS = "sum_of_squares", "terminal", "score", "leader", "ordinal"
REWARDS += "centers_held", "captures", "three_to_centers"
EVERYBODY, TWO = "ENGLAND+ITALY+RUSSIA", "ENGLAND+ITALY"
TREES = {  # name -> flags
    "alone": [],
    "two": ["--teams", TWO],
    "all": ["--teams", EVERYBODY, "--reward", "power:weakest=1,team:center_delta=1"],
}
TITLES = {
    "alone": "every power alone:\ncompetitive",
    "two": "two against one:\ncollaborative within,\ncompetitive between",
    "all": "all in one team:\ncollaborative",
}
COLORS = {"ENGLAND": "#CC79A7", "ITALY": "#009E73", "RUSSIA": "#999999"}


def runs_of(study: str, seeds: list[int]) -> list[tuple[str, str, int, list[str]]]:
    """Return map, name, seed and flags of each run of a study."""
    if study == "trees":
        return [("three", name, seed, flags) for seed in seeds for name, flags in TREES.items()]
    return [
        (game_map, reward, seed, ["--reward", reward])
        for seed in seeds
        for game_map in ("small", "three")
        for reward in REWARDS
    ]


def finished(folder: Path, game_map: str, name: str, seed: int) -> Path | None:
    """Return the folder of a finished run, if there is one."""
    found = sorted(folder.glob(f"{game_map}__{name}__{seed}__*"))
    return next((run for run in found if _steps(run) >= DECISIONS), None)


def _steps(run: Path) -> int:
    """Return the decisions before the last checkpoint of a run."""
    saved = (run / "checkpoints").glob("*.pt")
    return max((int(re.sub(r"\D", "", file.stem)) for file in saved), default=0)


def train(folder: Path, game_map: str, name: str, seed: int, flags: list[str]) -> None:
    """Train one policy."""
    command = ["nice", "-n", "19", sys.executable, "ppo_selfplay_diplomacy.py", "--map", game_map]
    command += [*flags, "--seed", str(seed), "--exp-name", name, "--runs-folder", str(folder)]
    command += ["--total-timesteps", str(DECISIONS), "--eval-interval", str(DECISIONS)]
    command += ["--processes", "1", "--capture-games", "0", "--league-games", "0"]
    subprocess.run([*command, "--eval-games", "40"], check=True)


def evaluate(game_map: engine.Map, run: Path, against: str, games: int) -> dict:
    """Return the result of a run's policy against another player, or against itself."""
    player = engine.load_player(str(run), game_map=game_map, seed=1)
    other = engine.load_player(against, game_map=game_map, seed=2)
    return engine.evaluate_player(game_map, player, other, games, seed=SEED, threads=1).result()


def measure(study: str, game_map: str, run: Path) -> dict[str, float]:
    """Return what a table says of a run; it is kept beside the run."""
    kept = run / "study.json"
    if kept.exists():
        return json.loads(kept.read_text())
    table = engine.load_map(game_map)
    bot = evaluate(table, run, "dumbbot", GAMES)
    figures = {name: bot["overall"][name]["value"] for name in ("solo", "win", "centers_behind")}
    if study == "rewards":
        figures |= {name: bot["orders"][name] for name in ("hold", "support")}
        itself = evaluate(table, run, str(run), GAMES)
    else:
        itself = evaluate(table.with_teams(EVERYBODY), run, str(run), GAMES)
        pair = evaluate(table.with_teams(TWO), run, str(run), 2 * GAMES)["orders"]
        figures |= {name: itself["orders"][name] for name in ("support", "ally_support")}
        figures |= {"ally_attack": itself["orders"]["ally_attack"]}
        figures |= {"pair_support": pair["ally_support"], "pair_attack": pair["ally_attack"]}
        for power, found in itself["by_power"].items():
            figures |= {f"{name}_{power}": found[name]["value"] for name in ("centers", "solo")}
    figures |= {f"self_{name}": itself["overall"][name]["value"] for name in ("draw", "game_years")}
    kept.write_text(json.dumps(figures, indent=2) + "\n")
    return figures


def figures_of(study: str, folder: Path, seeds: list[int]) -> dict[tuple[str, str], list[dict]]:
    """Return the figures of the finished runs by map and name, a dictionary for each seed."""
    found: dict[tuple[str, str], list[dict]] = {}
    for game_map, name, seed, _ in runs_of(study, seeds):
        run = finished(folder, game_map, name, seed)
        if run is None:
            print(f"missing: {name} on {game_map}, seed {seed}", file=sys.stderr)
            continue
        found.setdefault((game_map, name), []).append(measure(study, game_map, run))
    return found


def print_table(found: dict[tuple[str, str], list[dict]]) -> None:
    """Print each figure as a Markdown table does, seed by seed."""
    columns = list(next(iter(found.values()))[0])
    print("| map | name | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 2) + "|")
    for (game_map, name), seeds in found.items():
        cells = [", ".join(f"{figures[column]:.3g}" for figures in seeds) for column in columns]
        print(f"| {game_map} | {name} | " + " | ".join(cells) + " |")


def _axes(rows: int, columns: int, size: tuple[float, float]):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # the backend comes first

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "reward_study"})
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)


def _dots(panel, place: float, values: list[float], color: str) -> None:
    """Draw a bar of the mean and a dot for each seed."""
    panel.bar(place, np.mean(values), 0.7, color=color, alpha=0.45, linewidth=0)
    spread = np.linspace(-0.15, 0.15, len(values)) if len(values) > 1 else [0]
    panel.plot(place + np.array(spread), values, "o", color=color, markersize=4)


def draw_trees(found: dict[tuple[str, str], list[dict]], target: Path) -> None:
    """Draw the trees, and below each what the powers do among themselves."""
    image, panels = _axes(3, len(found), (7.6, 5.6))
    for column, ((_, name), seeds) in enumerate(found.items()):
        tree, orders, centers = panels[:, column]
        _draw_tree(tree, name)
        bars = {
            "supports,\nENG and ITA": ("pair_support", "#0072B2"),
            "supports,\nall pairs": ("ally_support", "#56B4E9"),
            "attacks,\nENG and ITA": ("pair_attack", "#D55E00"),
            "attacks,\nall pairs": ("ally_attack", "#E69F00"),
        }
        for place, (figure, color) in enumerate(bars.values()):
            _dots(orders, place, [100 * figures[figure] for figures in seeds], color)
        orders.set_xticks(range(len(bars)), bars, rotation=90, fontsize=7)
        orders.set_ylim(0, 70)
        for place, (power, color) in enumerate(COLORS.items()):
            _dots(centers, place, [figures[f"centers_{power}"] for figures in seeds], color)
        centers.set_xticks(range(3), COLORS, fontsize=7)
        centers.set_ylim(0, 9)
        drawn = ", ".join(f"{100 * figures['self_draw']:.1f}" for figures in seeds)
        centers.set_title(f"games to the year limit: {drawn}%", fontsize=8)
    panels[1, 0].set_ylabel("% of supports,\n% of moves")
    panels[2, 0].set_ylabel("centers at the end")
    image.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)


def _draw_tree(panel, name: str) -> None:
    powers = dict(zip(COLORS, (0.15, 0.5, 0.85)))
    teams = {"alone": [], "two": [["ENGLAND", "ITALY"]], "all": [list(COLORS)]}[name]
    for power, x in powers.items():
        team = next((team for team in teams if power in team), None)
        middle = np.mean([powers[member] for member in team]) if team else None
        joints = [(0.5, 1.0)] + ([(middle, 0.55)] if team else []) + [(x, 0.1)]
        panel.plot(*zip(*joints), color="#888888", linewidth=1, zorder=1)
        if team:
            panel.plot(middle, 0.55, "s", color="#0072B2", markersize=9)
        panel.plot(x, 0.1, "o", color=COLORS[power], markersize=10)
        panel.text(x, -0.12, power, ha="center", va="top", fontsize=7)
    panel.plot(0.5, 1.0, "o", color="black", markersize=7)
    panel.set(xlim=(0, 1), ylim=(-0.35, 1.15))
    panel.set_title(TITLES[name], fontsize=8)
    panel.axis("off")


def read_baselines() -> dict[str, dict[str, list[float]]]:
    """Return the figures of the lab's comparison of five baselines: panel, name, seeds."""
    text = (Path(__file__).parents[2] / "docs" / "lab" / "baselines.md").read_text()

    def rows(heading: str, column: int) -> dict[str, list[float]]:
        section = text.split(f"## {heading}")[1].split("\n## ")[0]
        table = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ")]
        names = {"plain self-play": "plain", "independent": "independent", "central": "central"}
        names |= {"counterfactual": "counterfactual"}
        found = {}
        for cells in table:
            name = next((names[key] for key in names if key in cells[0]), None)
            if name:
                found[name] = [float(number) for number in re.findall(r"\d+\.\d", cells[column])]
        return found

    rivals = rows("Three other ways in equal time", 5)
    team = rows("The same as a team", 3)
    section = " ".join(text.split("## Population-based training on three")[1].split())
    rated = re.search(r"rated ([\d.]+), ([\d.]+) and ([\d.]+) in the end", section)
    won = re.search(r"the best won (\d+), (\d+) and (\d+) %", section)
    rivals["population"] = [float(number) for number in rated.groups()]
    team["population"] = [float(number) for number in won.groups()]
    return {
        "as rivals: rating among the\nbase population": rivals,
        "as a team against one:\nsolos (%)": team,
    }


def draw_baselines(target: Path) -> None:
    """Draw the five baselines beside one another, among rivals and as a team."""
    panels_of = read_baselines()
    image, panels = _axes(1, len(panels_of), (7.2, 2.9))
    colors = dict(
        zip(
            ("plain", "independent", "central", "counterfactual", "population"),
            ("#0072B2", "#E69F00", "#56B4E9", "#009E73", "#CC79A7"),
        )
    )
    for panel, (title, found) in zip(panels[0], panels_of.items()):
        for place, (name, color) in enumerate(colors.items()):
            _dots(panel, place, found[name], color)
        panel.set_xticks(range(len(colors)), colors, rotation=20, fontsize=8)
        panel.set_title(title, fontsize=9)
    image.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)


def main() -> None:
    """Train, measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=("rewards", "trees", "baselines"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--folder", type=Path, default=Path("runs/study"), help="of the runs")
    parser.add_argument("--only-finished", action="store_true", help="train nothing")
    parser.add_argument("--draw", type=Path, metavar="SVG", help="of trees and baselines")
    arguments = parser.parse_args()
    if arguments.study == "baselines":
        draw_baselines(arguments.draw or Path("baselines.svg"))
        return
    if not arguments.only_finished:
        for game_map, name, seed, flags in runs_of(arguments.study, arguments.seeds):
            if finished(arguments.folder, game_map, name, seed) is None:
                train(arguments.folder, game_map, name, seed, flags)
    found = figures_of(arguments.study, arguments.folder, arguments.seeds)
    if not found:
        raise SystemExit(f"error: no run of this study in {arguments.folder} has finished")
    print_table(found)
    if arguments.draw and arguments.study == "trees":
        draw_trees(found, arguments.draw)


if __name__ == "__main__":
    main()
