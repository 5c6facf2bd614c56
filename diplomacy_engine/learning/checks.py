"""Which of the trainer's settings fit each other, and whether an update has gone well.

The range of each setting stands at its field.
"""

import math
import os
from collections.abc import Mapping, Sequence

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .._suggest import quoted
from ..errors import UserError
from ..players.loading import PlayerError, load_player
from ..players.names import UNBOUND, VoiceSpec, parse_player
from ..rules.map import Map
from ..scoring.mixes import make_reward_mix
from ..scoring.rewards import try_reward
from .checkpoints import MOST_WEIGHT, is_sound
from .of_scripts import Run, RunSettings
from .ranks import Ranks, TrainingError

MIN_LEARNING_RATE = 1e-8  # below it a step may be lost in rounding
PROCESS_BYTES = 180 * 2**20  # of its own that a process has once PyTorch is loaded


def most_seats(args: RunSettings) -> int:
    """Return how many seats of one game the learner has at most; `learner_seats` is a mean."""
    return math.ceil(args.learner_seats)


def check_args(args: RunSettings, game_map: Map, ranks: int = 1, talks: bool = False) -> None:
    """Raise UserError for settings that contradict each other, the map, or existing files."""
    reward = make_reward_mix(args.reward, game_map)
    try_reward(reward, len(game_map.powers), game_map.board.victory_centers)
    for flag in ("pool_bots", "eval_bots"):
        for name in getattr(args, flag):
            try:
                load_player(name, game_map=game_map)
            except PlayerError as error:
                spaces = "; names are separated by spaces" if "," in name else ""
                raise UserError(f"--{flag.replace('_', '-')}: {error}{spaces}") from None
    pool = [name for name in args.pool_bots if _talks(name)]
    voices = [name for name in args.eval_bots if _talks(name)]
    unbound = [name for name in voices if getattr(parse_player(name), "kind", "") in UNBOUND]
    inferring = [name for name in args.pool_bots if "infer:" in name]
    most = args.num_envs * most_seats(args) * args.num_steps  # decisions of an update
    problems = {
        f"--learner-seats {args.learner_seats:g}: a game has {len(game_map.powers)} powers": (
            args.learner_seats > len(game_map.powers)
        ),
        f"--num-envs {args.num_envs} is too few for {ranks} processes": args.num_envs < ranks,
        "--year-limit truncate needs a year limit, but --max-years is 0": (
            args.year_limit == "truncate" and args.max_years == 0
        ),
        f"--pool-bots {quoted(pool, 60)}: there is no talk, name the player after the +": pool,
        # A checkpoint does not keep what was inferred.
        f"--pool-bots {quoted(inferring, 60)}: infer: cannot be used here": inferring,
        f"--eval-bots {quoted(voices, 60)}: talk needs diplomacy_learners.press": (
            voices and not talks
        ),
        f"--eval-bots {quoted(unbound, 60)}: it needs --binding no": (
            unbound and getattr(args, "binding", "yes") == "yes"
        ),
        f"--num-envs {args.num_envs} is too few: an update has at most {most} decisions, fewer "
        f"than two for each of --num-minibatches {args.num_minibatches}": (
            most < 2 * args.num_minibatches
        ),
    }
    for problem, there in problems.items():
        if there:
            raise UserError(problem)


def _talks(name: str) -> bool:
    return isinstance(parse_player(name), VoiceSpec)


def check_memory(args: RunSettings, game_map: Map, weights: int, ranks: int = 1) -> None:
    """Raise UserError if arrays whose size follows from the named flags exceed the memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not to be known here
        return
    provinces = len(game_map.provinces)
    # The agent, its gradients, Adam's two moments, the average, and the pool.
    network = 4 * weights * ranks * (5 + args.pool_size)
    games = 4 * args.num_envs * provinces * 3 * args.hidden
    rollout = 8 * 4 * args.num_envs * most_seats(args) * args.num_steps
    processes = PROCESS_BYTES * args.processes if args.processes == ranks > 1 else 0
    needs = {"hidden": network, "num-envs": games + rollout, "processes": processes}
    if sum(needs.values()) > memory:
        flag = max(needs, key=needs.__getitem__)
        value = getattr(args, flag.replace("-", "_"))
        needed, there = sum(needs.values()) / 2**30, memory / 2**30
        raise UserError(f"--{flag} {value} needs {needed:,.0f} of {there:,.0f} GiB of memory")


def optimizers(run: Run) -> list[Optimizer]:
    """Return the optimizers of a run, also those in collections and in objects of its script."""
    pending, passed, out = list(vars(run).values()), set(), []
    for value in pending:
        if id(value) in passed:
            continue
        passed.add(id(value))
        if isinstance(value, Optimizer):
            out.append(value)
        elif isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value
        elif type(value).__module__ == type(run).__module__ and not isinstance(value, nn.Module):
            pending += getattr(value, "__dict__", {}).values()
    return out


def check_optimizers(run: Run, parts: Sequence[object]) -> None:
    """Raise UserError if a weight of a run, which has `parts`, would not learn as settings say."""
    groups = [g for part in parts if isinstance(part, Optimizer) for g in part.param_groups]
    stepped = {id(weight) for group in groups for weight in group["params"]}
    for name, weight in run.agent.named_parameters():
        if weight.requires_grad and id(weight) not in stepped:
            raise UserError(f"agent.{name} learns nothing: no optimizer of the run has it")
    annealed = set(map(id, optimizers(run)))
    for part in parts if run.args.anneal else ():
        kind = type(part).__name__
        if isinstance(part, LRScheduler):
            raise UserError(f"a {kind} sets the learning rate, and so does --anneal: turn one off")
        if isinstance(part, Optimizer) and id(part) not in annealed:
            raise UserError(f"an {kind} is not annealed: make it an attribute of Run")


def weight_hash(agent: nn.Module) -> int:
    """Return a checksum of an agent's weights."""
    weights = torch.cat([weight.detach().flatten().float() for weight in agent.parameters()])
    return int(weights.view(torch.int32).sum()) % 2**40


def check_learned(run: Run, losses: Mapping[str, float], before: int, ranks: Ranks) -> None:
    """Raise TrainingError if an update went wrong; `before` is the `weight_hash` before it."""
    if not all(map(math.isfinite, losses.values())):
        raise TrainingError(f"a loss is not finite ({dict(losses)})")
    steppers = optimizers(run)
    moments = [figures for optimizer in steppers for figures in optimizer.state.values()]
    if not is_sound(run.agent.parameters(), moments):
        raise TrainingError(f"a weight is not finite, or beyond {MOST_WEIGHT:,.0f}")
    after = weight_hash(run.agent)
    if ranks.sum({"hash": after})["hash"] != after * ranks.count:
        raise TrainingError(
            "an update has left the processes with different weights: `ranks.sum_gradients` comes "
            "after the last backward(), and before gradients are clipped"
        )
    rates = [group["lr"] for optimizer in steppers for group in optimizer.param_groups]
    if after == before and max(rates) > MIN_LEARNING_RATE:
        raise TrainingError(
            "an update has changed no weight: does run.optimizer step the weights of run.agent, "
            "and does nothing clear their gradients, or the loss's, before it does?"
        )
