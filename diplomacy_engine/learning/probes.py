"""The probe of a policy: what it says of a few fixed positions of its map.

A checkpoint stores it, and whoever loads the checkpoint computes it again. If the two differ, the
code computes another policy than the one that was trained, whatever the name of its file.
"""

import functools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..rules.map import Map

TOLERANCE = 1e-3  # other processors, and a GPU, differ by less
NUM_GAMES = 4
STRIDE = 0.6180339887498949  # golden ratio: its multiples fill (0, 1) evenly


def spread(count: int) -> np.ndarray:
    """Return `count` numbers in (0, 1), the same on every machine."""
    return np.arange(1, count + 1) * STRIDE % 1


def fixed_choices(decisions: Decisions) -> np.ndarray:
    """Return a legal order of each slot (S,) int64, as a position in the slot's list."""
    lengths = np.diff(decisions.order_start)
    return (spread(len(lengths)) * lengths).astype(np.int64)


@functools.lru_cache(maxsize=8)
def probe_positions(game_map: Map) -> tuple[VectorGame, Decisions]:
    """Return games of a map that stand 0, 3, 6 and 9 phases after its beginning, and their
    decisions. What was ordered is chosen by `fixed_choices`."""
    games = VectorGame(game_map, NUM_GAMES, seed=0, max_years=20, threads=1)
    for phase in range(3 * NUM_GAMES - 3):
        decisions, orders = games.decisions(), games.new_orders()
        numbers = decisions.order[decisions.order_start[:-1] + fixed_choices(decisions)]
        games.write_orders(orders, decisions, numbers)
        games.step(orders, np.flatnonzero(3 * np.arange(NUM_GAMES) > phase))
    return games, games.decisions()


@torch.no_grad()
def probe(learner: Any, agent: nn.Module, game_map: Map) -> torch.Tensor:
    """Return what an agent says of `probe_positions`, through all that a player of it calls.

    (3 D,) float32: of D decisions the log-probability of orders that fixed noise draws, that of
    `fixed_choices`, and the value. The agent is in `eval()` meanwhile.
    """
    training = agent.training
    player = learner.make_player(agent.eval(), "probe")
    games, decisions = probe_positions(game_map.with_teams(""))
    legal = player.legal_orders(games, decisions)
    obs = player.observe(games, decisions.game, decisions.power)
    # Much noise, so that no rounding decides between two orders.
    noise = -10 * np.log(-np.log(spread(len(legal.order))))
    _, sampled, value = player.agent.act(obs, legal, noise=noise.astype(np.float32))
    scored = agent.get_action_and_value(obs, legal, fixed_choices(legal)).logprob
    agent.train(training)
    parts = torch.from_numpy(sampled), scored.float().cpu(), torch.from_numpy(value)
    return torch.cat(parts)


def difference(stored: object, computed: torch.Tensor) -> float | None:
    """Return the greatest difference of two probes; None if the stored one is not of their kind."""
    stored = torch.as_tensor(stored) if isinstance(stored, list) else stored
    if (
        not isinstance(stored, torch.Tensor)
        or stored.shape != computed.shape
        or not stored.is_floating_point()
        or not bool(stored.isfinite().all())
    ):
        return None
    return float((stored - computed).abs().max())


@contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the global random generators as they were: new networks draw from them."""
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
