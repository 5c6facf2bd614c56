"""Self-play in small: settings, policies and opponents of tiny runs, and slow references."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.selfplay import LEARNER, Batch, Member, OpponentPool, RolloutBuffer, Seating
from diplomacy_engine.training.clock import Clock
from ppo_selfplay_diplomacy import Agent, Args, Run, compute_gae

CPU = torch.device("cpu")


def make_args(**changes) -> Args:
    """Return settings of a tiny run; everything that a test relies on is set here, not taken over
    from the defaults, which are tuned for learning."""
    settings = {
        "map": "small",
        "seed": 1,
        "threads": 1,
        "num_envs": 6,
        "num_steps": 64,
        "hidden": 8,
        "num_layers": 1,
        "reward": "score",
        "reward_mix": "",
        "learner_seats": 1,
        "year_limit": "draw",
        "finish_games": False,
        "pool_sampling": "latest",
        "pool_schedule": "rolling",
        "pool_bots": (),
    }
    return Args(**settings | changes)


def make_run(**changes) -> Run:
    args = make_args(**changes)
    return Run(args, load_map(args.map), CPU)


def make_agent(name: str = "small", seed: int = 0, scale: float = 1.0, **changes) -> Agent:
    """Return a small agent with a policy far from uniform (a new one's is nearly uniform)."""
    torch.manual_seed(seed)
    agent = Agent(load_map(name), **{"hidden": 16, "num_layers": 2} | changes)
    with torch.no_grad():
        agent.score.weight.normal_(0.0, scale)
        agent.order_kinds.weight.normal_(0.0, 1.0)
    return agent


def make_pool(copies: int = 1, make_copy: Callable[[], Any] = object, **changes) -> OpponentPool:
    """Return a pool with copies frozen at 0, 100, 200, ... learner decisions.

    A copy is a stand-in unless `make_copy` makes one.
    """
    pool = OpponentPool(make_args(**changes), make_copy(), [Member(LEARNER, None)])
    for number in range(1, copies):
        pool.freeze(make_copy(), 100 * number)
    return pool


def make_seating(**changes) -> Seating:
    """Return the seats of games of a learner and stand-ins for its copies."""
    args = make_args(**changes)
    games = VectorGame(args.map, args.num_envs, args.seed, args.max_years, 1, auto_reset=False)
    return Seating(args, games, make_pool(**changes), np.random.default_rng(args.seed))


def play_phase(run: Run, progress: float = 0.0) -> dict[str, int]:
    """Play one phase as the loop does; return by how much each counter rises."""
    result, counts = run.self_play.step(Clock())
    run.self_play.credit(result, progress)
    return counts | {"games": run.self_play.seating.end_phase(result)}


def learner_powers(seating: Seating) -> np.ndarray:
    """Return the learner's powers in each game, by stream: (E, learner seats)."""
    return seating.seats.of_learner(LEARNER)[1].reshape(seating.games.num_games, -1)


def take_batch(buffer: RolloutBuffer, gamma: float, gae_lambda: float) -> Batch:
    trajectory = buffer.rewards, buffer.values, buffer.next_values, buffer.ends, buffer.closed
    return buffer.take_batch(compute_gae(*trajectory, gamma, gae_lambda))


def slow_advantages(transitions, gamma: float, gae_lambda: float) -> list[float]:
    """Return the advantages of one stream's (reward, value, next value, end), by the definition."""
    found = []
    for first in range(len(transitions)):
        total, discount = 0.0, 1.0
        for reward, value, next_value, end in transitions[first:]:
            total += discount * (reward + gamma * next_value - value)
            if end:
                break
            discount *= gamma * gae_lambda
        found.append(total)
    return found


class SlowStream:
    """A stream as plain lists."""

    def __init__(self):
        self.closed: list[dict] = []
        self.open: dict | None = None

    def close(self, next_value: float, end: bool) -> None:
        if self.open is not None:
            self.closed.append(self.open | {"next_value": next_value, "end": end})
            self.open = None

    def __len__(self) -> int:
        return len(self.closed) + (self.open is not None)
