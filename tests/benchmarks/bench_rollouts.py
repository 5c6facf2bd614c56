"""How fast forked rollouts are, by rollouts at once, threads and horizon.

    python tests/benchmarks/bench_rollouts.py --map standard --plot docs/rollouts_standard.png

Positions come from random warm-up play; every one is forked 16 times and played on at random. A
cell says rollouts/s and thousand phases/s, the quickest of a few runs.
"""

import argparse
import time

import numpy as np

from diplomacy_engine import VectorGame, make_bot
from diplomacy_engine.matches.beginnings import random_beginnings
from diplomacy_engine.matches.forks import fork

COPIES = 16
HORIZONS = (1, 2, 4)


def measure(
    map_name: str, player: str, rollouts: int, threads: int, years: int, runs: int
) -> tuple[float, float]:
    """Return rollouts/s and phases/s."""
    positions = rollouts // COPIES
    games = VectorGame(map_name, positions + rollouts, seed=1, threads=threads, auto_reset=False)
    random_beginnings(games, 12, seed=1)
    best = 0.0, 0.0
    for _ in range(runs + 1):  # the first may have to compile
        turns = games.state.turn
        before = np.repeat(turns[:positions], COPIES)
        start = time.perf_counter()
        fork(games, range(positions), COPIES, years=years, players=[make_bot(player)])
        seconds = time.perf_counter() - start
        phases = (turns[positions:] - before).sum()
        best = max(best, (rollouts / seconds, phases / seconds))
    return best


def plot(path: str, title: str, results: dict) -> None:
    """Draw rollouts/s over rollouts at once, a line for each horizon and number of threads."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.8), layout="constrained")
    for (years, threads), points in results.items():
        style = "-" if threads > 1 else "--"
        unit = "year" if years == 1 else "years"
        label = f"{years} {unit}, {threads} thread{'s' * (threads > 1)}"
        color = f"C{HORIZONS.index(years)}"
        axes.plot(*zip(*points), style, marker="o", color=color, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rollouts at once", ylabel="rollouts/s")
    axes.set_title(title)
    axes.set_xticks([x for x, _ in points], [f"{x:,}" for x, _ in points])
    rates = [rate for line in results.values() for _, rate in line]
    marks = [m * 10**p for p in range(8) for m in (1, 2, 5)]
    marks = [mark for mark in marks if min(rates) / 2 < mark < max(rates) * 2]
    axes.set_yticks(marks, [f"{mark:,}" for mark in marks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure, print a table, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="standard")
    parser.add_argument("--player", default="random", help="a bot's name")
    parser.add_argument("--rollouts", type=int, nargs="+", default=[16, 64, 256, 1024, 4096])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=3, help="the quickest counts")
    parser.add_argument("--plot", help="write a picture to this file")
    arguments = parser.parse_args()
    columns = [(years, threads) for years in HORIZONS for threads in arguments.threads]
    print("| rollouts | " + " | ".join(f"{y} y, {t} thr." for y, t in columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    results: dict = {column: [] for column in columns}
    for rollouts in arguments.rollouts:
        cells = []
        for years, threads in columns:
            rate, phases = measure(
                arguments.map, arguments.player, rollouts, threads, years, arguments.runs
            )
            results[years, threads].append((rollouts, rate))
            cells.append(f"{rate:,.0f} ({phases / 1000:,.0f})")
        print(f"| {rollouts:,} | " + " | ".join(cells) + " |", flush=True)
    if arguments.plot:
        plot(arguments.plot, f"Forked rollouts, {arguments.map}, {arguments.player}", results)


if __name__ == "__main__":
    main()
