"""The state of a run in a checkpoint, beside its policy: `pack` makes it, `restore` loads it."""

import copy
import hashlib
import math
import random
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ..errors import UserError
from ..games.decisions import Decisions
from ..games.observation import BoardViews
from ..games.vector_game import VectorGame
from ..press.talk_views import OfferViews, TalkViews
from . import checkpoints
from .checkpoints import MOST_WEIGHT, is_sound, reason
from .experience import Experience
from .ranks import Ranks, TrainingError
from .run_folder import RunFolder

RUN_FORMAT = 6  # of that state
MIN_LEARNING_RATE = 1e-8  # below it a step may be lost in rounding
_TUPLES = {  # fields -> named tuple: a checkpoint holds these as dictionaries
    kind._fields: kind for kind in (Experience, BoardViews, TalkViews, OfferViews, Decisions)
}
# Class of games or a generator -> how to get its state, and to set it from what `pack` made of it.
_KINDS = {
    VectorGame: (VectorGame.snapshot, lambda games, saved: games.restore(_arrays(saved))),
    torch.Generator: (torch.Generator.get_state, torch.Generator.set_state),
    np.random.Generator: (
        lambda generator: generator.bit_generator.state,
        lambda generator, saved: setattr(generator.bit_generator, "state", _arrays(saved)),
    ),
    np.random.RandomState: (
        lambda generator: generator.get_state(legacy=False),
        lambda generator, saved: generator.set_state(_arrays(saved)),
    ),
    random.Random: (
        random.Random.getstate,
        lambda generator, saved: generator.setstate((saved[0], tuple(saved[1]), saved[2])),
    ),
}


class Stateful:
    """Something that changes while a run trains, whose attributes are in its checkpoints."""

    REBUILT: ClassVar[tuple[str, ...]] = ()  # attributes that are not, since __init__ makes them
    OF_RANK: ClassVar[tuple[str, ...]] = ()  # attributes of a run that each process has for itself

    def state_names(self) -> list[str]:
        """Return the names of attributes that are in a checkpoint, once for all processes."""
        return [name for name in vars(self) if name not in (*self.REBUILT, *self.OF_RANK)]


def pack(value: Any, name: str = "run") -> Any:
    """Return a value as dictionaries, lists, tensors and plain values, which `torch.load` reads.

    Raises:
        UserError: a value cannot be kept; `name` says which.
    """
    if isinstance(value, Stateful):
        return {part: pack(getattr(value, part), f"{name}.{part}") for part in value.state_names()}
    if isinstance(value, nn.Module | torch.optim.Optimizer):
        return value.state_dict()
    if hasattr(value, "state_dict"):  # such as a schedule's
        return pack(value.state_dict(), name)
    for kind, (get_state, _) in _KINDS.items():
        if isinstance(value, kind):
            return pack(get_state(value))
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: pack(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [pack(item, name) for item in value]
    if value is None or isinstance(value, bool | int | float | str | torch.Tensor):
        return value
    raise UserError(
        f"a checkpoint cannot keep {name}, a {type(value).__name__}: derive its class from "
        "`Stateful`, or if __init__ makes it anew just as it is, name it in REBUILT"
    )


def restore(live: Any, saved: Any) -> Any:
    """Return the value of which `pack` made `saved`.

    `live` is a value of its kind, loaded in place where that is possible.
    """
    if isinstance(live, Stateful):
        for part in live.state_names():
            setattr(live, part, restore(getattr(live, part), saved[part]))
        return live
    if hasattr(live, "load_state_dict"):
        live.load_state_dict(saved)
        return live
    for kind, (_, set_state) in _KINDS.items():
        if isinstance(live, kind):
            set_state(live, saved)
            return live
    if isinstance(live, torch.Tensor):  # in place: a module may hold it
        live.data.copy_(saved)
        return live
    if hasattr(live, "_asdict"):
        parts = live._asdict()
        return type(live)(*(restore(parts[part], saved[part]) for part in parts))
    if isinstance(live, dict):
        other = next(iter(live.values()), None)  # of the same kind as those that are missing
        likes = (live[key] if key in live else copy.deepcopy(other) for key in saved)
        return {key: restore(like, saved[key]) for key, like in zip(saved, likes)}
    if isinstance(live, list | tuple):
        return type(live)(restore(live[0] if live else None, item) for item in saved)
    return _arrays(saved)


def _arrays(saved: Any) -> Any:
    """Return `saved` with arrays in place of tensors, and its named tuples again."""
    if isinstance(saved, torch.Tensor):
        return saved.numpy().copy()
    if isinstance(saved, dict):
        arrays = {key: _arrays(item) for key, item in saved.items()}
        return _TUPLES[tuple(arrays)](**arrays) if tuple(arrays) in _TUPLES else arrays
    if isinstance(saved, list):
        return [_arrays(item) for item in saved]
    return saved


def weight_hash(agent: nn.Module) -> int:
    """Return a checksum of an agent's weights."""
    weights = torch.cat([weight.detach().flatten().float() for weight in agent.parameters()])
    return int(weights.view(torch.int32).sum()) % 2**40


def check_learned(run: Any, losses: Mapping[str, float], before: int, ranks: Ranks) -> None:
    """Raise TrainingError if an update went wrong; `before` is the `weight_hash` before it."""
    if not all(map(math.isfinite, losses.values())):
        raise TrainingError(f"a loss is not finite ({dict(losses)})")
    if not is_sound(run.agent.parameters(), run.optimizer.state.values()):
        raise TrainingError(f"a weight is not finite, or beyond {MOST_WEIGHT:,.0f}")
    after = weight_hash(run.agent)
    if ranks.sum({"hash": after})["hash"] != after * ranks.count:
        raise TrainingError(
            "an update has left the processes with different weights: `ranks.sum_gradients` comes "
            "after the last backward(), and before gradients are clipped"
        )
    rates = [group["lr"] for group in run.optimizer.param_groups]
    if after == before and max(rates) > MIN_LEARNING_RATE:
        raise TrainingError(
            "an update has changed no weight: does run.optimizer step the weights of run.agent, "
            "and does nothing clear their gradients, or the loss's, before it does?"
        )


def check_run(run: Any, ranks: Ranks) -> None:
    """Raise UserError if part of an edited run would not learn, or not survive a checkpoint.

    What a checkpoint would hold is written and read back in memory.
    """
    parts = []
    for value in vars(run).values():
        value = list(value.values()) if isinstance(value, dict) else value
        parts += value if isinstance(value, list | tuple) else [value]
    optimizers = [part for part in parts if isinstance(part, torch.optim.Optimizer)]
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    stepped = {id(weight) for group in groups for weight in group["params"]}
    for name, weight in run.agent.named_parameters():
        if weight.requires_grad and id(weight) not in stepped:
            raise UserError(f"agent.{name} learns nothing: no optimizer of the run has it")
    schedules = [part for part in parts if isinstance(part, torch.optim.lr_scheduler.LRScheduler)]
    if schedules and run.args.anneal:
        kind = type(schedules[0]).__name__
        raise UserError(f"a {kind} sets the learning rate, and so does --anneal: turn one off")
    policy, own = run.setup.policy(run), pack_rank(run)
    shared = pack(run)
    advice = "draw it at random before `seed_generators(local.seed)`"
    _check_same(ranks.gather(_hashes(shared, "run")), advice)
    saved = checkpoints.to_bytes(policy | {"run": shared, "ranks": [own]})
    expected = run.setup.learner.weights(asdict(run.args), run.game_map)
    for name in policy["model"].keys() ^ expected.keys():
        raise UserError(
            f"a checkpoint of this run could not be played, for only one has {name}: the run's "
            "network, or what make_agent makes; change networks in Agent, or in make_agent"
        )
    try:
        restore_run(run, checkpoints.from_bytes(saved), Ranks())
    except Exception as error:
        raise UserError(f"a checkpoint of this run could not be read ({reason(error)})") from error


def read_newest(folder: RunFolder) -> dict:
    """Return the newest checkpoint of a run.

    Raises:
        UserError: another version of this project began the run, or the checkpoint cannot be read;
            then the newest readable one is named.
    """
    try:
        saved = checkpoints.read(folder.checkpoint)
    except UserError as error:
        for path in sorted(folder.path.glob("checkpoints/*.pt"), reverse=True):
            try:
                checkpoints.read(path)
            except UserError:
                continue
            command = f"cp {path.relative_to(folder.path)} {folder.checkpoint.name}"
            raise UserError(f"{error}; there, `{command}` takes the last good one") from None
        raise
    if saved.get("run_format") != RUN_FORMAT:
        advice = "cannot be continued, but --start-from can begin with it"
        raise UserError(f"{folder.path}: begun with another version of this project; {advice}")
    return saved


def save(run: Any, ranks: Ranks, log: Any) -> None:
    """Write a checkpoint from which the run continues exactly; all ranks call this."""
    with log.clock("saving"):
        files = log.flush()
        shared = pack(run)
        # As bytes: a tensor of unsigned numbers, such as the games' seeds, cannot be pickled.
        gathered = ranks.gather((checkpoints.to_bytes(pack_rank(run)), _hashes(shared, "run")))
        advice = "make it of sums over all of them, `ranks.sum`"
        _check_same([hashes for _, hashes in gathered], advice)
        if ranks.rank > 0:
            return
        saved = run.setup.policy(run) | {
            "run_format": RUN_FORMAT,
            "run": shared,
            "ranks": [checkpoints.from_bytes(part) for part, _ in gathered],
            "wandb_id": log.wandb_id,
            "files": files,
            "seconds": log.seconds,
        }
        log.folder.save_checkpoint(run.step, checkpoints.to_bytes(saved))


def pack_rank(run: Any) -> dict:
    """Return the state that this process has for itself, with its global generators."""
    own = {name: pack(getattr(run, name), f"run.{name}") for name in run.OF_RANK}
    return own | {"generators": pack(_generators(run))}


def _generators(run: Any) -> dict[str, Any]:
    """Return this process's global generators by name."""
    generators = {"torch": torch.default_generator, "random": random.getstate.__self__}
    generators["numpy"] = np.random.get_state.__self__
    if run.setup.device.type == "cuda":
        generators["cuda"] = torch.cuda.default_generators[run.setup.device.index]
    return generators


def _hashes(value: Any, name: str) -> dict[str, str]:
    """Return a hash of each part of a packed value, by its name, such as `run.pool.copies`."""
    if isinstance(value, dict):
        parts = (_hashes(item, f"{name}.{key}") for key, item in value.items())
        return {place: digest for part in parts for place, digest in part.items()}
    if isinstance(value, list):
        content = repr([_hashes(item, "") for item in value]).encode()
    elif isinstance(value, torch.Tensor):
        content = value.detach().cpu().flatten().view(torch.uint8).numpy()
    else:
        content = repr(value).encode()
    return {name: hashlib.sha256(content).hexdigest()}


def _check_same(hashes: list[dict[str, str]], advice: str) -> None:
    """Raise UserError unless all processes have the same `_hashes`."""
    first = hashes[0]
    for other in hashes[1:]:
        for name in [*first, *other]:
            if first.get(name) != other.get(name):
                part = name.split(".")[1]
                raise UserError(
                    f"{name} differs between processes, and a checkpoint keeps one for all: "
                    f"{advice}, or if each is to have its own, name {part} in OF_RANK"
                )


def restore_run(run: Any, saved: dict, ranks: Ranks) -> None:
    """Load the state of this process from a checkpoint into a new run."""
    restore(run, saved["run"])
    own = saved["ranks"][ranks.rank]
    for name in run.OF_RANK:
        setattr(run, name, restore(getattr(run, name), own[name]))
    for name, generator in _generators(run).items():
        if name in own["generators"]:  # a run may go on with or without a GPU
            restore(generator, own["generators"][name])
