"""How noisy the curves of a run are: ranks in a base population, wins against bots, rewards.

    python ppo_selfplay_diplomacy.py --map small --threads 1 --total-timesteps 300000 \\
        --eval-interval 10000 --eval-games 200 --eval-bots dumbbot --eval-population 200
    python tests/benchmarks/curve_noise.py runs/small__...

Noise is the deviation of a point from the line through its two neighbors, as the standard deviation
of one point: the second difference of independent points has six times their variance. It is shown
as a share of the curve's range, which is that of means of five points. The episodic return is the
mean over as many updates before each evaluation as have 200 games. docs/lab/ratings.md has results.
"""

import argparse
import json
from pathlib import Path

import numpy as np

RETURN = "charts/episodic_return"
GAMES = 200  # of a point of the return


def noise(curve: np.ndarray) -> tuple[float, float]:
    """Return the noise of a point, and the range of the smoothed curve."""
    bends = curve[:-2] - 2 * curve[1:-1] + curve[2:]
    smooth = np.convolve(curve, np.full(5, 0.2), "valid")
    return float(np.sqrt((bends**2).mean() / 6)), float(np.ptp(smooth))


def returns(updates: list[dict], step: int) -> float:
    """Return the mean return of the last GAMES games or somewhat more before `step`."""
    past = [line for line in updates if line["global_step"] <= step]
    games = np.diff([0, *(line["charts/games"] for line in past)])
    count = 1 + int(np.searchsorted(np.cumsum(games[::-1]), GAMES))
    values = [line[RETURN] for line in past[-count:]]
    return float(np.average(values, weights=games[-count:]))


def curves(run: Path) -> dict[str, np.ndarray]:
    """Return the curves of a run, a point for each evaluation."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    updates = [line for line in lines if line.get(RETURN) is not None]
    evaluations = [line for line in lines if "population/rank" in line]
    wins = [name for name in evaluations[0] if name.startswith("eval/") and name.endswith("/win")]
    names = ["population/rating", "population/rank", "population/share", *wins]
    found = {name: np.array([line[name] for line in evaluations]) for name in names}
    return found | {RETURN: np.array([returns(updates, e["global_step"]) for e in evaluations])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, help="run folders with --eval-population")
    for run in parser.parse_args().runs:
        print(f"{run}\n{'':24}   all points: noise   of range   without the first third")
        for name, curve in curves(run).items():
            deviation, whole = noise(curve)
            late, part = noise(curve[len(curve) // 3 :])
            share = f"{100 * deviation / whole:8.1f} %"
            print(f"{name:24} {deviation:18.3f} {share} {100 * late / part:20.1f} %")


if __name__ == "__main__":
    main()
