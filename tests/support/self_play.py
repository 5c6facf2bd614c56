"""Self-play in small: settings, policies and opponents of tiny runs, and slow references."""

import tomllib
from typing import Any

import numpy as np
import torch
from support.tables import read_text
from torch import nn

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.clock import Clock
from diplomacy_engine.constants import NONE
from diplomacy_engine.learning.experience import Batch
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.learning.registry import Learner
from diplomacy_engine.learning.startup import Setup
from diplomacy_engine.rules.map import load_map
from ppo_selfplay_diplomacy import Agent, Args, Buffer, OpponentPool, Run

CPU = torch.device("cpu")
torch.set_num_threads(1)  # as a run does


SETTINGS = tomllib.loads(read_text(__file__, "self_play.toml")) | {"pool_bots": ()}


def make_args(kind: type[Args] = Args, **changes) -> Any:
    """Return settings of a tiny run of the script or another learner."""
    return kind(**SETTINGS | changes)


def make_run(ranks: Ranks | None = None, **changes) -> Run:
    """Return a new run, its games with seats."""
    return begin(Run, ppo.LEARNER_SPEC, make_args(**changes), ranks)


def begin(kind: type[Run], learner: Learner, args: Args, ranks: Ranks | None = None) -> Any:
    """Return a new run of any learner, its games with seats."""
    game_map = load_map(args.map)
    if teams := getattr(args, "teams", ""):
        game_map = game_map.with_teams(teams, args.team_victory)
    run = kind(Setup(learner, args, game_map, CPU), ranks or Ranks())
    run.seat(np.arange(args.num_envs))
    return run


def make_agent(
    name: str = "small", seed: int = 0, scale: float = 1.0, kind: type = Agent, **changes
) -> Agent:
    """Return a small agent with a policy far from uniform (a new one's is nearly uniform)."""
    torch.manual_seed(seed)
    agent = kind(load_map(name), **{"hidden": 16, "num_layers": 2} | changes)
    with torch.no_grad():
        agent.score.weight.normal_(0.0, scale)
        agent.order_kinds.weight.normal_(0.0, 1.0)
    return agent


def make_pool(copies: int = 1, agent: nn.Module | None = None, **changes) -> OpponentPool:
    """Return a pool with copies frozen at 0, 100, 200, ... learner decisions.

    A copy is a stand-in unless there is an agent to freeze.
    """
    args = make_args(**changes)
    pool = OpponentPool(args, load_map(args.map))
    for number in range(copies):
        pool.freeze(agent or nn.Identity(), 100 * number)
    return pool


def play_phase(run: Run) -> dict[str, Any]:
    """Play one phase as the loop does; return what is counted."""
    result, counts = run.play(Clock())
    ppo.pay_learner(run, result)
    rows, finished = ppo.games_over(run, result)
    run.seats.random_phases[:] -= run.seats.random_phases > 0
    counts |= finished
    run.results.count(counts, run.pool.copies)
    run.pool.record(counts["copy_games"], counts["copy_score"])
    run.games.reset(rows)
    run.seat(rows)
    return counts


def learner_powers(run: Run) -> np.ndarray:
    """Return the learner's powers in each game, by stream: (E, learner seats)."""
    game, power = np.nonzero(run.seats.stream != NONE)
    order = run.seats.stream[game, power].argsort()
    return power[order].reshape(run.games.num_games, -1)


def take_batch(buffer: Buffer, gamma: float, gae_lambda: float) -> Batch:
    return buffer.take_batch(ppo.compute_gae(buffer, gamma, gae_lambda))


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
