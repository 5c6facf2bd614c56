"""Which of the trainer's settings fit each other; the range of each one stands at its field."""

import os
from collections.abc import Sequence
from typing import Protocol

from .._suggest import quoted
from ..errors import UserError
from ..pictures.png import renderer
from ..players.loading import load_player
from ..players.names import UNBOUND, VoiceSpec, parse_player
from ..rules.map import Map
from ..scoring.mixes import make_reward_mix
from ..scoring.rewards import try_reward

PROCESS_BYTES = 180 * 2**20  # of its own that a process has once PyTorch is loaded


class RunSettings(Protocol):
    """What the library reads of a learner's settings, a frozen dataclass with these fields.

    A learner that knows teams has `teams` and `team_victory` as well, one that talks `press`.
    """

    map: str
    resume: str | None
    start_from: str | None
    exp_name: str
    runs_folder: str
    seed: int
    total_timesteps: int
    processes: int
    cuda: bool
    track: bool
    num_envs: int
    num_steps: int
    num_minibatches: int
    max_years: int
    year_limit: str
    reward: str
    hidden: int
    learner_seats: int
    pool_size: int
    pool_bots: Sequence[str]
    pool_bot_prob: float
    eval_bots: Sequence[str]
    eval_games: int
    capture_games: int


def check_args(args: RunSettings, game_map: Map, ranks: int = 1, talks: bool = False) -> None:
    """Raise UserError for settings that contradict each other, the map, or what is installed.

    The map has the teams of the settings; `talks`: whether powers can talk before they order.
    """
    powers = len(game_map.powers)
    if args.learner_seats > powers:
        raise UserError(f"--learner-seats must be from 1 to {powers}, not {args.learner_seats}")
    if args.capture_games:
        try:
            renderer()
        except UserError as error:
            raise UserError(f"{error}; or train with --capture-games 0") from None
    if args.num_envs < ranks:
        raise UserError(f"--num-envs {args.num_envs} is too few for {ranks} processes")
    if args.year_limit == "truncate" and args.max_years == 0:
        raise UserError("--year-limit truncate needs a year limit, but --max-years is 0")
    reward = make_reward_mix(args.reward, game_map.teams)
    try_reward(reward, powers, game_map.board.victory_centers)
    for flag, names in (("pool-bots", args.pool_bots), ("eval-bots", args.eval_bots)):
        for name in names:
            if name.count(",") and all(part.isidentifier() for part in name.split(",")):
                raise UserError(f"--{flag} {quoted(name, 60)}: names are separated by spaces")
            load_player(name, game_map=game_map)
    for name in args.pool_bots:
        if isinstance(parse_player(name), VoiceSpec):
            raise UserError(
                f"--pool-bots {quoted(name, 60)} would have nobody to talk to: name only the "
                "player after its +"
            )
        if "infer:" in name:  # a checkpoint does not keep what it has inferred
            raise UserError(f"--pool-bots {quoted(name, 60)}: infer: cannot be used here")
    for name in args.eval_bots:
        talking = parse_player(name)
        if isinstance(talking, VoiceSpec) and not talks:
            raise UserError(
                f"--eval-bots {quoted(name, 60)} talks: that needs diplomacy_learners.press"
            )
        if isinstance(talking, VoiceSpec) and talking.kind in UNBOUND:
            raise UserError(
                f"--eval-bots {quoted(name, 60)} has no effect: deals are binding in training"
            )
        if args.eval_bots.count(name) > 1:  # in a pool, twice is more often
            raise UserError(f"--eval-bots names {quoted(name)} twice")
    most = args.num_envs * args.learner_seats * args.num_steps  # decisions of an update
    if most < 2 * args.num_minibatches:
        raise UserError(
            f"--num-envs {args.num_envs} is too few: an update then has at most {most} "
            f"decisions, fewer than two for each of the {args.num_minibatches} of "
            "--num-minibatches"
        )


def check_memory(args: RunSettings, game_map: Map, weights: int, ranks: int = 1) -> None:
    """Raise UserError if a run needs more memory than this machine has.

    Counted is what grows with the flags named: copies of the network with `weights` numbers, of
    each game its network's inputs and what the rollout keeps, and what a process takes without any
    of these; so a run takes more than that.
    """
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
        raise UserError(
            f"--{flag} {value} would take at least {sum(needs.values()) / 2**30:,.0f} GiB of "
            f"memory, and this machine has {memory / 2**30:,.0f} GiB"
        )
