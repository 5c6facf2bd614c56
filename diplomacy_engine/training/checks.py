"""Which of the trainer's settings fit each other; the range of each one stands at its field."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._suggest import quoted
from ..errors import UserError
from ..pictures.png import renderer
from ..players.bots import BOTS
from ..players.loading import load_player
from ..players.names import UNBOUND, VoiceSpec, parse_player
from ..players.policy_files import CHECKPOINT, above
from ..players.trust import needs_naming
from ..rules.map import Map
from ..scoring.mixes import make_reward_mix, names_code
from ..scoring.rewards import try_reward

# Setting -> whether a text of it chooses code to run, or a server to ask.
PLAYERS = ("pool_bots", "eval_bots", "opponent", "eval_bot")  # settings that name players
PROCESS_BYTES = 180 * 2**20  # of its own that a process has once PyTorch is loaded
NAMING_CODE = {"reward": names_code} | dict.fromkeys(PLAYERS, needs_naming)


def check_args(
    args: Any, given: frozenset[str], game_map: Map, ranks: int = 1, talks: bool = False
) -> None:
    """Raise UserError for settings that contradict each other, the map, or what is installed.

    Args:
        args, given: the settings, and those of the command line.
        game_map: with the teams of the settings.
        ranks: how many processes train together.
        talks: whether powers can talk before they order.
    """
    powers = len(game_map.powers)
    if args.learner_seats > powers:
        raise UserError(f"--learner-seats must be from 1 to {powers}, not {args.learner_seats}")
    if args.capture_games:
        try:
            renderer()
        except UserError as error:
            raise UserError(f"{error}; or train with --capture-games 0") from None
    needs = {  # flag -> (whether it has any effect, what it needs)
        "latest_prob": (args.pool_sampling == "latest", "--pool-sampling latest"),
        "pool_bot_prob": (bool(args.pool_bots), "--pool-bots"),
        "league_games": (bool(args.eval_bots) or not args.league_games, "--eval-bots"),
        "capture_thoughts": (args.capture_games > 0, "--capture-games"),
        "wandb_entity": (args.track, "--track"),
        "wandb_project_name": (args.track, "--track"),
    }
    for name in sorted(given & needs.keys()):
        works, needed = needs[name]
        if not works:
            raise UserError(f"--{name.replace('_', '-')} has no effect: it needs {needed}")
    if args.num_envs < ranks:
        raise UserError(f"--num-envs {args.num_envs} is too few for {ranks} ranks")
    if args.year_limit == "truncate" and args.max_years == 0:
        raise UserError("--year-limit truncate needs a year limit, but --max-years is 0")
    if game_map.teams.text and args.learner_seats != most_seats(game_map):
        raise UserError(
            f"with --teams the learner has {most_seats(game_map)} seats of a game, "
            f"not {args.learner_seats}"
        )
    reward = make_reward_mix(args.reward, game_map.teams)
    try_reward(reward, powers, game_map.board.victory_centers)
    for name in args.pool_bots:
        if isinstance(parse_player(name), VoiceSpec):
            raise UserError(
                f"--pool-bots {quoted(name, 60)} would have nobody to talk to: name only the "
                "player after its +"
            )
        load_player(name, game_map=game_map)
        if "infer:" in name:  # what it has found out would be forgotten by --resume
            raise UserError(f"--pool-bots {quoted(name, 60)}: infer: cannot be used here")
    for name in args.eval_bots:
        load_player(name, game_map=game_map)
        talking = parse_player(name)
        if isinstance(talking, VoiceSpec) and not talks:
            raise UserError(
                f"--eval-bots {quoted(name, 60)} talks: that needs diplomacy_learners.press"
            )
        if isinstance(talking, VoiceSpec) and talking.kind in UNBOUND:
            raise UserError(
                f"--eval-bots {quoted(name, 60)} has no effect: deals are binding in training"
            )
    for bot in args.eval_bots:  # in a pool, twice is more often
        if args.eval_bots.count(bot) > 1:
            raise UserError(f"--eval-bots names {quoted(bot)} twice")
    if "eval_bots" in given and not args.eval_bots:
        raise UserError(f"--eval-bots is empty: name one or more of {', '.join(BOTS)}")
    most = args.num_envs * streams_per_game(args, powers) * args.num_steps  # decisions of an update
    if most < 2 * args.num_minibatches:
        raise UserError(
            f"--num-envs {args.num_envs} is too few: an update then has at most {most} "
            f"decisions, fewer than two for each of the {args.num_minibatches} of "
            "--num-minibatches"
        )


def streams_per_game(args: Any, powers: int) -> int:
    """Return how many seats of a game the learner can have."""
    return powers if args.self_play_share else args.learner_seats


def most_seats(game_map: Map) -> int:
    """Return how many powers the largest team of a map has; 1 where there are no teams."""
    return int(np.bincount(game_map.teams.of_power).max())


def seat_learner(args: Any, given: frozenset[str], game_map: Map) -> Any:
    """Return the settings with the `learner_seats` that --teams leaves."""
    if not game_map.teams.text:
        return args
    if "learner_seats" in given and args.learner_seats != most_seats(game_map):
        raise UserError("--learner-seats has no effect with --teams: the learner has these seats")
    return replace(args, learner_seats=most_seats(game_map), teams=game_map.teams.text)


def check_memory(args: Any, game_map: Map, weights: int, ranks: int = 1) -> None:
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
    streams = args.num_envs * streams_per_game(args, len(game_map.powers))
    rollout = 8 * 4 * streams * args.num_steps
    processes = PROCESS_BYTES * args.processes if args.processes == ranks > 1 else 0
    needs = {"hidden": network, "num-envs": games + rollout, "processes": processes}
    if sum(needs.values()) > memory:
        flag = max(needs, key=needs.__getitem__)
        value = getattr(args, flag.replace("-", "_"))
        raise UserError(
            f"--{flag} {value} would take at least {sum(needs.values()) / 2**30:,.0f} GiB of "
            f"memory, and this machine has {memory / 2**30:,.0f} GiB"
        )


def check_resumed(given: frozenset[str]) -> None:
    """Raise UserError if flags were given that a resumed run cannot change, or not to that.

    What names code may be given, but only as it is: see check_own_code.
    """
    other = given - {"resume", "total_timesteps", "track", "cuda", *NAMING_CODE}
    if other:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(other))
        raise UserError(
            f"{flags} cannot be changed on resume; only --total-timesteps, --track and --cuda can"
        )


def check_own_code(kept: Any, args: Any, given: frozenset[str], folder: Path) -> None:
    """Raise UserError unless the command line names the code that a run folder's settings name.

    A folder may come from somebody else. `--reward module:function` imports the module, and a
    player may choose a script or a server.

    Args:
        kept: the settings of the folder.
        args, given: those of the command line.
    """
    for name, names_it in NAMING_CODE.items():
        if not hasattr(kept, name):
            continue
        found, flag = getattr(kept, name), f"--{name.replace('_', '-')}"
        texts = found if isinstance(found, tuple) else (found,)
        shown = " ".join(quoted(text, 200) for text in texts)[:300]
        if name in given and getattr(args, name) != found:
            raise UserError(f"{flag} cannot be changed on resume: in {folder} it is {shown}")
        if any(map(names_it, texts)) and name not in given:
            raise UserError(
                f"{folder} names code to run or a server to ask: if you trust it, confirm it "
                f"with {flag} {shown}"
            )


def check_run(path: str) -> None:
    """Raise UserError if --resume names something else, such as a file of a run."""
    if not _is_run(Path(path)):
        hint = above(Path(path), CHECKPOINT)
        raise UserError(f"--resume {path} is not a run to continue{hint or _missing(Path(path))}")


def _is_run(path: Path) -> bool:
    return all(os.path.isfile(path / name) for name in ("args.json", CHECKPOINT))


def _missing(path: Path) -> str:
    if not path.exists():
        return ": there is no such folder"
    names = [name for name in ("args.json", CHECKPOINT) if not os.path.isfile(path / name)]
    return f": it has no {names[0]}"
