"""Decisions of games in all kinds of phases, and networks as players and tests ask them."""

import functools
import itertools
import types

import numpy as np
import torch
from support.self_play import make_args
from torch import nn

from diplomacy_engine import BoardViews, Decisions, VectorGame, make_bot
from diplomacy_engine.constants import OrderKind, Phase
from diplomacy_engine.games.decisions import join_decisions
from diplomacy_engine.games.draws import order_noise
from diplomacy_engine.learning.experience import Batch, Experience
from diplomacy_engine.learning.players import AgentNetwork
from diplomacy_engine.players.asking import ask_players
from diplomacy_engine.players.policy.player import LIKELIEST

Seed = int | np.random.Generator | None


def noise_of(decisions: Decisions, seed: Seed) -> np.ndarray:
    """Return noise to sample by, drawn from a seed; None: that of the likeliest orders."""
    if seed is None:
        return LIKELIEST
    rng = np.random.default_rng(seed)
    return order_noise(decisions, rng.integers(0, 2**64, decisions.count, np.uint64))


def act(agent: nn.Module, obs: BoardViews, decisions: Decisions, seed: Seed, *heat) -> tuple:
    """Return what a player of an agent chooses: positions, log-probabilities, values."""
    return AgentNetwork(agent).act(obs, decisions, noise_of(decisions, seed), *heat)


def score(agent: nn.Module, obs: BoardViews, decisions: Decisions, chosen: np.ndarray):
    """Return (D,) log-probability, entropy and value of orders that were chosen."""
    action = agent.get_action_and_value(obs, decisions, chosen)
    return action.logprob, action.entropy, action.value


def play_bots(games: VectorGame, rng: np.random.Generator) -> None:
    """Play one phase: half of the powers at random, half as dumbbot, for dislodgements."""
    decisions = games.decisions()
    clever = rng.random(decisions.count) < 0.5
    players = [make_bot("random"), make_bot("dumbbot")]
    games.step(ask_players(games, decisions, players, clever))


@functools.cache
def positions(name: str) -> tuple[Decisions, BoardViews, np.ndarray]:
    """Return decisions of games in all five phase kinds, their observations and phases."""
    rng = np.random.default_rng(0)
    games = VectorGame(name, 24, seed=5, max_years=12, threads=1)
    parts, kept = [], np.zeros(len(Phase), int)
    several = {OrderKind.BUILD: 0, OrderKind.DISBAND: 0}  # winter decisions of several slots
    enough = {"small": (0, 0), "three": (0, 4), "standard": (8, 4)}[name]
    for _ in range(600):
        decisions = games.decisions()
        phase = games.state.phase[decisions.game]
        slots = np.diff(decisions.slot_start)
        rows = []
        for kind in Phase:
            new = np.flatnonzero(phase == kind)
            new = new[np.argsort(-slots[new], kind="stable")][: max(0, min(8, 40 - kept[kind]))]
            kept[kind] += len(new)
            rows.extend(new)
        first_order = decisions.order[decisions.order_start[decisions.slot_start[:-1]]]
        for kind in several:
            here = (phase == Phase.WINTER_ADJUSTMENTS) & (slots > 1)
            new = np.flatnonzero(here & (games.table.kind[first_order] == kind))
            if several[kind] < 10:
                several[kind] += len(new)
                rows.extend(new)
        if rows:
            some = decisions.take(np.array(rows))
            obs = games.view_boards(some.game, some.power)
            parts.append((some, obs, phase[rows]))
        if kept.min() >= 20 and all(map(int.__ge__, several.values(), enough)):
            break
        play_bots(games, rng)
    assert kept.min() >= 20, f"games of {name} reached the phases {kept} times"
    assert all(map(int.__ge__, several.values(), enough)), several
    decisions, obs, phases = zip(*parts)
    return join_decisions(decisions), BoardViews.join(obs), np.concatenate(phases)


def two_slot_decision(name: str, phase: Phase, most: int = 150) -> int:
    decisions, _, phases = positions(name)
    counts = np.diff(decisions.order_start)
    for d, (a, b) in enumerate(slot_ranges(decisions)):
        fits = b - a == 2 and counts[a:b].min() > 1 and counts[a:b].prod() <= most
        if fits and phases[d] == phase:
            return d
    raise AssertionError(f"no fitting decision of {name} in {phase!r}")


def slot_ranges(decisions: Decisions) -> list[tuple[int, int]]:
    return list(itertools.pairwise(decisions.slot_start.tolist()))


def some_batch(agent: nn.Module, count: int = 30, name: str = "small") -> Batch:
    """Return a batch whose `values` tell the transitions apart."""
    decisions, obs, _ = positions(name)
    rows = np.arange(count)
    experience = Experience(obs.take(rows), decisions.take(rows), None)
    chosen, logprobs, _ = act(agent, experience.obs, experience.decisions, 0)
    advantages = np.random.default_rng(0).normal(size=count).astype(np.float32)
    values = rows.astype(np.float32)
    return Batch(experience._replace(chosen=chosen), logprobs, values, advantages, values * 0.1)


def ready(agent: nn.Module, rate: float = 1e-3, **changes) -> types.SimpleNamespace:
    """Return what `update` uses of a run."""
    args, rng = make_args(**changes), np.random.default_rng(0)
    optimizer = torch.optim.Adam(agent.parameters(), lr=rate)
    setup = types.SimpleNamespace(device=next(agent.parameters()).device)
    return types.SimpleNamespace(args=args, agent=agent, setup=setup, optimizer=optimizer, rng=rng)
