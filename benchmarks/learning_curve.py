"""Draw the learning curve of one or more runs, for docs/results.md.

    python benchmarks/learning_curve.py runs/small__* --out docs/learning_curve_small.png

Win rate against each bot over learner decisions and over minutes; with several runs (seeds) their
mean, and a band from the lowest to the highest. Minutes are those of the clock, evaluations
included. matplotlib is one of the development extras.
"""

import argparse
import json
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first

# Of Okabe and Ito's palette, told apart with any kind of color vision
STYLES = {
    "dumbbot": {"color": "#0072B2", "linestyle": "-"},
    "lookahead": {"color": "#009E73", "linestyle": "-."},
    "random": {"color": "#D55E00", "linestyle": "--"},
}

FIGURES = {
    "win": "win rate (%)",
    "solo": "solo rate (%)",
    "survival": "survival rate (%)",
    "sum_of_squares": "sum of squares (%)",
}


def read_curve(folder: Path, figure: str) -> dict[str, np.ndarray]:
    """Return a run's `decisions`, `minutes`, and each bot's figure, one entry per evaluation."""
    rows: list[dict] = []
    minutes = 0.0
    for line in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()):
        if "charts/SPS" in line:
            minutes = line["global_step"] / line["charts/SPS"] / 60
        found = {bot: line[f"eval/{bot}/{figure}"] for bot in STYLES if f"eval/{bot}/win" in line}
        if found:
            rows.append({"decisions": line["global_step"], "minutes": minutes} | found)
    if not rows:
        raise SystemExit(f"error: {folder} holds no evaluation")
    return {name: np.array([row[name] for row in rows], float) for name in rows[0]}


def draw(curves: list[dict[str, np.ndarray]], figure: str, target: Path) -> None:
    """Write the picture."""
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    image, panels = plt.subplots(1, 2, figsize=(7.2, 2.7), sharey=True, layout="constrained")
    for panel, axis in zip(panels, ("decisions", "minutes")):
        scale = 1000 if axis == "decisions" else 1
        first = max(curve[axis][0] for curve in curves)
        last = min(curve[axis][-1] for curve in curves)
        grid = np.unique(np.concatenate([curve[axis] for curve in curves]).clip(first, last))
        for bot, style in STYLES.items():
            if not all(bot in curve for curve in curves):
                continue
            lines = [100 * np.interp(grid, curve[axis], curve[bot]) for curve in curves]
            panel.plot(grid / scale, np.mean(lines, 0), **style, linewidth=1.8, label=f"vs {bot}")
            low, high = np.min(lines, 0), np.max(lines, 0)
            panel.fill_between(grid / scale, low, high, color=style["color"], alpha=0.2, lw=0)
        panel.set_xlim(left=0)
        panel.set_ylim(0, 102)
        panel.grid(alpha=0.25, linewidth=0.6)
    panels[0].set_xlabel("learner decisions (thousands)")
    panels[1].set_xlabel("minutes")
    panels[0].set_ylabel(FIGURES[figure])
    panels[1].legend(loc="lower right", frameon=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    image.savefig(target, dpi=150, metadata={"Date": None} if target.suffix == ".svg" else None)


def main() -> None:
    """Read the runs and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, usually one per seed")
    parser.add_argument("--out", type=Path, default=Path("docs/learning_curve_small.png"))
    parser.add_argument("--figure", default="win", choices=FIGURES)
    arguments = parser.parse_args()
    curves = [read_curve(folder, arguments.figure) for folder in arguments.runs]
    draw(curves, arguments.figure, arguments.out)
    print(f"{arguments.out}: {len(curves)} runs")
    for bot in STYLES:
        finals = [curve[bot][-1] for curve in curves if bot in curve]
        if finals:
            shown = ", ".join(f"{value:.1%}" for value in finals)
            print(f"last {arguments.figure} against {bot}: {shown}")


if __name__ == "__main__":
    main()
