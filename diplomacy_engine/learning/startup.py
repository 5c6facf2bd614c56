"""Starting a run, or going on with one: its settings and policies, processes, folder and logs."""

import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import distributed

from .._files import file_sha256
from .._jit import announce_compilation
from .._progress import Progress, say
from .._suggest import quoted
from ..errors import UserError
from ..games.game import Game
from ..players.policy import PolicyPlayer
from ..rules.map import Map, load_map
from ..rules.vocabulary import vocabulary
from ..training.checks import (
    check_args,
    check_memory,
    check_own_code,
    check_resumed,
    check_run,
    seat_learner,
    streams_per_game,
)
from ..training.clock import Clock
from ..training.run_folder import RunFolder
from ..training.sample_games import thoughts
from ..training.settings import Settings, args_from_dictionary, parse_args
from ..training.signals import StopSignals
from . import checkpoint_state, checkpoints
from .ranks import RankLost, Ranks, TrainingError, keep_memory
from .registry import COME_ALONG, Learner
from .run_log import NoLog, RunLog, start_wandb

__all__ = [
    "Begun",
    "Clock",
    "Ranks",
    "RunLog",
    "logs",
    "main",
    "run",
    "streams_per_game",
    "thoughts_of",
]
CONFIGS = Path(__file__).parents[2] / "configs"
VERSIONS = {1: "0.1", 2: "0.2"}  # of this project, by the format of their runs


@dataclass(frozen=True)
class Begun:
    """What a run begins with, or goes on with."""

    learner: Learner
    args: Any  # the settings, checked
    game_map: Map  # with their teams
    device: torch.device  # where this rank's network computes
    config: Path | None = None  # the settings file that was read
    weights: dict | None = None  # those of --start-from
    saved: dict | None = None  # the checkpoint that is gone on with
    folder: RunFolder | None = None  # where that lies

    def policy(self, agent: torch.nn.Module, global_step: int) -> dict:
        """Return what is needed to play an agent that has learned from so many decisions."""
        script, settings = self.learner.file, asdict(self.args)
        model = agent.state_dict()
        return checkpoints.policy_dict(script, settings, self.game_map, model, global_step)

    def take_up(self, run: Any, ranks: Ranks) -> None:
        """Bring a new run to where its checkpoint is, if it has one; UserError if it cannot be."""
        if self.saved is not None:
            with self.reading():
                checkpoint_state.go_on(run, self.saved, ranks)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what goes wrong while a block takes up the checkpoint into a UserError.

        Any exception: the file may come from anybody, and fail in any way.
        """
        with _closed_on_failure(self.folder):
            try:
                yield
            except Exception as error:
                raise UserError(
                    f"{self.folder.checkpoint}: cannot be continued ({checkpoints.reason(error)})"
                ) from None


Train = Callable[[Begun, Ranks], bool]  # plays and learns; returns whether it came to its end


def main(
    learner: Learner,
    train: Train,
    argv: list[str] | None = None,
    read: Callable[[Learner, list[str]], Settings] | None = None,
) -> int:
    """Train as the command line says, without the program's name; return the exit status.

    What the user did wrong is said in one sentence. `read` returns the settings of a command line,
    `read_settings` if none is given.
    """
    argv = sys.argv[1:] if argv is None else argv
    ranks = Ranks.of_torchrun() or Ranks()
    with _reported(ranks) as status:
        settings = ranks.agree(read or read_settings, learner, argv)
        count = processes(settings) if ranks.count == 1 else 1
        if count > 1:
            # What is wrong is said before others start; a folder from somebody may name 1024.
            if settings.args.resume:
                resumed_run(learner, settings, Ranks(count=count)).folder.close()
            else:
                new_run(learner, settings, Ranks(count=count))
            ranks = Ranks.start(count, run, learner, train, settings)
        status[0] = run(learner, train, settings, ranks)
    return status[0]


def run(learner: Learner, train: Train, settings: Settings, ranks: Ranks) -> int:
    """Train with some settings, in ranks that have been started; return the exit status."""
    with _reported(ranks) as status:
        begin = resumed_run if settings.args.resume else new_run
        begun = ranks.agree(begin, learner, settings, ranks)
        keep_memory()
        torch.set_num_threads(1)
        train(begun, ranks)
    return status[0]


@contextmanager
def _reported(ranks: Ranks) -> Iterator[list[int]]:
    """Turn what goes wrong in a block into a sentence and an exit status, which is yielded."""
    status = [0]
    try:
        yield status
    except KeyboardInterrupt:  # before the games began, or a second Ctrl-C
        status[0] = 130
        if ranks.rank == 0:
            print("error: interrupted", file=sys.stderr)
    except UserError as error:
        status[0] = 2
        if ranks.rank == 0:
            print(f"error: {error}", file=sys.stderr)
        elif isinstance(error, TrainingError) and not isinstance(error, RankLost):
            # Others are met by all alike.
            print(f"error on rank {ranks.rank}: {error}", file=sys.stderr)
    finally:
        ranks.close()


@contextmanager
def logs(begun: Begun, ranks: Ranks) -> Iterator[RunLog]:
    """Open the logs of a run, and close them after the `with` block; the first rank has them.

    A UserError in the block is of this rank alone, and says where the last checkpoint is.
    """
    with _closed_on_failure(begun.folder):
        log = ranks.agree(_open_log if ranks.rank == 0 else NoLog, begun)
    try:
        with StopSignals(announce=ranks.rank == 0) as log.stop:
            yield log
    except UserError as error:
        if distributed.is_torchelastic_launched():  # what is wrong is said before it ends us
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kind = RankLost if isinstance(error, RankLost) else TrainingError
        raise kind(f"{error}{log.intact()}") from error
    finally:
        log.close()


def thoughts_of(player: PolicyPlayer) -> Callable[[Game, str], dict]:
    """Return the function that says what a policy thinks of a power's decision in a game."""
    return partial(thoughts, player)


def read_settings(learner: Learner, argv: list[str], about: str | None = None) -> Settings:
    """Return the settings of a command line; without --map, that of the policy it starts from.

    The help begins with `about`, or else with what the learner's file says of itself.
    """
    settings = parse_args(learner.args_class, argv, CONFIGS, about)
    args = settings.args
    if not args.start_from or args.resume or settings.given & {"map", "config"}:
        return settings
    policy = _start_from(learner, args.start_from)
    return parse_args(learner.args_class, [f"--map={policy['args']['map']}", *argv], CONFIGS)


def processes(settings: Settings) -> int:
    """Return how many processes train together: those that began a run go on with it."""
    args = settings.args
    if not args.resume:
        return args.processes
    try:
        kept = RunFolder(args.resume).load_args().get("processes")
    except (UserError, OSError):
        return 1  # this one alone says what is wrong
    return kept if type(kept) is int and 1 <= kept <= 1024 else 1


def _start_from(learner: Learner, name: str) -> dict:
    """Return the policy of --start-from; a UserError says which flag it is about."""
    try:
        return learner.policy("start-from", name)
    except UserError as error:
        if "--start-from" in str(error):
            raise
        raise UserError(f"--start-from: {error}") from None


def new_run(learner: Learner, settings: Settings, ranks: Ranks) -> Begun:
    """Return what a new run begins with.

    Raises:
        UserError: settings out of range or against each other, no such map, another map's policy,
            or too little memory.
    """
    args, weights = settings.args, None
    game_map = load_map(args.map).with_teams(args.teams, args.team_victory)
    if args.start_from:
        start = _start_from(learner, args.start_from)
        _check_start(learner, args, start, game_map)
        weights = start["model"]
    args = seat_learner(args, settings.given, game_map)
    check_args(args, settings.given, game_map, ranks.count, learner.talks)
    _check_memory(learner, args, game_map, ranks)
    if weights:
        _check_beginning(learner, args, weights, game_map)
    device = ranks.choose_device(args.cuda)
    return Begun(learner, args, game_map, device, settings.config, weights)


def _check_start(learner: Learner, args: Any, saved: dict, game_map: Map) -> None:
    """Raise UserError unless a run can begin with the policy `saved` of --start-from."""
    if saved["vocabulary_hash"] != vocabulary(game_map).hash:
        raise UserError(
            f"--start-from {args.start_from} was trained on map {quoted(saved['map_name'], 60)} "
            f"or on another version of it, not on this {game_map.name!r}"
        )
    for name in learner.network:
        theirs, ours = saved["args"][name], getattr(args, name)
        if theirs != ours:
            raise UserError(
                f"--start-from {args.start_from} has a different network: "
                f"--{name.replace('_', '-')} is {quoted(theirs, 20)} there and {ours} here"
            )


def _check_beginning(learner: Learner, args: Any, model: dict, game_map: Map) -> None:
    """Raise UserError unless a new network can begin with the weights of --start-from."""
    with torch.device("meta"):
        agent = learner.make_agent(vars(args), game_map)
    try:
        agent.load_state_dict(model, assign=True)
    except RuntimeError:  # torch's, with a list of names
        raise UserError(
            f"--start-from {args.start_from} has weights that do not fit the network of "
            f"{learner.name} with these settings"
        ) from None


def _check_memory(learner: Learner, args: Any, game_map: Map, ranks: Ranks) -> None:
    """Raise UserError if a run with these settings needs more memory than there is."""
    weights = learner.weights(vars(args), game_map).values()
    check_memory(args, game_map, sum(weight.numel() for weight in weights), ranks.count)


def resumed_run(learner: Learner, settings: Settings, ranks: Ranks) -> Begun:
    """Return what the run in the folder --resume goes on with; only the first rank changes files.

    The folder may come from somebody else, so all that it says is looked at.

    Raises:
        UserError: no such run, one of another version, map or number of ranks, flags that cannot
            change, or code as a reward that the command line does not name as well.
    """
    check_resumed(settings.given)
    check_run(settings.args.resume)
    folder = (RunFolder if ranks.rank > 0 else RunFolder.open)(settings.args.resume)
    with _closed_on_failure(folder):
        saved = checkpoints.read(folder.checkpoint)
        if "run_format" not in saved and saved["script_name"] != learner.name:
            raise UserError(
                f"{folder.path} is a run of {quoted(saved['script_name'], 60)}, "
                f"not of {learner.name}"
            )
        _check_format(saved, folder.path)
        learner.agent(saved, folder.checkpoint)  # says what is wrong if the policy does not fit
        # From args.json, not the checkpoint: people may read and change it.
        source = str(folder.path / "args.json")
        kept = args_from_dictionary(learner.args_class, folder.load_args(), source)
        check_own_code(kept, settings.args, settings.given, folder.path)
        args = replace(kept, **{name: getattr(settings.args, name) for name in settings.given})
        before = learner.settings(saved)
        for name in ("map", *learner.network):
            if before[name] != getattr(args, name):
                raise UserError(
                    f"{folder.checkpoint}: made with {name} {quoted(before[name], 60)}, but "
                    f"args.json beside it says {quoted(getattr(args, name), 60)}"
                )
        game_map = Map(saved["map_facts"], saved["map_name"])
        game_map = game_map.with_teams(args.teams, args.team_victory)
        _check_ranks(folder.path, saved, ranks.count)
        try:
            # Pictures are worth no run that has begun.
            shown = replace(args, capture_games=0)
            check_args(shown, frozenset(), game_map, ranks.count, learner.talks)
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
        _check_memory(learner, args, game_map, ranks)
        if not isinstance(saved.get("files"), dict):
            raise UserError(
                f"{folder.checkpoint}: cannot be continued ('files' is not a dictionary)"
            )
        check_wandb_id(saved, folder.checkpoint)
        if type(saved.get("seconds")) is not float or not 0 <= saved["seconds"] < 1e12:
            raise UserError(f"{folder.checkpoint}: cannot be continued ('seconds' is impossible)")
        device = ranks.choose_device(args.cuda)
        return Begun(learner, args, game_map, device, saved=saved, folder=folder)


def check_wandb_id(saved: dict, path: Path) -> None:
    """Raise UserError if a checkpoint does not say which W&B run, or none, it is of."""
    wandb_id = saved.get("wandb_id", "")
    named = type(wandb_id) is str and re.fullmatch(r"[A-Za-z0-9_-]{1,128}", wandb_id)
    if wandb_id is not None and not named:
        raise UserError(f"{path}: cannot be continued ('wandb_id' is not a name)")


def _check_format(saved: dict, folder: Path) -> None:
    number = saved.get("run_format", 1)
    if type(number) is int and number == checkpoint_state.RUN_FORMAT:
        return
    known = type(number) is int and number in VERSIONS
    version = f"version {VERSIONS[number]}" if known else "another version"
    raise UserError(
        f"{folder} was begun with {version} of this project, and only that can continue it (its "
        f"format is {quoted(number, 20)}, not {checkpoint_state.RUN_FORMAT}); its policy can "
        "still be played, and --start-from can begin with it"
    )


def _check_ranks(folder: Path, saved: dict, count: int) -> None:
    """Raise UserError unless as many ranks resume a run as have written its checkpoint."""
    ranks = saved.get("ranks")
    if not isinstance(ranks, list) or not ranks:
        raise UserError(f"{folder}: its checkpoint cannot be continued ('ranks' is not a list)")
    if len(ranks) != count:
        raise UserError(
            f"{folder} is a run of {len(ranks)} process{'es' * (len(ranks) != 1)} and cannot be "
            f"continued by {count}: resume it with as many on one machine, or with torchrun "
            f"--nproc_per_node={len(ranks)}"
        )


@contextmanager
def _closed_on_failure(folder: RunFolder | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if folder is not None:
            folder.close()
        raise


def _open_log(begun: Begun) -> RunLog:
    """Open the logs of a run, of a new one in a new folder with a copy of its script."""
    args, saved, script = begun.args, begun.saved, begun.learner.file
    if saved is not None:
        _cut_back(begun)
        log = _make_log(begun, begun.folder, saved["global_step"], saved["seconds"])
        log.announce()
        return log
    folder = RunFolder.create(
        args.runs_folder, begun.game_map.name, args.exp_name, args.seed, asdict(args), script
    )
    try:
        log = _make_log(begun, folder)
    except UserError:  # such as W&B's refusal; nothing has been trained
        folder.remove()
        raise
    log.begin(args, begun.config)
    log.announce()
    return log


def _cut_back(begun: Begun) -> None:
    """Take away what a resumed run wrote after its checkpoint."""
    args, folder, saved, script = begun.args, begun.folder, begun.saved, begun.learner.file
    folder.keep_checkpoint(saved["global_step"])  # where a kill came before that
    folder.cut_back(saved["files"])
    kept = folder.load_args()
    if args.total_timesteps != kept.get("total_timesteps"):  # the next resume is to know it too
        folder.save_args(kept | {"total_timesteps": args.total_timesteps})
    if saved["script_sha256"] != file_sha256(script):
        say(f"note: {script.name} has changed since the last checkpoint of this run")
        folder.save_script(script)


def _make_log(begun: Begun, folder: RunFolder, start: int = 0, seconds: float = 0.0) -> RunLog:
    announce_compilation()
    args, wandb_id = begun.args, begun.saved and begun.saved["wandb_id"]
    wandb = start_wandb(args, folder, wandb_id) if args.track else None
    progress = Progress(args.total_timesteps, start)
    bots = getattr(args, "pool_bots", ())
    exploited = bots[0] if len(bots) == 1 == args.pool_bot_prob else None
    learner, teams = begun.learner, begun.game_map.teams
    flags = [f"--press {args.press}"] if learner.talks else []
    flags += [f"--teams {quote(teams.text)}"] if teams.text else []
    flags += [f"--team-victory {teams.victory_centers}"] if teams.victory_centers else []
    return RunLog(
        folder,
        progress,
        begun.game_map,
        wandb,
        wandb_id,
        seconds,
        exploited,
        None if learner.name in COME_ALONG else f"{learner.file}:{folder.path}",
        " ".join(flags),
    )
