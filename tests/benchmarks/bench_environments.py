"""How fast the environments are.

    python tests/benchmarks/bench_environments.py           # steps, against VectorGame's own rate
    python tests/benchmarks/bench_environments.py --train   # and a library's training against ours

Everything that is compared runs in turns in one process, and of each the quickest quarter counts,
so that what else a machine does matters less.
"""

import argparse
import tempfile
import time
from collections.abc import Callable

import gymnasium
import numpy as np
from bench_trainer import measure, read_updates, train

from diplomacy_engine import VectorGame, make_bot
from diplomacy_engine.players.asking import orders_of

STEPS = {"small": 3000, "three": 2000, "standard": 1000}


def drawn(masks: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return legal actions (E, V) drawn from masks (E, M)."""
    weights = rng.random(masks.shape, np.float32) * masks
    ends = np.cumsum(sizes)
    return np.stack([weights[:, e - n : e].argmax(1) for e, n in zip(ends, sizes)], axis=1)


def quickest(times: list[float]) -> float:
    """Return the mean of the quickest quarter."""
    return float(np.sort(times)[: max(1, len(times) // 4)].mean())


def single(map_name: str, opponents: str) -> None:
    """Print what one step of one environment takes, and how much of it is spent in kernels."""
    env = gymnasium.make(f"Diplomacy-{map_name}-v0", opponents=opponents)
    games, rng, inside = env.unwrapped._agents.games, np.random.default_rng(1), [0.0]
    sizes = env.action_space.nvec
    call = games.call

    def timed(*arguments):
        start = time.perf_counter()
        result = call(*arguments)
        inside[0] += time.perf_counter() - start
        return result

    def steps(count: int) -> float:
        """Return seconds a step, in the environment only."""
        seconds, (_, info) = 0.0, env.reset()
        for _ in range(count):
            action = drawn(info["action_mask"][None], sizes, rng)[0]
            start = time.perf_counter()
            _, _, terminated, truncated, info = env.step(action)
            seconds += time.perf_counter() - start
            if terminated or truncated:
                _, info = env.reset()
        return seconds / count

    env.reset(seed=1)
    batches = [steps(50) for _ in range(STEPS[map_name] // 50)]
    games.call = timed
    kernels = []
    for _ in range(STEPS[map_name] // 50):
        inside[0] = 0.0
        steps(50)
        kernels.append(inside[0] / 50)
    step, kernel = 1e6 * quickest(batches), 1e6 * quickest(kernels)
    print(
        f"{map_name:9} one environment, against {opponents:8} {step:6.0f} us a step, of which "
        f"{kernel:.0f} in kernels and {step - kernel:.0f} around them"
    )


def vector(map_name: str, threads: int, num_envs: int = 256) -> None:
    """Print the rate of make_vec beside that of VectorGame with random orders."""
    name = f"Diplomacy-{map_name}-v0"
    envs = gymnasium.make_vec(name, num_envs, threads=threads)
    games = VectorGame(map_name, num_envs, threads=threads)
    rng, bot = np.random.default_rng(1), make_bot("random")
    _, infos = envs.reset(seed=1)
    played = []

    def step_environments() -> float:
        nonlocal infos
        actions = drawn(infos["action_mask"], envs.single_action_space.nvec, rng)
        turns = envs._agents.games.state.turn
        before = turns.copy()
        start = time.perf_counter()
        _, _, terminated, truncated, infos = envs.step(actions)
        seconds = time.perf_counter() - start
        # Of games that were replaced only the last phase is known; it counts for all.
        played.append(np.where(terminated | truncated, 1, turns - before).sum())
        return seconds

    def step_games() -> float:
        start = time.perf_counter()
        decisions = games.decisions()
        games.observe(decisions)
        games.step(orders_of(games, bot, decisions))
        return time.perf_counter() - start

    def pairs(count: int) -> np.ndarray:
        return np.array([(step_environments(), step_games()) for _ in range(count)])

    pairs(10)
    played.clear()
    mine, theirs = map(quickest, pairs(STEPS[map_name] // 8).T)
    phases = float(np.mean(played))
    print(
        f"{map_name:9} {num_envs} environments, {threads} thread(s): {num_envs / mine:9,.0f} "
        f"decisions/s, {phases / mine:9,.0f} phases/s; VectorGame {num_envs / theirs:9,.0f} "
        f"phases/s; ratio {theirs / mine:.2f} in decisions, "
        f"{theirs * phases / mine / num_envs:.2f} in phases"
    )


def timed_learning(steps: int) -> tuple[float, int]:
    """Return MaskablePPO's decisions/s on the small map, after as many to warm up."""
    import torch
    from sb3_contrib import MaskablePPO
    from train_sb3 import MASKED, NUM_ENVS, NativeVecEnv

    torch.set_num_threads(2)
    model = MaskablePPO(env=NativeVecEnv("Diplomacy-small-v0", NUM_ENVS, seed=1), **MASKED)
    model.learn(2048)
    start, before = time.perf_counter(), model.num_timesteps
    model.learn(steps, reset_num_timesteps=False)
    return (model.num_timesteps - before) / (time.perf_counter() - start), model.num_timesteps


def training(decisions: int) -> None:
    """Print the decisions/s of MaskablePPO and of our trainer, one after the other, twice."""
    for _ in range(2):
        theirs, _ = timed_learning(decisions)
        with tempfile.TemporaryDirectory() as folder:
            updates = read_updates(train("small", 2 * decisions, [], folder))
        ours = measure(updates, decisions)["decisions_per_second"]
        print(
            f"learning on small: our trainer {ours:,.0f} decisions/s, MaskablePPO {theirs:,.0f}, "
            f"ratio {ours / theirs:.1f}"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", action="store_true", help="compare trainings too")
    parser.add_argument("--decisions", type=int, default=20_000, help="of each training")
    arguments = parser.parse_args()
    measures: list[Callable[[], None]] = [
        lambda: single("small", "random"),
        lambda: single("small", "dumbbot"),
        lambda: single("standard", "random"),
    ]
    for run in measures:
        run()
    for map_name in ("small", "standard"):
        for threads in (1, 2):
            vector(map_name, threads)
    if arguments.train:
        training(arguments.decisions)


if __name__ == "__main__":
    main()
