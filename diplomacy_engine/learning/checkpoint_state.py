"""The state of a run in a checkpoint, beside its policy.

It has two parts: `run`, the attributes that all processes share, and `ranks`, for each process
those that OF_RANK names, with its random generators. REBUILT names what neither has: an attribute
that __init__ makes anew (`args`), or only a part of one that is kept (`pool.bots`).

The other keys of a checkpoint, and who reads them:

    those of the policy (checkpoints.py)  players
    run_format, device, next_hook         this file
    wandb_id, files, seconds              startup.py, to continue the logs
    evaluations, evaluated_at             diplomacy_learners/population_based.py
    copies (weights of the pool by the    populations.py
      step at which they were frozen)
"""

import gc
import hashlib
import random
import sys
import weakref
from collections import ChainMap
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.utils.parametrize import is_parametrized
from torch.utils.hooks import RemovableHandle

from ..errors import UserError
from . import checkpoints, probes
from .checkpoints import reason
from .checks import check_optimizers
from .of_scripts import Run
from .pickling import dumps, loads
from .ranks import Ranks
from .run_folder import RunFolder
from .run_log import RunLog

# Of that state. It is another one when an attribute, or a key of `_external_objects`, is renamed.
RUN_FORMAT = 8
_References = dict[str, weakref.ref[object]]  # to attributes, by name


class PackedRun(NamedTuple):
    """The state of a run, as `pack` returns it on each process."""

    shared_bytes: bytes  # what all processes share
    rank_bytes: bytes  # what this one has of its own
    objects: list  # in the state


def check_run(run: Run, ranks: Ranks) -> None:
    """Raise UserError if part of an edited run would not learn, or not survive a checkpoint.

    A checkpoint is written and read in memory, into a second run. Then each attribute must be as it
    is in the first, and nothing may hold the object that the second run made in its place.
    """
    advice = "draw it before `seed_generators(local.seed)`"
    state = pack(run, ranks, advice)
    check_optimizers(run, state.objects)
    run.setup.policy(run)  # raises if a checkpoint cannot have its policy
    with probes.kept_generators():
        saved = _saved(run, state.shared_bytes, [state.rank_bytes])
        second, originals = _restored_copy(run, ranks, saved)
        if pack(second, ranks, advice)[:2] != state[:2]:  # their bytes
            _refuse_changed(run, second)
    _refuse_held(run, originals)  # while the second run lives, whose parts may hold them


def _restored_copy(run: Run, ranks: Ranks, saved: Mapping) -> tuple[Run, _References]:
    """Return a second run, restored from a checkpoint of the first, and its attributes as __init__
    had made them, by name.

    These are weak references, so that an object lives on only if something else holds it; numbers
    and the like have none.
    """
    second = type(run)(run.setup, ranks)
    parts = _attributes(second).items()
    originals = {name: weakref.ref(part) for name, part in parts if type(part).__weakrefoffset__}
    try:
        restore(second, saved, Ranks())
    except Exception as error:
        raise UserError(f"a checkpoint of this run cannot be read ({reason(error)})") from error
    return second, originals


def _refuse_changed(run: Run, second: Run) -> None:
    """Raise UserError if an attribute of the restored run is otherwise than in the first."""
    restored = _hashes(second)
    for name, own in _hashes(run).items():
        if restored.get(name) != own:
            raise UserError(f"a checkpoint would bring run.{name} back otherwise than it is")


def _refuse_held(run: Run, originals: _References) -> None:
    """Raise UserError if an object that a checkpoint has replaced is still in use.

    An example is an object of REBUILT that keeps the network in an attribute: a checkpoint brings
    another one to `run.agent`, and the object would go on with the untrained one.
    """
    if any(part() is not None for part in originals.values()):
        gc.collect()  # objects that hold each other are not gone before
    for name in _attributes(run):
        if name in originals and originals[name]() is not None:
            raise UserError(
                f"what REBUILT names holds run.{name}, and a checkpoint brings another: make it a "
                "cached_property"
            )


def read_newest(folder: RunFolder) -> checkpoints.Checkpoint:
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


def save(run: Run, ranks: Ranks, log: RunLog) -> None:
    """Write a checkpoint from which the run continues exactly; all ranks call this."""
    with log.clock("saving"):
        files = log.flush()
        state = pack(run, ranks, "sum it over all of them with `ranks.sum`")
        gathered = ranks.gather(state.rank_bytes)
        if ranks.rank > 0:
            return
        agents = run.pool.agents
        copies = [n for n in run.results.duels if n in agents]  # the others are bots
        saved = run.setup.policy(run) | _saved(run, state.shared_bytes, gathered)
        saved |= {"evaluations": run.evaluations, "evaluated_at": run.evaluated_at}
        saved |= {"copies": {run.pool.frozen_at[n]: agents[n].state_dict() for n in copies}}
        saved |= {"wandb_id": log.wandb_id, "files": files, "seconds": log.seconds}
        log.folder.save_checkpoint(run.step, checkpoints.to_bytes(saved))


def _saved(run: Run, shared_bytes: bytes, gathered: Sequence[bytes]) -> dict:
    """Return what a checkpoint has of the states that `pack` returns on all processes."""
    parts = (bytearray(part) for part in (shared_bytes, *gathered))
    state, *ranks = (torch.frombuffer(part, dtype=torch.uint8) for part in parts)
    saved = {"run_format": RUN_FORMAT, "run": state, "ranks": ranks}
    return saved | {"device": run.setup.device.type, "next_hook": RemovableHandle.next_id}


def pack(run: Run, ranks: Ranks, advice: str = "") -> PackedRun:
    """Return the state of a run.

    UserError: an attribute cannot be kept, or differs between processes; then `advice` is what to
    do about it.
    """
    external = _external_objects(run)
    attributes = _attributes(run)
    of_rank = {name: attributes.pop(name) for name in run.OF_RANK}
    rank_state = of_rank, probes.generators(run.setup.device)
    try:
        shared_bytes, parts = dumps(attributes, external)
        rank_bytes, rank_parts = dumps(rank_state, ChainMap(dict(enumerate(parts)), external))
    except Exception:
        _name_what_cannot_be_kept(run)
        raise
    if len({*ranks.gather(hashlib.sha256(shared_bytes).digest())}) > 1:
        _refuse_different_between_ranks(run, ranks, advice)
    return PackedRun(shared_bytes, rank_bytes, parts + rank_parts)


def _refuse_different_between_ranks(run: Run, ranks: Ranks, advice: str) -> None:
    """Raise UserError with the name of an attribute that differs between processes."""
    everywhere = ranks.gather(_hashes(run))
    for name in set().union(*everywhere) - {*run.OF_RANK}:
        if len({hashes.get(name) for hashes in everywhere}) > 1:
            raise UserError(
                f"run.{name} differs between processes, and a checkpoint keeps one for all: "
                f"{advice}, or if each is to have its own, name {name} in OF_RANK"
            )


def unpack(
    saved: Mapping, rank: int, external: Mapping[str, object], device: str
) -> tuple[dict[str, object], list]:
    """Return the attributes of a run of process `rank`, and the states of its generators.

    `external` are the objects that are not in the checkpoint, by key; tensors come to `device`.
    """
    shared = loads(saved["run"].numpy().tobytes(), external, saved["device"], device)
    # The bytes of a rank name shared objects by their numbers in the order in which `dumps` visited
    # them, which is the same for these, as they are equal.
    by_number = dict(enumerate(dumps(shared, external)[1]))
    rank_bytes = saved["ranks"][rank].numpy().tobytes()
    of_rank, generators = loads(rank_bytes, {**external, **by_number}, saved["device"], device)
    return dict(shared) | of_rank, generators


def _attributes(run: Run) -> dict[str, object]:
    """Return the attributes that a checkpoint keeps: all but REBUILT and cached properties."""
    cached = [n for n in vars(run) if isinstance(getattr(type(run), n, None), cached_property)]
    return {name: part for name, part in vars(run).items() if name not in (*run.REBUILT, *cached)}


def _external_objects(run: Run) -> dict[str, object]:
    """Return what the script, __init__ of a run, Python or PyTorch makes anew, by key.

    A checkpoint has the key in the place of such an object, see pickling.py.
    """
    # Globals of the script's module, which a new process imports.
    external = {f".{name}": part for name, part in vars(sys.modules[type(run).__module__]).items()}
    external |= {name: attrgetter(name)(run) for name in run.REBUILT} | {"run": run}
    external |= {"random": random._inst, "numpy": np.random.mtrand._rand}  # the global generators
    external |= {"torch": torch.default_generator}
    for name, module in run.agent.named_modules():
        if is_parametrized(module):  # PyTorch makes a class of its own for it
            external[f"class of {name}"] = type(module)
            for number, hook in enumerate(module._load_state_dict_pre_hooks.values()):
                external[f"hook {number} of {name}"] = hook.hook
        if hasattr(module, "dynamo_ctx"):  # torch.compile
            external[f"compiled {type(module._orig_mod).__qualname__}"] = module.dynamo_ctx
    return external


def _hashes(run: Run) -> dict[str, str]:
    """Return a hash of each attribute of a run; UserError if one cannot be kept."""
    external = _external_objects(run)
    hashes = {}
    for name, part in _attributes(run).items():
        try:
            hashes[name] = hashlib.sha256(dumps(part, external)[0]).hexdigest()
        except Exception as error:
            raise UserError(
                f"a checkpoint cannot keep run.{name} ({reason(error)}): if __init__ makes it anew "
                "just as it is, name it, or its part that cannot be kept, in REBUILT"
            ) from error
    return hashes


def _name_what_cannot_be_kept(run: Run) -> None:
    """Raise UserError with the name of the attribute that cannot be kept, if one alone cannot."""
    _hashes(run)


def restore(run: Run, saved: Mapping, ranks: Ranks) -> None:
    """Load the state of this process from a checkpoint into a new run."""
    device = str(run.setup.device)
    attributes, generators = unpack(saved, ranks.rank, _external_objects(run), device)
    if missing := _attributes(run).keys() - attributes.keys():
        name = next(iter(missing))
        raise UserError(f"the script makes run.{name}, which the checkpoint does not have")
    for name in vars(run).keys() - {*run.REBUILT}:
        delattr(run, name)
    run.__dict__.update(attributes)
    probes.set_generators(generators, run.setup.device)
    # No hook takes the number of one that is kept.
    RemovableHandle.next_id = max(RemovableHandle.next_id, saved["next_hook"])
