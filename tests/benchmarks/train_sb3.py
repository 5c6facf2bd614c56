"""Unmodified Stable-Baselines3 on our environments: MaskablePPO.

    python tests/benchmarks/train_sb3.py --minutes 10    # against random

A run is written to runs/sb3-masked-MAP and goes on from there if called again. At the end, or
with `--steps 0`, the policy plays 1,000 games against the same opponent.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

import diplomacy_engine
from diplomacy_engine.matches.statistics import wilson_interval

sys.path.append(str(Path(__file__).parents[2]))
from examples.sb3_vec_env import NativeVecEnv

NUM_ENVS = 64


class OneHotBoard(BaseFeaturesExtractor):
    """The board's features as ones and zeros, and the scalars scaled; leaves out the last orders.

    Of the board it leaves out what takes more than 16 values, the results of the last orders.
    """

    def __init__(self, space: gymnasium.spaces.Dict):
        sizes = space["board"].high[0].astype(int) + 1
        columns = np.flatnonzero(sizes <= 16)
        provinces, scalars = len(space["board"].high), len(space["scalars"].high)
        super().__init__(space, provinces * int(sizes[columns].sum()) + scalars)
        first = np.cumsum(sizes[columns]) - sizes[columns]
        self.register_buffer("columns", torch.as_tensor(columns))
        self.register_buffer("first", torch.as_tensor(first))
        self.register_buffer("scale", 1 / torch.as_tensor(space["scalars"].high).float().clamp(1))
        self.width = int(sizes[columns].sum())

    def forward(self, seen: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the features, (observations, features_dim) float32."""
        index = seen["board"][:, :, self.columns].long() + self.first
        board = torch.zeros(*index.shape[:2], self.width).scatter_(2, index, 1.0)
        return torch.cat([board.flatten(1), seen["scalars"] * self.scale], 1)


MASKED = {
    "policy": "MultiInputPolicy",
    "n_steps": 32,
    "batch_size": 512,
    "n_epochs": 4,
    "learning_rate": 5e-4,
    "ent_coef": 0.01,
    "policy_kwargs": {"features_extractor_class": OneHotBoard, "net_arch": [128, 128]},
}


class StopAfter(BaseCallback):
    """Stops when the time is over."""

    def __init__(self, seconds: float):
        super().__init__()
        self._end = time.monotonic() + seconds

    def _on_step(self) -> bool:
        return time.monotonic() < self._end


def evaluate(
    model, environment: str, games: int, opponents: str | None = None, seed: int = 10_000
) -> dict:
    """Play `games` games, every power equally often, orders sampled; return rates, mean reward."""
    against = {} if opponents is None else {"opponents": opponents}
    powers = diplomacy_engine.load_map(environment.split("-")[1]).powers
    results = []
    for seat, power in enumerate(powers):
        share = games * (seat + 1) // len(powers) - games * seat // len(powers)
        # As many games as needed in as many rows: each row's first counts, so that short games
        # are not counted more often than long ones.
        envs = gymnasium.make_vec(environment, num_envs=share, power=power, threads=2, **against)
        seen, infos = envs.reset(seed=seed + games * seat)
        left, earned = np.ones(share, bool), np.zeros(share)
        while left.any():
            masks = {"action_masks": infos["action_mask"]} if "action_mask" in infos else {}
            actions, _ = model.predict(seen, deterministic=False, **masks)
            seen, rewards, _, _, infos = envs.step(actions)
            earned += rewards * left
            if "_final_info" in infos:
                new = infos["_final_info"] & left
                final = infos["final_info"]
                results += [
                    (power, bool(final["win"][row]), bool(final["solo"][row]), earned[row])
                    for row in np.flatnonzero(new)
                ]
                left &= ~new
    summary = {"games": len(results), "reward": sum(result[3] for result in results) / len(results)}
    for name, column in (("win", 1), ("solo", 2)):
        count = sum(result[column] for result in results)
        summary[name] = [count / len(results), *wilson_interval(count, len(results))]
    for power in powers:
        mine = [result for result in results if result[0] == power]
        summary[f"win as {power}"] = sum(result[1] for result in mine) / len(mine)
    return summary


def main() -> None:
    """Train for a while, save, evaluate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="small")
    parser.add_argument("--steps", type=int, default=100_000_000, help="steps in all, at most")
    parser.add_argument("--minutes", type=float, default=600.0, help="of this call, at most")
    parser.add_argument("--games", type=int, default=1000, help="of the evaluation")
    parser.add_argument("--opponents", help="a bot's name, if not random")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    environment = f"Diplomacy-{arguments.map}-v0"
    folder = arguments.folder or Path("runs") / f"sb3-masked-{arguments.map}"
    folder.mkdir(parents=True, exist_ok=True)
    against = {} if arguments.opponents is None else {"opponents": arguments.opponents}
    envs = NativeVecEnv(environment, NUM_ENVS, seed=arguments.seed, threads=1, **against)
    saved = folder / "model.zip"
    if saved.exists():
        model = MaskablePPO.load(saved, env=envs, device="cpu")
    else:
        model = MaskablePPO(env=envs, seed=arguments.seed, device="cpu", verbose=0, **MASKED)
    began, before, end = time.monotonic(), model.num_timesteps, 60 * arguments.minutes
    while model.num_timesteps < arguments.steps and time.monotonic() - began < end:
        slice_ = min(50_000, arguments.steps - model.num_timesteps)
        stop = StopAfter(end - (time.monotonic() - began))
        model.learn(slice_, callback=stop, reset_num_timesteps=False)
        model.save(saved)
        seconds = time.monotonic() - began
        rate = (model.num_timesteps - before) / seconds
        rewards = [episode["r"] for episode in model.ep_info_buffer]
        print(
            f"{model.num_timesteps:,} steps, {seconds:.0f} s, {rate:,.0f} steps/s, "
            f"mean reward of the last 100 games {np.mean(rewards):.2f}",
            flush=True,
        )
    result = {"environment": environment, "steps": model.num_timesteps}
    result |= {"opponents": arguments.opponents} if arguments.opponents else {}
    result |= evaluate(model, environment, arguments.games, arguments.opponents)
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
