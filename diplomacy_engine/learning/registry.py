"""This module chooses the code that plays a checkpoint: a script with the name of the one that
trained it, which is bundled, running or named by the user. No checkpoint chooses code: the copy of
a script in a run folder runs only if `--script own` says so.

A script's last lines call `register`, which makes a `Learner` of its settings and its network. For
a checkpoint, `of_checkpoint` chooses the learner, and `policy_of_checkpoint` makes a player.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from .._files import file_sha256
from .._suggest import quoted
from ..errors import UserError
from ..players.policy.files import policy_path
from ..players.policy.player import PolicyPlayer
from ..players.protocols import Player
from ..records import convert
from ..rules.map import Map, load_map
from . import checkpoints, probes
from .checkpoints import Checkpoint
from .players import policy_player

PPO_SCRIPT = "ppo_selfplay_diplomacy"
OWN = "own"  # in the place of a script: the copy in the folder of each policy
_MODULES = ("press", "baselines", "league", "anchored", "language_model")  # of diplomacy_learners
# Name of a bundled script in a checkpoint -> its module.
BUNDLED = {
    f"{PPO_SCRIPT}.py": PPO_SCRIPT,
    **{f"{n}.py": f"diplomacy_learners.{n}" for n in _MODULES},
}
_learners: dict[Path, "Learner"] = {}  # by the file of the script that has registered them


def _no_network(settings: Mapping, game_map: Map) -> nn.Module:
    """Raise UserError: this is the `make_agent` of a script that has only `load`."""
    raise UserError("what this script trains is no network of policies")


@dataclass(frozen=True)
class Learner:
    """A training script, as far as reading and playing its checkpoints needs it.

    There are two kinds. Most scripts train a network: they have `make_agent` and `make_player`.
    One that trains something else has `load` in the place of these two.
    """

    file: Path
    args_class: type  # its settings; its defaults are for what an older checkpoint lacks
    make_agent: Callable[[Mapping, Map], nn.Module]  # of settings: a new network
    make_player: Callable[..., PolicyPlayer]  # of agent, name, greedy ...
    talks: bool  # whether powers talk before they order, in training and evaluations
    load: Callable[..., Player] | None  # of checkpoint, greedy, device; None: it trains a network

    @property
    def name(self) -> str:
        """The script's name, by which checkpoints name their maker."""
        return self.file.name

    @cached_property
    def network_setting_names(self) -> tuple[str, ...]:
        """The names of the settings that decide which network a checkpoint has."""
        settings = _RecordingSettings(self.settings({}))
        self.weight_shapes(settings, load_map("small"))
        return tuple(name for name in settings if name in settings.read)

    def settings(self, args: Mapping) -> dict:
        """Return the settings of a checkpoint, with defaults for what it lacks."""
        return {**asdict(self.args_class()), **args}

    def agent(self, saved: Checkpoint) -> nn.Module:
        """Return the network of a checkpoint, on the CPU.

        UserError: it does not fit this script, or its probe says that this code computes another
        policy than the one that was trained.
        """
        try:
            with checkpoints.fitting(saved.path, self.file):
                settings = self._checked_settings(saved)
                shapes = self.weight_shapes(settings, saved.map)
                checkpoints.check_weights(saved["model"], shapes)
                agent = self.make_agent(settings, saved.map)
                agent.load_state_dict(saved["model"])
                probes.check(saved, agent, self.make_player, self.file)
        except UserError as error:
            raise UserError(f"{error}{self._own_script_hint(saved)}") from None
        return agent

    def _checked_settings(self, saved: Checkpoint) -> dict:
        """Return the settings of a checkpoint. UserError or ValueError if a network cannot have
        them."""
        settings = self.settings(saved["args"])
        sizes = {name: settings[name] for name in self.network_setting_names}
        convert(self.args_class, sizes, f"{saved.path}: args")
        if settings.get("num_layers", 0) > len(saved["model"]):  # making so many takes long
            raise ValueError("its weights do not match")
        return settings

    def _own_script_hint(self, saved: Checkpoint) -> str:
        """Return how the script in the checkpoint's folder plays it, if that is another one."""
        if saved.script_copy and file_sha256(self.file) != saved["script_sha256"]:
            return "; `--script own` plays it by the script in its folder"
        return ""

    def weight_shapes(self, settings: Mapping, game_map: Map) -> dict[str, torch.Tensor]:
        """Return the weights of a network by name, with shape and type but no values: they are on
        PyTorch's meta device."""
        with torch.device("meta"), _NoDraws():
            return self.make_agent(settings, game_map).state_dict()

    def checkpoint_of_flag(self, flag: str, name: str) -> Checkpoint:
        """Return the checkpoint that a flag names. UserError if it does not fit, or another script
        made it and the name does not say, as `FILE.py:PATH`, that this one computes the same."""
        script, path = policy_path(flag, name)
        saved = checkpoints.read(path)
        maker = saved["script_name"]
        if self.name not in (maker, script) and not {maker, self.name} <= BUNDLED.keys():
            same = f"if {self.name} computes the same, --{flag} {self.name}:{path}"
            how = f"{same}; else use a copy of {self.name} that imports that script"
            raise UserError(f"--{flag} {name} was made by {quoted(maker, 60)}: {how}")
        self.agent(saved)  # says what is wrong if it does not fit
        args = self.settings(saved["args"]) if maker == self.name else saved["args"]
        return Checkpoint(path, saved | {"args": args})


class _RecordingSettings(dict):
    """Settings that remember which of them have been read."""

    def __init__(self, values: dict):
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> object:
        self.read.add(name)
        return super().__getitem__(name)


class _NoDraws(TorchFunctionMode):
    """Leaves weights without memory undrawn; to draw them, PyTorch would load its compiler."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in (nn.init.normal_, torch.Tensor.normal_):
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def register(
    module: str,
    file: str,
    args_class: type,
    make_agent: Callable[..., nn.Module] = _no_network,
    make_player: Callable[..., PolicyPlayer] = policy_player,
    talks: bool = False,
    load: Callable[..., Player] | None = None,
) -> Learner:
    """Make a script known, as its last line but the main one.

    Args:
        module: its `__name__`.
        file: its `__file__`.
        args_class, make_agent, make_player, talks, load: as in Learner. They are written out for
            the editors and type checkers of those who write a script.
    """
    path = Path(file).resolve()
    if module == "__main__":
        # A learner that imports the running script by its name gets this module, and no second one
        # with other classes.
        package = "diplomacy_learners." if path.parent.name == "diplomacy_learners" else ""
        sys.modules.setdefault(package + path.stem, sys.modules[module])
    learner = Learner(path, args_class, make_agent, make_player, talks, load)
    _learners[path] = learner
    return learner


def of_file(file: str | Path) -> Learner:
    """Return the learner that a script registers; the script runs, unless it has.

    UserError: there is no such script, it cannot be loaded, or it registers nothing.
    """
    path = Path(file).resolve()
    if path in _learners:
        return _learners[path]
    if path.suffix != ".py" or not path.is_file():
        raise UserError(f"there is no script {file} to play checkpoints with")
    beside = {str(path.parent)}.difference(sys.path)  # a learner may import a script there
    sys.path += beside
    try:
        _run(path)
    except (ImportError, SyntaxError) as error:
        raise UserError(f"{file} cannot be loaded: {error}") from error
    finally:
        sys.path[:] = [folder for folder in sys.path if folder not in beside]
    if path not in _learners:
        raise UserError(f"{file} is not a learner: it does not call registry.register")
    return _learners[path]


def _run(path: Path) -> None:
    """Run a script as a module of its own, also where its name is that of another module."""
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_{len(_learners)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # a .py file has both
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def bundled(name: str = f"{PPO_SCRIPT}.py") -> Learner:
    """Return a learner of BUNDLED, or the one that runs in its place."""
    return of_file(str(importlib.import_module(BUNDLED[name]).__file__))


def of_checkpoint(saved: Checkpoint, script: str | Path | None = None) -> Learner:
    """Return the learner that plays a checkpoint. It is the first that there is of these:

    1. the one that `script` names (OWN: the copy in the checkpoint's folder);
    2. a script that has run, of the name and content of the one that trained the checkpoint;
    3. the bundled script of that name;
    4. the script of that name that ran last.

    UserError: there is none of them.
    """
    if script == OWN:
        if saved.script_copy:
            return of_file(saved.script_copy)
    elif script is not None:
        return of_file(script)
    return _learner_of_same_script(saved)


def _learner_of_same_script(saved: Checkpoint) -> Learner:
    """Return the learner of a script with the name of the one that trained a checkpoint."""
    name = saved["script_name"]
    # A script of the same name may be there since the user has named it for another checkpoint.
    same_name = [learner for learner in _learners.values() if learner.name == name]
    for learner in same_name:
        if learner.file.is_file() and file_sha256(learner.file) == saved["script_sha256"]:
            return learner
    if name in BUNDLED:
        return bundled(name)
    if same_name:
        return same_name[-1]
    advice = f"name that script, as in {saved.script_copy or Path(name).name}:{saved.path}"
    raise UserError(f"{saved.path} was made by {quoted(name, 60)}: {advice}")


def policy_of_checkpoint(
    saved: Checkpoint, script: str | Path | None = None, greedy: bool = False, device: str = "cpu"
) -> Player:
    """Return a checkpoint's policy as a player; UserError says which other script may play it."""
    learner = of_checkpoint(saved, script)
    if learner.load:
        return learner.load(saved, greedy, device)
    agent = learner.agent(saved).to(device).eval()
    try:
        return learner.make_player(agent, str(saved.path), greedy, learner.settings(saved["args"]))
    except UserError as error:
        raise UserError(f"checkpoint {saved.path} cannot be played: {error}") from error
