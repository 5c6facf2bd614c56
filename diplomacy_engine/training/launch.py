"""Starting a run: its settings and policies, its folder, its logs; or all that of a run to resume.

A training script hands in its settings' class, its own file and what reads its checkpoints.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .._files import file_sha256
from .._jit import announce_compilation
from ..errors import UserError
from ..rules.map import Map, load_map
from .checks import check_args, check_ranks, check_resumed, check_run, check_start, exploit_args
from .parallel import Ranks, TrainingError
from .progress import Progress, say
from .run_folder import RunFolder
from .run_log import RunLog, Writer, start_wandb
from .settings import Settings, args_from_dictionary, parse_args

RUN_FORMAT = 2  # of what a checkpoint holds besides the policy; 1 is version 0.1's

LoadPolicy = Callable[[str, str], dict]  # (flag, path or folder) -> the policy that a flag names


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


def read_settings(
    args_class: type, argv: list[str], configs: Path, load_policy: LoadPolicy
) -> Settings:
    """Return the settings of a command line; without --map, that of a policy it names."""
    settings = parse_args(args_class, argv, configs)
    args = settings.args
    flag = "exploit" if args.exploit else "start_from"
    if not getattr(args, flag) or args.resume or settings.given & {"map", "config"}:
        return settings
    policy = _named(load_policy, flag.replace("_", "-"), getattr(args, flag))
    return parse_args(args_class, [f"--map={policy['args']['map']}", *argv], configs)


def _named(load_policy: LoadPolicy, flag: str, name: str) -> dict:
    """Return the policy that a flag names; a UserError says which flag it is about."""
    try:
        return load_policy(flag, name)
    except UserError as error:
        if f"--{flag}" in str(error):
            raise
        raise UserError(f"--{flag}: {error}") from None


def new_run(settings: Settings, load_policy: LoadPolicy, ranks: int) -> NewRun:
    """Return what a new run of so many ranks begins with.

    Raises:
        UserError: settings out of range or against each other, no such map, another map's policy.
    """
    args, exploited, weights = settings.args, None, None
    if "reward" in settings.given and "reward_mix" not in settings.given:
        args = replace(args, reward_mix="")  # the flag wins over the settings file's mix
    game_map = load_map(args.map)
    if args.exploit:
        exploited = _named(load_policy, "exploit", args.exploit)
        args = exploit_args(args, settings.given, exploited, game_map)
    if args.start_from:
        start = _named(load_policy, "start-from", args.start_from)
        check_start(args, start, game_map)
        weights = start["model"]
    check_args(args, settings.given, game_map, ranks)
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
    args_class: type,
    settings: Settings,
    load_checkpoint: Callable[[Path], dict],
    load_agent: Callable[[dict, Path], Any],
    ranks: Ranks,
) -> ResumedRun:
    """Return what the run in the folder --resume goes on with; only the first rank changes files.

    Raises:
        UserError: no such run, one of another version, map or number of ranks, or flags that
            cannot change.
    """
    check_resumed(settings.args, settings.given)
    check_run(settings.args.resume)
    folder = (RunFolder if ranks.rank > 0 else RunFolder.open)(settings.args.resume)
    saved = load_checkpoint(folder.checkpoint)
    if saved.get("run_format") != RUN_FORMAT:
        raise UserError(
            f"{folder.path} can only go on with the version of this project that began the run: "
            f"its format is {saved.get('run_format', 1)!r:.20} (1 is version 0.1), here it is "
            f"{RUN_FORMAT}; its policy can be played, and --start-from begins with it"
        )
    load_agent(saved, folder.checkpoint)  # says what is wrong if the policy does not fit
    # From args.json, not the checkpoint: --reward module:function names code to run.
    kept = args_from_dictionary(args_class, folder.load_args(), str(folder.path / "args.json"))
    args = replace(kept, **{name: getattr(settings.args, name) for name in settings.given})
    if saved["args"]["map"] != args.map:
        raise UserError(
            f"{folder.checkpoint}: made for map {saved['args']['map']!r:.60}, "
            f"but args.json beside it is for {args.map!r}"
        )
    check_ranks(folder.path, saved, ranks.count)
    return ResumedRun(args, Map(saved["map_facts"], saved["map_name"]), folder, saved)


@contextmanager
def continuing(checkpoint: Path) -> Iterator[None]:
    """Turn what goes wrong while a run takes up its checkpoint into a UserError of one sentence."""
    try:
        yield
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise UserError(
            f"{checkpoint}: cannot be continued ({type(error).__name__}: {error!s:.80})"
        ) from None


def continue_log(resumed: ResumedRun, script: str, tools: LogTools) -> RunLog:
    """Cut back what a resumed run wrote after its checkpoint, and open its logs again."""
    args, _, folder, saved = resumed
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
