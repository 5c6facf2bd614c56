"""Which of the trainer's settings fit each other; the range of each one stands at its field."""

import os
from typing import Any

from .._suggest import quoted
from ..errors import UserError
from ..players.loading import PlayerError, load_player
from ..players.names import UNBOUND, VoiceSpec, parse_player
from ..rules.map import Map
from ..scoring.mixes import make_reward_mix
from ..scoring.rewards import try_reward

PROCESS_BYTES = 180 * 2**20  # of its own that a process has once PyTorch is loaded


RunSettings = Any  # a learner's: a dataclass with the names of the script's `Args`, perhaps more


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
    unbound = [name for name in voices if parse_player(name).kind in UNBOUND]
    inferring = [name for name in args.pool_bots if "infer:" in name]
    most = args.num_envs * args.learner_seats * args.num_steps  # decisions of an update
    problems = {
        f"--learner-seats {args.learner_seats}: a game has {len(game_map.powers)} powers": (
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
    rollout = 8 * 4 * args.num_envs * args.learner_seats * args.num_steps
    processes = PROCESS_BYTES * args.processes if args.processes == ranks > 1 else 0
    needs = {"hidden": network, "num-envs": games + rollout, "processes": processes}
    if sum(needs.values()) > memory:
        flag = max(needs, key=needs.__getitem__)
        value = getattr(args, flag.replace("-", "_"))
        needed, there = sum(needs.values()) / 2**30, memory / 2**30
        raise UserError(f"--{flag} {value} needs {needed:,.0f} of {there:,.0f} GiB of memory")
