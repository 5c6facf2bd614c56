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
from ..players.checkpoints import CHECKPOINT, POLICY, policy_file
from ..players.loading import load_player
from ..players.names import UNBOUND, VoiceSpec, parse_player
from ..players.policy import PolicyPlayer
from ..players.population import population_folder, read_population
from ..rules.map import Map
from ..rules.vocabulary import vocabulary
from ..scoring.mixes import make_reward_mix, names_code
from ..scoring.rewards import try_reward

NETWORK = ("hidden", "num_layers", "autoregressive", "value_shares")  # what an agent is made of


def network_settings(args: Any) -> tuple[str, ...]:
    """Return which settings (an object, or their class) a network is made of."""
    return ("press", *NETWORK) if hasattr(args, "press") else NETWORK


def check_args(args: Any, given: frozenset[str], game_map: Map, ranks: int = 1) -> None:
    """Raise UserError for settings that contradict each other, the map, or what is installed."""
    powers = len(game_map.powers)
    if args.learner_seats > powers:
        raise UserError(f"--learner-seats must be from 1 to {powers}, not {args.learner_seats}")
    if args.capture_games and args.save_games:
        try:
            renderer()
        except UserError as error:
            raise UserError(f"{error}; or train with --capture-games 0") from None
    needs = {  # flag -> (whether it has any effect, what it needs)
        "reward": (not args.reward_mix, "no --reward-mix beside it"),
        "latest_prob": (args.pool_sampling == "latest", "--pool-sampling latest"),
        "recency_decay": (args.pool_sampling == "recency", "--pool-sampling recency"),
        "warm_up_phases": (args.warm_up_share > 0, "--warm-up-share"),
        "pool_bot_prob": (bool(args.pool_bots), "--pool-bots"),
        "pool_sampling": (args.pool_schedule == "rolling", "--pool-schedule rolling"),
        "pool_interval": (args.pool_schedule == "rolling", "--pool-schedule rolling"),
        "pool_size": (args.pool_schedule == "rolling", "--pool-schedule rolling"),
        "staged_interval": (args.pool_schedule == "staged", "--pool-schedule staged"),
        "staged_threshold": (args.pool_schedule == "staged", "--pool-schedule staged"),
        "staged_games": (args.pool_schedule == "staged", "--pool-schedule staged"),
        "league_games": (bool(args.eval_bots) or not args.league_games, "--eval-bots"),
        "capture_games": (args.capture_games <= args.save_games, "as many --save-games"),
        "capture_thoughts": (args.save_games > 0, "--save-games"),
        "exploit_greedy": (bool(args.exploit), "--exploit"),
        "wandb_mode": (args.track, "--track"),
        "wandb_tags": (args.track, "--track"),
        "wandb_entity": (args.track, "--track"),
        "wandb_project_name": (args.track, "--track"),
    }
    if args.exploit_greedy and hasattr(args, "press"):
        raise UserError("--exploit-greedy goes without talk: ppo_selfplay_diplomacy.py has it")
    if args.partners == "pool" and np.bincount(game_map.teams.of_power).max() == 1:
        raise UserError("--partners pool needs --teams: no power has a partner here")
    for name in sorted(given & needs.keys()):
        works, needed = needs[name]
        if not works:
            raise UserError(f"--{name.replace('_', '-')} has no effect: it needs {needed}")
    if args.kl_coef and not args.average:
        raise UserError(f"--kl-coef {args.kl_coef} pulls to an average: it needs --average")
    if args.num_envs < ranks:
        raise UserError(f"--num-envs {args.num_envs} is too few for {ranks} ranks")
    if args.year_limit == "truncate" and args.max_years == 0:
        raise UserError("--year-limit truncate needs a year limit, but --max-years is 0")
    if args.learner_seats != most_seats(args, game_map):
        raise UserError(
            f"the learner has {most_seats(args, game_map)} seats of a game by --teams and "
            f"--learner-powers, not {args.learner_seats}"
        )
    reward = make_reward_mix(args.reward_mix or args.reward, game_map.teams)
    try_reward(reward, powers, game_map.board.victory_centers)
    if args.eval_population:
        if game_map.teams.text:
            raise UserError("--eval-population ranks powers, and goes without --teams")
        read_population(population_folder(None, game_map), game_map)
    for name in args.pool_bots:
        if isinstance(parse_player(name), VoiceSpec):
            raise UserError(
                f"--pool-bots {quoted(name, 60)} would be silent: name the player alone"
            )
        if isinstance(load_player(name, game_map=game_map), PolicyPlayer):
            raise UserError(
                f"--pool-bots {quoted(name, 60)} is a policy: train against it with --exploit, or "
                "against a search with it, such as fast:PATH"
            )
        if "infer:" in name:  # what it has found out would be forgotten by --resume
            raise UserError(f"--pool-bots {quoted(name, 60)}: infer: cannot be had here")
    for name in args.eval_bots:
        load_player(name, game_map=game_map)
        talking = parse_player(name)
        if isinstance(talking, VoiceSpec) and not hasattr(args, "press"):
            raise UserError(
                f"--eval-bots {quoted(name, 60)} talks: that needs ppo_press_diplomacy.py"
            )
        if isinstance(talking, VoiceSpec) and talking.kind in UNBOUND:
            raise UserError(f"--eval-bots {quoted(name, 60)} has no use: deals bind in training")
    for bot in args.eval_bots:  # in a pool, twice is more often
        if args.eval_bots.count(bot) > 1:
            raise UserError(f"--eval-bots names {bot!r} twice")
    if "eval_bots" in given and not args.eval_bots and not args.exploit:
        raise UserError(f"--eval-bots is empty: name one or more of {', '.join(BOTS)}")
    most = args.num_envs * args.learner_seats * args.num_steps  # decisions of an update
    if most < 2 * args.num_minibatches:
        raise UserError(
            f"--num-envs {args.num_envs} is too few: an update has at most {most} decisions then, "
            f"less than two for each of the {args.num_minibatches} of --num-minibatches"
        )


def most_seats(args: Any, game_map: Map) -> int:
    """Return how many seats of a game the learner has at most.

    Raises:
        UserError: --learner-powers names no power, one twice, or others than a team allows.
    """
    team = game_map.teams.of_power
    own = [game_map.power_number(name) for name in args.learner_powers]
    if len(set(own)) < len(own):
        raise UserError("--learner-powers names a power twice")
    if not game_map.teams.text:
        return len(own) or args.learner_seats
    if args.partners == "pool":  # one power of whichever team
        return 1
    if own and set(own) != set(np.flatnonzero(team == team[own[0]])):
        raise UserError(
            f"--learner-powers {' '.join(args.learner_powers)} must be one team of "
            f"{', '.join(game_map.teams.names)}"
        )
    return len(own) or int(np.bincount(team).max())


def seat_learner(args: Any, given: frozenset[str], game_map: Map) -> Any:
    """Return the settings with the `learner_seats` that --teams and --learner-powers leave."""
    seats = most_seats(args, game_map)
    if "learner_seats" in given and seats != args.learner_seats:
        flag = "--learner-powers" if args.learner_powers else "--teams"
        raise UserError(f"--learner-seats has no effect with {flag}: the learner has these seats")
    return replace(args, learner_seats=seats, teams=game_map.teams.text)


def check_memory(args: Any, game_map: Map, weights: int, ranks: int = 1) -> None:
    """Raise UserError if a run needs more memory than this machine has.

    Counted is what grows with the flags named: copies of the network with `weights` numbers, and of
    each game its network's inputs and what the rollout keeps; so a run takes more than that.
    """
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not to be known here
        return
    provinces = len(game_map.provinces)
    pool = 1 if args.pool_schedule == "staged" else args.pool_size
    # The agent, its gradients, Adam's two moments, the average, and the pool.
    network = 4 * weights * ranks * (5 + pool)
    games = 4 * args.num_envs * provinces * 3 * args.hidden
    rollout = 8 * 4 * args.num_envs * args.learner_seats * args.num_steps
    needs = {"hidden": network, "num-envs": games + rollout}
    if sum(needs.values()) > memory:
        flag = max(needs, key=needs.__getitem__)
        value = getattr(args, flag.replace("-", "_"))
        raise UserError(
            f"--{flag} {value} would take at least {sum(needs.values()) / 2**30:,.0f} GiB of "
            f"memory, and this machine has {memory / 2**30:,.0f} GiB"
        )


def check_resumed(args: Any, given: frozenset[str]) -> None:
    """Raise UserError if flags were given that a resumed run cannot change, or not to that.

    The reward may be given, but only as it is: see check_own_code.
    """
    other = given - {"resume", "total_timesteps", "track", "cuda", "reward", "reward_mix"}
    if other:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(other))
        raise UserError(
            f"{flags} cannot be changed on resume; only --total-timesteps, --track and --cuda can"
        )


def check_own_code(kept: Any, args: Any, given: frozenset[str], folder: Path) -> None:
    """Raise UserError unless the command line names the code that a run folder's settings name.

    A folder may come from somebody else, and `--reward module:function` imports the module.

    Args:
        kept: the settings of the folder.
        args, given: those of the command line.
    """
    for name in given & {"reward", "reward_mix"}:
        if getattr(args, name) != getattr(kept, name):
            raise UserError(
                f"--{name.replace('_', '-')} cannot be changed on resume: in {folder} it is "
                f"{quoted(getattr(kept, name))}"
            )
    name = "reward_mix" if kept.reward_mix else "reward"
    text = getattr(kept, name)
    if names_code(text) and name not in given:
        raise UserError(
            f"{folder} names code to be run, the reward {quoted(text)}; if you trust it, say so "
            f"with --{name.replace('_', '-')} {quoted(text)}"
        )


def check_ranks(folder: Path, saved: dict, ranks: int) -> None:
    """Raise UserError unless as many ranks resume a run as have written its checkpoint."""
    others = saved.get("other_ranks", ())
    if not isinstance(others, list | tuple):
        raise UserError(f"{folder}: its checkpoint cannot be continued ('other_ranks' is no list)")
    before = 1 + len(others)
    if before != ranks:
        raise UserError(
            f"{folder} is a run of {before} ranks and cannot go on with {ranks}: "
            f"resume it with torchrun --nproc_per_node={before}"
        )


def exploit_args(args: Any, given: frozenset[str], saved: dict, game_map: Map) -> Any:
    """Return the settings of a run with --exploit: one learner seat against the policy `saved`.

    What a settings file says of the pool does not matter then. UserError if a flag did, or if
    the policy plays another map.
    """
    if saved["vocabulary_hash"] != vocabulary(game_map).hash:
        raise UserError(
            f"--exploit {args.exploit} was trained on map {quoted(saved['map_name'], 60)} or a "
            f"version of it, not on {game_map.name!r} as it is"
        )
    talk = saved["args"].get("press"), getattr(args, "press", None)
    if talk[0] != talk[1]:
        raise UserError(
            f"--exploit {args.exploit} talks by --press {quoted(talk[0], 20)}, this run by --press "
            f"{quoted(talk[1], 20)}"
        )
    names = {"learner_seats", "latest_prob", "recency_decay", "opponent_temperature"}
    other = [name for name in given if name.startswith(("pool_", "staged_")) or name in names]
    if other:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(other))
        raise UserError(
            f"{flags} cannot be given with --exploit: the learner has one seat and its only "
            "opponent is the policy of the checkpoint"
        )
    pool = {"pool_bots": (), "pool_schedule": "rolling", "pool_sampling": "uniform"}
    return replace(args, learner_seats=1, opponent_temperature=1.0, **pool)


def check_start(args: Any, saved: dict, game_map: Map) -> None:
    """Raise UserError unless a run can begin with the policy `saved` of --start-from."""
    if saved["vocabulary_hash"] != vocabulary(game_map).hash:
        raise UserError(
            f"--start-from {args.start_from} was trained on map {quoted(saved['map_name'], 60)} "
            f"or a version of it, not on {game_map.name!r} as it is"
        )
    for name in network_settings(args):
        theirs, ours = saved["args"][name], getattr(args, name)
        if theirs != ours:
            flag = name.replace("_", "-")
            raise UserError(
                f"--start-from {args.start_from} has another network: "
                f"--{flag} is {quoted(theirs, 20)} there, here {ours}"
            )


def policy_path(flag: str, name: str) -> Path:
    """Return the file of the policy that a flag names; UserError for a bot."""
    if name in BOTS:
        raise UserError(
            f"--{flag} needs a checkpoint, and {name!r} is a bot: "
            f"--pool-bots {name} --pool-bot-prob 1 trains against it"
        )
    path = policy_file(name)
    if not path.is_file():
        what = "there is no such checkpoint"
        if Path(name).is_dir():
            what = f"the folder has neither {CHECKPOINT} nor {POLICY}"
        raise UserError(f"--{flag} {name}: {what}{_above(path, CHECKPOINT, POLICY)}")
    return path


def check_run(path: str) -> None:
    """Raise UserError if --resume names something else, such as a file of a run."""
    if not _is_run(Path(path)):
        hint = _above(Path(path), CHECKPOINT)
        raise UserError(f"--resume {path} is no run to go on with{hint or _missing(Path(path))}")


def _is_run(path: Path) -> bool:
    return all(os.path.isfile(path / name) for name in ("args.json", CHECKPOINT))


def _missing(path: Path) -> str:
    if not path.exists():
        return ": there is no such folder"
    names = [name for name in ("args.json", CHECKPOINT) if not os.path.isfile(path / name)]
    return f": it has no {names[0]}"


def _above(path: Path, *names: str) -> str:
    """Return a hint if a folder above has one of these files, as a run folder does."""
    for folder in (path.parent, path.parent.parent):
        if folder.name and any(os.path.isfile(folder / name) for name in names):
            return f"; did you mean the folder above, {folder}?"
    return ""
