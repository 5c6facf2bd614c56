"""Starting a run: its settings and policies, its folder, its logs; or all that of a run to resume.

A training script hands in its settings' class, its own file and what reads its checkpoints.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from .._files import file_sha256
from .._jit import announce_compilation
from .._suggest import quoted
from ..errors import UserError
from ..players.checkpoints import reason
from ..rules.map import Map, load_map
from .checks import (
    check_args,
    check_own_code,
    check_ranks,
    check_resumed,
    check_run,
    check_start,
    exploit_args,
    network_settings,
    seat_learner,
)
from .parallel import Ranks, TrainingError
from .policy_files import PolicyFiles
from .progress import Progress, say
from .run_folder import RunFolder
from .run_log import NoLog, RunLog, Writer, start_wandb
from .settings import Settings, args_from_dictionary, parse_args

_ENDS = ("win", "solo", "draw", "loss")  # figures of an evaluation that a run's summary shows
COUNTERS = ("global_step", "order_steps", "env_steps", "games", "updates")  # of a run so far
RUN_FORMAT = 2  # of what a checkpoint holds besides the policy; 1 is version 0.1's


class NewRun(NamedTuple):
    """What a run begins with."""

    args: Any  # the settings, checked
    game_map: Map
    exploited: dict | None  # the policy of --exploit
    weights: dict | None  # those of --start-from


class ResumedRun(NamedTuple):
    """What a run goes on with."""

    args: Any
    game_map: Map
    folder: RunFolder
    saved: dict  # its checkpoint


def read_settings(args_class: type, argv: list[str], configs: Path, files: PolicyFiles) -> Settings:
    """Return the settings of a command line; without --map, that of a policy it names."""
    settings = parse_args(args_class, argv, configs)
    args = settings.args
    flag = "exploit" if args.exploit else "start_from"
    if not getattr(args, flag) or args.resume or settings.given & {"map", "config"}:
        return settings
    policy = _named(files, flag.replace("_", "-"), getattr(args, flag))
    return parse_args(args_class, [f"--map={policy['args']['map']}", *argv], configs)


def _named(files: PolicyFiles, flag: str, name: str) -> dict:
    """Return the policy that a flag names; a UserError says which flag it is about."""
    try:
        return files.policy(flag, name)
    except UserError as error:
        if f"--{flag}" in str(error):
            raise
        raise UserError(f"--{flag}: {error}") from None


def new_run(settings: Settings, files: PolicyFiles, ranks: int) -> NewRun:
    """Return what a new run of so many ranks begins with.

    Raises:
        UserError: settings out of range or against each other, no such map, another map's policy,
            or too little memory.
    """
    args, exploited, weights = settings.args, None, None
    if "reward" in settings.given and "reward_mix" not in settings.given:
        args = replace(args, reward_mix="")  # the flag wins over the settings file's mix
    game_map = load_map(args.map).with_teams(args.teams, args.team_victory)
    if args.exploit:
        exploited = _named(files, "exploit", args.exploit)
        args = exploit_args(args, settings.given, exploited, game_map)
    if args.start_from:
        start = _named(files, "start-from", args.start_from)
        check_start(args, start, game_map)
        weights = start["model"]
    args = seat_learner(args, settings.given, game_map)
    check_args(args, settings.given, game_map, ranks)
    files.check_memory(args, game_map, ranks)
    if weights:
        files.check_beginning(args, weights, game_map)
    return NewRun(args, game_map, exploited, weights)


class LogTools(NamedTuple):
    """What logs are written with, so that the engine needs neither TensorBoard nor W&B."""

    make_writer: Callable[[str], Writer]  # TensorBoard's SummaryWriter
    summary: Any  # its protobuf class Summary
    import_wandb: Callable[[], Any]  # returns the module wandb


def open_log(args: Any, game_map: Map, script: str, tools: LogTools) -> RunLog:
    """Make the folder of a new run, with a copy of its script, and open its logs."""
    folder = RunFolder.create(
        args.runs_folder, game_map.name, args.exp_name, args.seed, asdict(args), script
    )
    try:
        log = _make_log(args, folder, tools, 0, None)
    except UserError:  # such as W&B's refusal; nothing has been trained
        folder.remove()
        raise
    log.begin(asdict(args), [*args.eval_bots, *(["exploited"] if args.exploit else [])])
    log.announce()
    return log


def resumed_run(
    args_class: type, settings: Settings, files: PolicyFiles, ranks: Ranks
) -> ResumedRun:
    """Return what the run in the folder --resume goes on with; only the first rank changes files.

    The folder may come from somebody else, so all that it says is looked at.

    Raises:
        UserError: no such run, one of another version, map or number of ranks, flags that cannot
            change, or code as a reward that the command line does not name as well.
    """
    check_resumed(settings.args, settings.given)
    check_run(settings.args.resume)
    folder = (RunFolder if ranks.rank > 0 else RunFolder.open)(settings.args.resume)
    with _closed_on_failure(folder):
        saved = files.read(folder.checkpoint)
        began, script = saved["script_name"], Path(files.script).name
        if "run_format" not in saved and began != script:
            raise UserError(f"{folder.path} is a run of {quoted(began, 60)}, not of {script}")
        if saved.get("run_format") != RUN_FORMAT:
            raise UserError(
                f"{folder.path} can only go on with the version of this project that began the "
                f"run: its format is {quoted(saved.get('run_format', 1), 20)} (1 is version 0.1), "
                f"here it is {RUN_FORMAT}; its policy can be played, and --start-from begins with "
                "it"
            )
        files.network(saved, folder.checkpoint)  # says what is wrong if the policy does not fit
        # From args.json, not the checkpoint: people may read and change it.
        source = str(folder.path / "args.json")
        kept = args_from_dictionary(args_class, folder.load_args(), source)
        check_own_code(kept, settings.args, settings.given, folder.path)
        args = replace(kept, **{name: getattr(settings.args, name) for name in settings.given})
        before = files.settings(saved)
        for name in ("map", *network_settings(args)):
            if before[name] != getattr(args, name):
                raise UserError(
                    f"{folder.checkpoint}: made with {name} {quoted(before[name], 60)}, but "
                    f"args.json beside it says {quoted(getattr(args, name), 60)}"
                )
        game_map = Map(saved["map_facts"], saved["map_name"])
        game_map = game_map.with_teams(args.teams, args.team_victory)
        check_ranks(folder.path, saved, ranks.count)
        try:
            # Pictures are worth no run that has begun.
            check_args(replace(args, capture_games=0), frozenset(), game_map, ranks.count)
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
        files.check_memory(args, game_map, ranks.count)
        return ResumedRun(args, game_map, folder, saved)


@contextmanager
def _closed_on_failure(folder: RunFolder) -> Iterator[None]:
    try:
        yield
    except BaseException:
        folder.close()
        raise


@contextmanager
def continuing(resumed: ResumedRun) -> Iterator[None]:
    """Turn what goes wrong while a run takes up its checkpoint into a UserError of one sentence.

    Any exception: the file may come from anybody, and fail in any way.
    """
    with _closed_on_failure(resumed.folder):
        try:
            _check_progress(resumed.saved, resumed.args)
            yield
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"{resumed.folder.checkpoint}: cannot be continued ({reason(error)})"
            ) from None


def _check_progress(saved: dict, args: Any) -> None:
    """Raise an exception if counters, evaluations or what a checkpoint says of logs cannot be."""
    counters, step = saved["counters"], saved["global_step"]
    if counters["global_step"] != step or not all(map(_is_count, counters.values())):
        raise ValueError("'counters' has numbers that cannot be")
    for due, interval in zip(saved["next"], (args.eval_interval, args.save_interval), strict=True):
        if not _is_count(due) or not 0 < due <= step + interval:
            raise ValueError("'next' has numbers that cannot be")
    if not 0 <= saved["seconds"] < 1e12:
        raise ValueError("'seconds' cannot be")
    if not isinstance(saved["files"], dict):
        raise ValueError("'files' is no dictionary")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", saved["wandb_id"] or "none"):
        raise ValueError("'wandb_id' is no name")
    exploited = saved["exploited"]
    if exploited is not None and exploited["vocabulary_hash"] != saved["vocabulary_hash"]:
        raise ValueError("'exploited' plays another map")
    if (exploited is None) != (args.exploit is None):
        raise ValueError("'exploited' is not what args.json says")
    for name, found in saved["evaluations"].items():
        if name not in (*args.eval_bots, "exploited"):
            raise ValueError("'evaluations' has another opponent")
        sides = [*found["by_power"].values(), *found.get("by_team", {}).values()]
        tables = [found["overall"], *sides]
        figures = [table[name] for table in tables for name in (*_ENDS, *table)]
        if (
            not isinstance(found["against"], str)
            or len(tables) == 1
            or not all(
                type(figure[part]) in (int, float) and not abs(figure[part]) >= 1e9
                for figure in figures
                for part in ("value", "low", "high")
            )
        ):
            raise ValueError("'evaluations' has no figures")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**62


def continue_log(resumed: ResumedRun, script: str, tools: LogTools) -> RunLog:
    """Cut back what a resumed run wrote after its checkpoint, and open its logs again."""
    args, _, folder, saved = resumed
    folder.keep_checkpoint(saved["global_step"])  # where a kill came before that
    folder.cut_back(saved["files"])
    kept = folder.load_args()
    if args.total_timesteps != kept["total_timesteps"]:  # the next resume is to know it too
        folder.save_args(kept | {"total_timesteps": args.total_timesteps})
    if saved["script_sha256"] != file_sha256(script):
        say(f"note: {Path(script).name} has changed since the last checkpoint of this run")
        folder.save_script(script)
    log = _make_log(args, folder, tools, saved["counters"]["global_step"], saved["wandb_id"])
    log.announce()
    return log


def _make_log(
    args: Any, folder: RunFolder, tools: LogTools, start: int, wandb_id: str | None
) -> RunLog:
    announce_compilation()
    tracked = html = None
    if args.track:
        wandb = tools.import_wandb()
        tracked = start_wandb(wandb, args, folder, wandb_id)
        html = partial(wandb.Html, inject=False)
    progress = Progress(args.total_timesteps, start)
    writer = tools.make_writer(str(folder.path))
    return RunLog(folder, writer, tools.summary, progress, tracked, wandb_id, html)


class Run(Protocol):
    """What a training script calls a run, as far as starting one needs it; its class is called.

    It is given settings, map, device, ranks, the policy of --exploit, and weights to begin with.
    """

    files: PolicyFiles

    def load_state_dict(self, saved: dict) -> None: ...


def start_run(
    kind: Callable[..., Run],
    settings: Settings,
    ranks: Ranks,
    choose_device: Callable[[bool], Any],
    tools: LogTools,
) -> tuple[Run, RunLog]:
    """Start a run of a kind in a new folder.

    Args:
        kind: the class of the run, which has its `files`.
        settings: of the command line.
        ranks: processes that train together; the first keeps the log.
        choose_device: of the setting `cuda`, where the network computes.
        tools: for the log.
    """
    files = kind.files
    args, game_map, exploited, weights = new_run(settings, files, ranks.count)
    device, first = choose_device(args.cuda), ranks.rank == 0
    log = open_log(args, game_map, files.script, tools) if first else NoLog()
    return kind(args, game_map, device, ranks, exploited, weights), log


def resume_run(
    kind: Callable[..., Run],
    settings: Settings,
    ranks: Ranks,
    choose_device: Callable[[bool], Any],
    tools: LogTools,
) -> tuple[Run, RunLog]:
    """Go on with the run in the folder --resume; arguments as for `start_run`."""
    resumed = resumed_run(kind.files.args_class, settings, kind.files, ranks)
    args, game_map, _, saved = resumed
    device = choose_device(args.cuda)
    with continuing(resumed):
        run = kind(args, game_map, device, ranks, saved["exploited"])
        run.load_state_dict(saved)
        first = ranks.rank == 0
        log = continue_log(resumed, kind.files.script, tools) if first else NoLog()
    return run, log


def exit_status(run: Callable[[list[str], Ranks], int], argv: list[str], ranks: Ranks) -> int:
    """Return the exit status of a training run by one of several processes.

    What its user did wrong is said in one sentence, by one of them.
    """
    try:
        return run(argv, ranks)
    except KeyboardInterrupt:  # before the games began, or a second Ctrl-C
        print("error: interrupted", file=sys.stderr)
        return 130
    except UserError as error:
        if ranks.rank == 0:
            print(f"error: {error}", file=sys.stderr)
        elif isinstance(error, TrainingError):  # the others are met by all alike
            print(f"error on rank {ranks.rank}: {error}", file=sys.stderr)
        return 2
    finally:
        ranks.close()
