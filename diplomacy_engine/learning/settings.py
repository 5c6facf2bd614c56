"""Settings: a frozen dataclass, filled by a file (`--config`, else `{map}.toml`) and flags."""

import dataclasses
import itertools
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import tyro
from msgspec import Meta

from .._files import CONFIGS
from .._progress import ended_by_reader, fail
from ..errors import UserError
from ..flags import dashed, named_flags, read_words
from ..players.loading import learning_module
from ..players.policy.files import policy_path
from ..records import Dataclass, changed, convert, read_toml, refuse_without_effect
from ..rules.map import MAP_NAMES
from .of_scripts import RunSettings
from .run_folder import RunFolder

MAX_FILE_BYTES = 1_000_000  # of a settings file; those that come along have some 3,000
_Args = TypeVar("_Args", bound=Dataclass)
Count = Annotated[int, Meta(ge=1, le=10**9)]
Size = Annotated[int, Meta(ge=1, le=10**6)]
Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=10**9)]


@dataclass(frozen=True)
class RunArgs:
    """Settings of any run: what it trains on, its evaluations and its folder."""

    map: str = "small"  # small, three, standard, or the path of a map file of your own
    total_timesteps: Annotated[int, Meta(ge=1, le=10**15)] = 1_000_000  # learner decisions in all
    seed: Annotated[int, Meta(ge=0, le=2**62)] = 1  # seed of all random numbers
    processes: Annotated[int, Meta(ge=1, le=1024)] = 2  # that train together, one per core
    resume: str | None = None  # run to continue; only --total-timesteps, --track, --cuda may change
    config: str | None = None  # settings file (TOML); None: configs/{map}.toml if there is one
    start_from: str | None = None  # policy to begin with (checkpoint or run folder), not at random
    cuda: bool = False  # use a GPU if there is one
    track: bool = False  # log to Weights & Biases as well (WANDB_PROJECT, WANDB_ENTITY)
    eval_interval: Count = 75_000  # learner decisions between evaluations, each with a checkpoint
    eval_games: Size = 200  # games of one evaluation against one bot, all seats equally often
    eval_bots: tuple[str, ...] = ("random", "dumbbot")  # players to evaluate against
    exp_name: str = ""  # part of the run folder's name
    runs_folder: str = "runs"  # folder in which the run folder is made
    capture_games: Annotated[int, Meta(ge=0, le=1000)] = 1  # saved of each evaluation


def parse_args(
    args_class: type[_Args],
    argv: list[str] | None = None,
    about: str | None = None,
    default_map: str | None = None,
) -> _Args:
    """Return the settings of a command line, over those of the settings file or the resumed run.

    The map is `default_map` where neither a flag nor the file names one. Bad input and `--help` end
    the program; the help begins with `about`, else with the module's docstring.
    """
    first = os.environ.get("RANK", "0") == "0"  # of torchrun's processes one is enough to speak
    try:
        words = read_words(args_class, sys.argv[1:] if argv is None else argv)
        default = _default(args_class, words, default_map)
    except UserError as error:
        raise SystemExit(fail(error) if first else 2) from None
    about = about or getattr(sys.modules.get(args_class.__module__), "__doc__", None) or ""
    help_text = "\n\n".join(about.split("\n\n")[:2])
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    with ended_by_reader():
        args = tyro.cli(
            args_class,
            args=words,
            prog=spec and f"python -m {spec.name}",  # tyro would name the file of a module
            default=default,
            description=help_text,
            console_outputs=first,
        )
    try:
        refuse_without_effect(args, named_flags(args_class, words), dashed)
    except UserError as error:
        raise SystemExit(fail(error) if first else 2) from None
    return args


def map_file(game_map: str) -> Path | None:
    path = CONFIGS / f"{game_map}.toml"
    return path if re.fullmatch(r"[A-Za-z0-9_-]+", game_map) and path.is_file() else None


def with_file(args_class: type[_Args], game_map: str, config: str | None = None) -> _Args:
    path = config or map_file(game_map)
    return convert(args_class, read_toml(path, MAX_FILE_BYTES), path) if path else args_class()


def origins(args: RunSettings) -> list[str]:
    before, lines = type(args)(), []
    path = args.config or map_file(args.map)
    if path:
        file_args = with_file(type(args), args.map, args.config)
        lines.append(f"settings file {Path(path).name}: {flags_of(before, vars(file_args))}")
        before = file_args
    flags = flags_of(before, vars(args))
    return [*lines, f"flags: {flags}"] if flags else lines


def flags_of(defaults: Dataclass, values: Mapping) -> str:
    words = []
    for name, default in dataclasses.asdict(defaults).items():
        value = values.get(name, default)
        if isinstance(value, list):  # a tuple that has been in a file
            value = tuple(value)
        if value == default:
            continue
        if isinstance(value, bool):
            words.append(dashed(name if value else f"no_{name}"))
        else:
            many = value if isinstance(value, tuple) else (value,)
            words += [dashed(name), *(shlex.quote(str(one)) for one in many)]
    return " ".join(words)


def check_changes(old: Dataclass, new: Dataclass, changeable: Sequence[str]) -> None:
    names = sorted(name for name, value in vars(old).items() if value != getattr(new, name))
    other = [dashed(name) for name in names if name not in ("resume", *changeable)]
    if other:
        may = ", ".join(dashed(name) for name in changeable)
        raise UserError(f"{', '.join(other)} cannot be changed on resume; only {may} can")


def exit_status(train: Callable[[_Args], int], args: _Args, remark: str) -> int:
    """Train with some settings; print a user's error, or Ctrl-C, as one sentence."""
    try:
        return train(args)
    except UserError as error:
        return fail(error)
    except KeyboardInterrupt:
        return fail(f"interrupted; {remark}", 130)


def _default(args_class: type[_Args], words: list[str], default_map: str | None) -> _Args:
    names = {field.name for field in dataclasses.fields(args_class)}
    flags: dict[str, str | None] = dict.fromkeys(("map", "config", "resume", "start_from"))
    for flag, value in itertools.pairwise(words):
        name = flag.removeprefix("--").replace("-", "_")
        if flag.startswith("--") and name in flags.keys() & names:
            flags[name] = value
    empty = [dashed(name) for name, value in flags.items() if value == ""]
    if empty:  # as of a shell's variable that is not set
        raise UserError(f"{empty[0]} is empty")
    if flags["resume"] is not None:
        return _resumed(args_class, flags["resume"])
    if "config" not in names:
        return args_class()
    game_map, config, start = flags["map"], flags["config"], flags["start_from"]
    if config and (config in MAP_NAMES or map_file(config)):
        meant = f"--map {config}" if config in MAP_NAMES else f"--config {map_file(config)}"
        raise UserError(f"--config {config} is not a file: did you mean {meant}?")
    if game_map and Path(game_map).parent.name == CONFIGS.name:
        raise UserError(f"--map {game_map} is a settings file: --config {game_map}")
    if config:
        values: dict = {"map": default_map} if default_map else {}
        values |= read_toml(config, MAX_FILE_BYTES) | {"config": config}
        args = convert(args_class, values, config)
        refuse_without_effect(args, changed(args), lambda name: f"{config}: {name}")
        return args
    game_map = game_map or default_map
    if game_map is None and start:
        file = policy_path("start-from", start)[1]
        game_map = learning_module("checkpoints").read(file)["args"]["map"]
    game_map = game_map or vars(args_class())["map"]
    return dataclasses.replace(with_file(args_class, game_map), map=game_map)


def _resumed(args_class: type[_Args], path: str) -> _Args:
    folder = Path(path)
    if not (folder / "args.json").is_file() or (folder / "policy.pt").is_file():
        hint = "--start-from trains on from a policy"
        raise UserError(f"--resume {path} is not a run to continue; {hint}")
    script = Path(sys.modules[args_class.__module__].__file__ or "").name
    scripts = [file.name for file in folder.glob("*.py")]
    if scripts and script not in scripts:
        raise UserError(f"{path} is a run of {scripts[0]}: continue it with that script")
    run = RunFolder(path)
    try:
        return run.settings(args_class, resume=path)
    except UserError:  # settings of another version are named as such, if that is what they are
        learning_module("checkpoint_state").read_newest(run)
        raise
