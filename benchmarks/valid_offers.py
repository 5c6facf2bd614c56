"""Does the share of valid offers rise while MaskablePPO learns to make them?

    python benchmarks/valid_offers.py --map standard --steps 100000 --out offers.svg

Trains on `Diplomacy-MAP-negotiation-v0` with the reward `valid`, once for each seed, and draws the
share of valid offers over the steps. Needs sb3-contrib and matplotlib.
"""

from dataclasses import dataclass
from pathlib import Path

import gymnasium
import matplotlib
import numpy as np
import tyro
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import diplomacy_engine  # noqa: F401 (registers the environments)

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first


@dataclass
class Args:
    """What is trained, and where the picture goes."""

    map: str = "standard"
    """map of the games"""
    seeds: int = 3
    """seeds, from 1 on"""
    steps: int = 100_000
    """offers that each makes"""
    window: int = 2048
    """offers of one point of the curve"""
    out: Path = Path("valid_offers.svg")
    """picture to draw"""


class CountValid(BaseCallback):
    """Keeps whether each offer was valid."""

    def __init__(self):
        super().__init__()
        self.valid: list[bool] = []

    def _on_step(self) -> bool:
        self.valid += [info["valid"] for info in self.locals["infos"]]
        return True


def shares(args: Args, seed: int) -> np.ndarray:
    """Train once; return the share of valid offers of each window."""

    def make() -> gymnasium.Env:
        return gymnasium.make(f"Diplomacy-{args.map}-negotiation-v0")

    counter = CountValid()
    envs = make_vec_env(make, 8, seed=seed)
    model = MaskablePPO("MlpPolicy", envs, n_steps=128, batch_size=256, seed=seed)
    model.learn(args.steps, callback=counter)
    whole = len(counter.valid) // args.window * args.window
    return np.reshape(counter.valid[:whole], (-1, args.window)).mean(1)


def main(args: Args) -> None:
    figure, axes = plt.subplots(figsize=(6, 3.2))
    for seed in range(1, args.seeds + 1):
        curve = shares(args, seed)
        print(f"seed {seed}: {curve[0]:.2%} at first, {curve[-1]:.2%} at the end", flush=True)
        axes.plot(np.arange(1, len(curve) + 1) * args.window, 100 * curve, label=f"seed {seed}")
    axes.set_xlabel("offers")
    axes.set_ylabel(f"valid offers on {args.map}, %")
    axes.set_ylim(0)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(args.out)


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
