"""The negotiation experiment of the DeepDip thesis: does the share of valid offers rise?

    python tests/benchmarks/sb3_negotiation.py --map small --offers 20000 --seeds 1 2 3

An unmodified learner of Stable-Baselines3 plays `Diplomacy-MAP-negotiation-v0`, whose reward is 5
for a valid offer and -5 for another. The thesis took ACKTR, which version 3 does not have: A2C is
the same without the second-order step, and PPO takes each step with care in another way. Printed is
the share of valid and of agreed offers in each tenth of a run, with 95 % intervals, beside that of
random offers. docs/lab/thesis.md has the results.
"""

import argparse
import json

import gymnasium
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import diplomacy_engine  # noqa: F401  registers the environments
from diplomacy_engine.matches.statistics import wilson_interval

NUM_ENVS = 8
LEARNERS = {"a2c": (A2C, {}), "ppo": (PPO, {"n_steps": 256, "batch_size": 256, "n_epochs": 4})}
KINDS = ("valid", "agreed")


def share(found: list[bool]) -> list[float]:
    """Return how many are true, of 1, with both ends of its interval."""
    count = sum(found)
    return [count / len(found), *wilson_interval(count, len(found))]


def told(found: dict[str, list[bool]]) -> str:
    """Return the shares in words."""
    parts = ((kind, share(found[kind])) for kind in KINDS)
    return ", ".join(f"{kind} {a:.2%} ({b:.2%} - {c:.2%})" for kind, (a, b, c) in parts)


class Watch(BaseCallback):
    """Keeps what came of each offer, and how many games are over."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[bool]] = {kind: [] for kind in KINDS}
        self.games = 0

    def _on_step(self) -> bool:
        for kind in KINDS:
            self.found[kind] += [bool(info[kind]) for info in self.locals["infos"]]
        self.games += int(self.locals["dones"].sum())
        return True


def random_offers(environment: str, answers: str, count: int) -> dict[str, list[bool]]:
    """Return what comes of offers that are drawn evenly from the action space."""
    env = gymnasium.make(environment, answers=answers)
    env.action_space.seed(1)
    env.reset(seed=1)
    found: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for _ in range(count):
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        for kind in KINDS:
            found[kind].append(bool(info[kind]))
        if terminated or truncated:
            env.reset()
    return found


def main() -> None:
    """Train with each seed, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="small")
    parser.add_argument("--offers", type=int, default=20_000, help="of each run")
    parser.add_argument("--learner", choices=LEARNERS, default="ppo")
    parser.add_argument("--random", type=int, default=5_000, help="random offers beside them")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--answers", default="dealer", help="by whose rule the others answer")
    parser.add_argument("--json", help="a file for the shares")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    environment = f"Diplomacy-{arguments.map}-negotiation-v0"
    by_chance = random_offers(environment, arguments.answers, arguments.random)
    print(f"random: {told(by_chance)}", flush=True)
    result = {"random": {kind: share(by_chance[kind]) for kind in KINDS}, "seeds": {}}
    for seed in arguments.seeds:
        make = [lambda: gymnasium.make(environment, answers=arguments.answers)] * NUM_ENVS
        kind, settings = LEARNERS[arguments.learner]
        envs = DummyVecEnv(make)
        model = kind("MlpPolicy", envs, seed=seed, device="cpu", ent_coef=0.01, **settings)
        watch = Watch()
        model.learn(arguments.offers, callback=watch)
        length = len(watch.found["valid"]) // 10
        tenths = [
            {kind: watch.found[kind][i * length : (i + 1) * length] for kind in KINDS}
            for i in range(10)
        ]
        print(f"seed {seed}: {watch.games} games, {length} offers a line", flush=True)
        for tenth in tenths:
            print(f"  {told(tenth)}", flush=True)
        shares = [{kind: share(tenth[kind]) for kind in KINDS} for tenth in tenths]
        result["seeds"][seed] = {"games": watch.games, "tenths": shares}
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
