"""The probe of a policy: its outputs for a few fixed positions of its map.

A checkpoint stores the probe, and loading the checkpoint computes it again. If the two differ, the
code computes another policy than the trained one.
"""

import functools
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from .._files import file_sha256
from ..constants import Phase
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..players.policy.player import PolicyPlayer
from ..rules.map import Map
from .checkpoints import Checkpoint

TOLERANCE = 1e-3  # other processors, and a GPU, differ by less
ROUNDING = 1e-5  # and of large values by a share less than this
LEAST_LOGPROB = -100.0  # what is less probable, such as what a policy masks, counts as this
# A position is the first in one of these phases that comes after so many others.
STOPS = (
    (0, (Phase.SPRING_MOVEMENT,)),
    (3, (Phase.FALL_MOVEMENT,)),
    (6, (Phase.SPRING_MOVEMENT,)),
    (3, (Phase.SPRING_RETREATS, Phase.FALL_RETREATS)),
    (3, (Phase.WINTER_ADJUSTMENTS,)),
)
NUM_GAMES = 64  # that are looked through for them: few units are dislodged
MOST_PHASES = 40  # of each; on some maps a phase never comes
STRIDE = 0.6180339887498949  # golden ratio: its multiples by squares fill (0, 1) without a pattern


def spread(count: int, phase: int = 0) -> np.ndarray:
    """Return `count` numbers in (0, 1), the same on every machine, and others in each phase."""
    return np.arange(1 + 1000 * phase, 1 + 1000 * phase + count) ** 2 * STRIDE % 1


def fixed_choices(decisions: Decisions, phase: int = 0) -> np.ndarray:
    """Return a legal order of each slot (S,) int64, as a position in the slot's list."""
    lengths = np.diff(decisions.order_start)
    return (spread(len(lengths), phase) * lengths).astype(np.int64)


@functools.lru_cache(maxsize=8)
def probe_positions(game_map: Map) -> tuple[VectorGame, Decisions]:
    """Return games of a map, each in a phase of STOPS, and their decisions.

    What was ordered before is chosen by `fixed_choices`. A game stands at its beginning where no
    such phase has come.
    """
    source = VectorGame(game_map, NUM_GAMES, seed=0, max_years=20, threads=1)
    games, missing = source.spare(len(STOPS)), dict(enumerate(STOPS))
    games.copy_from(source, np.zeros(len(STOPS), np.int64), np.arange(len(STOPS)))
    for phase in range(MOST_PHASES):
        decisions, orders = source.decisions(), source.new_orders()
        for place, (least, phases) in list(missing.items()):
            rows = decisions.game[np.isin(source.state.phase[decisions.game], phases)]
            if phase >= least and len(rows):
                games.copy_from(source, rows[:1], np.array([place]))
                del missing[place]
        if not missing:
            break
        numbers = decisions.order[decisions.order_start[:-1] + fixed_choices(decisions, phase)]
        source.write_orders(orders, decisions, numbers)
        source.step(orders)
    return games, games.decisions()


@torch.no_grad()
def probe(
    make_player: Callable[..., PolicyPlayer], agent: nn.Module, game_map: Map
) -> torch.Tensor:
    """Return what an agent says of `probe_positions`, through all that a player of it calls.

    (3 D,) float32: of D decisions the log-probability of orders that fixed noise draws, that of
    `fixed_choices`, and the value. The agent is in `eval()` meanwhile.
    """
    training = agent.training
    player = make_player(agent.eval(), "probe")
    games, decisions = probe_positions(game_map.with_teams(""))
    legal = player.legal_orders(games, decisions)
    obs = player.observe(games, decisions.game, decisions.power)
    # Much noise, so that no rounding decides between two orders.
    noise = -10 * np.log(-np.log(spread(len(legal.order))))
    _, sampled, value = player.agent.act(obs, legal, noise.astype(np.float32))
    scored = agent.get_action_and_value(obs, legal, fixed_choices(legal)).logprob
    agent.train(training)
    logprobs = torch.cat([torch.from_numpy(sampled), scored.float().cpu()])
    return torch.cat([logprobs.clamp(min=LEAST_LOGPROB), torch.from_numpy(value)])


def check(
    saved: Checkpoint, agent: nn.Module, make_player: Callable[..., PolicyPlayer], script: Path
) -> None:
    """Raise UserError if the agent of a checkpoint, as `script` makes it, is not the policy that
    was trained; note if nobody can tell, since the checkpoint has no probe."""
    if "probe" not in saved:
        _note(
            f"{saved.path} has no probe: {script.name} may compute another policy than the one "
            "that was trained"
        )
        return
    computed = probe(make_player, agent, saved.map)
    if not is_sound(saved["probe"], len(computed)):
        raise UserError(f"{saved.path}: probe: damaged, or of other positions")
    gap = difference(saved["probe"], computed)
    if gap > TOLERANCE:
        edited = "the edit, or edit a copy of another name"
        if file_sha256(script) == saved["script_sha256"]:
            edited = "the change in diplomacy_engine, or in a module that the script imports"
        raise UserError(
            f"{saved.path}: {script} computes another policy than the one that was trained "
            f"(it differs by {gap:.2g}): undo {edited}"
        )


@functools.cache
def _note(text: str) -> None:
    """Print a note, once."""
    print(f"note: {text}", file=sys.stderr)


def is_sound(stored: object, size: int) -> bool:
    """Tell whether what a file has as a probe is `size` finite numbers (3 D,) of float32."""
    return (
        isinstance(stored, torch.Tensor)
        and stored.layout == torch.strided
        and stored.device.type == "cpu"
        and (stored.dtype, tuple(stored.shape)) == (torch.float32, (size,))
        and bool(stored.isfinite().all())
    )


def difference(stored: torch.Tensor, computed: torch.Tensor) -> float:
    """Return the greatest difference of two probes, less rounding; infinite if one has none."""
    gap = (stored - computed).abs() - ROUNDING * stored.abs()
    return float(gap.nan_to_num(torch.inf).max())


def generators(device: torch.device | None = None) -> list:
    """Return the states of the generators that this process has one of, of a GPU's, too."""
    cuda = [torch.cuda.get_rng_state(device)] if device and device.type == "cuda" else []
    return [random.getstate(), np.random.get_state(), torch.get_rng_state(), *cuda]


def set_generators(states: list, device: torch.device | None = None) -> None:
    python, numpy, of_torch, *of_cuda = states
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(of_torch.cpu())
    for state in of_cuda if device and device.type == "cuda" else ():
        torch.cuda.set_rng_state(state.cpu(), device)


@contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the global random generators as they were: new networks draw from them. So does the
    number of PyTorch's next hook, which all processes are to have alike."""
    states, next_hook = generators(), RemovableHandle.next_id
    try:
        yield
    finally:
        set_generators(states)
        RemovableHandle.next_id = next_hook
