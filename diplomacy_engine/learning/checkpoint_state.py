"""The state of a run in a checkpoint, beside its policy."""

import gc
import hashlib
import random
import sys
import weakref
from collections import ChainMap
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter

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

RUN_FORMAT = 8  # of that state


def check_run(run: Run, ranks: Ranks) -> None:
    """Raise UserError if part of an edited run would not learn, or not survive a checkpoint: one is
    written and read in memory, into a second run, which must then be as the first is."""
    shared, own, parts = pack(run, ranks, "draw it before `seed_generators(local.seed)`")
    before = _prints(run)
    check_optimizers(run, parts)
    run.setup.policy(run)
    with probes.kept_generators():
        twin = type(run)(run.setup, ranks)
        replaced = {
            name: weakref.ref(part)
            for name, part in _attributes(twin).items()
            if type(part).__weakrefoffset__
        }
        try:
            restore(twin, _saved(run, shared, [own]), Ranks())
        except Exception as error:
            why = reason(error)
            raise UserError(f"a checkpoint of this run could not be read ({why})") from error
        after = _prints(twin)
    gc.collect()
    for name, part in before.items():
        if after.get(name) != part:
            raise UserError(f"a checkpoint would bring run.{name} back otherwise than it is")
        if name in replaced and replaced[name]() is not None:
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
        shared, own, _ = pack(run, ranks, "make it of sums over all of them, `ranks.sum`")
        gathered = ranks.gather(own)
        if ranks.rank > 0:
            return
        pool = run.pool
        own = [number for number in run.results.duels if number in pool.agents]  # not joined ones
        saved = run.setup.policy(run) | _saved(run, shared, gathered)
        saved |= {name: getattr(run, name) for name in ("evaluations", "evaluated_at")}
        saved |= {"copies": {pool.frozen_at[n]: pool.agents[n].state_dict() for n in own}}
        saved |= {"wandb_id": log.wandb_id, "files": files, "seconds": log.seconds}
        log.folder.save_checkpoint(run.step, checkpoints.to_bytes(saved))


def _saved(run: Run, shared: bytes, owns: Sequence[bytes]) -> dict:
    """Return what a checkpoint has of the states that `pack` returns on all processes."""
    state, *ranks = (torch.frombuffer(bytearray(c), dtype=torch.uint8) for c in (shared, *owns))
    device = run.setup.device.type
    saved = {"run_format": RUN_FORMAT, "run": state, "ranks": ranks, "device": device}
    return saved | {"next_hook": RemovableHandle.next_id}


def pack(run: Run, ranks: Ranks, advice: str = "") -> tuple[bytes, bytes, list]:
    """Return the state of a run that all processes share, that of this one, and the objects in it.

    It is all attributes but those that REBUILT names, and cached properties. UserError: one cannot
    be kept, or differs between processes, for which there is `advice`.
    """
    anew, attributes = _made_anew(run), _attributes(run)
    own = {name: attributes.pop(name) for name in run.OF_RANK}, probes.generators(run.setup.device)
    try:
        shared, parts = dumps(attributes, anew)
        own, own_parts = dumps(own, ChainMap(dict(enumerate(parts)), anew))
    except Exception:
        _prints(run)
        raise
    if len({*ranks.gather(hashlib.sha256(shared).digest())}) > 1:
        everywhere = ranks.gather(_prints(run))
        for name in set().union(*everywhere) - {*run.OF_RANK}:
            if len({prints.get(name) for prints in everywhere}) > 1:
                raise UserError(
                    f"run.{name} differs between processes, and a checkpoint keeps one for all: "
                    f"{advice}, or if each is to have its own, name {name} in OF_RANK"
                )
    return shared, own, parts + own_parts


def unpack(
    saved: Mapping, rank: int, anew: Mapping[str, object], device: str
) -> tuple[dict[str, object], list]:
    """Return the attributes of a run of one process, and its generators."""
    states = (part.numpy().tobytes() for part in (saved["run"], saved["ranks"][rank]))
    shared = loads(next(states), anew, saved["device"], device)
    parts = dict(enumerate(dumps(shared, anew)[1]))
    own, generators = loads(next(states), {**anew, **parts}, saved["device"], device)
    return dict(shared) | own, generators


def _attributes(run: Run) -> dict[str, object]:
    cached = [n for n in vars(run) if isinstance(getattr(type(run), n, None), cached_property)]
    return {name: part for name, part in vars(run).items() if name not in (*run.REBUILT, *cached)}


def _made_anew(run: Run) -> dict[str, object]:
    """Return what the script, __init__ of a run, Python or PyTorch makes anew, by key."""
    anew = {f".{name}": part for name, part in vars(sys.modules[type(run).__module__]).items()}
    anew |= {name: attrgetter(name)(run) for name in run.REBUILT} | {"run": run}
    anew |= {"random": random._inst, "numpy": np.random.mtrand._rand}
    anew |= {"torch": torch.default_generator}
    for name, module in run.agent.named_modules():
        if is_parametrized(module):
            anew[f"class of {name}"] = type(module)
            for number, hook in enumerate(module._load_state_dict_pre_hooks.values()):
                anew[f"hook {number} of {name}"] = hook.hook
        if hasattr(module, "dynamo_ctx"):
            anew[f"compiled {type(module._orig_mod).__qualname__}"] = module.dynamo_ctx
    return anew


def _prints(run: Run) -> dict[str, str]:
    """Return a hash of each attribute of a run; UserError if one cannot be kept."""
    prints, anew = {}, _made_anew(run)
    for name, part in _attributes(run).items():
        try:
            prints[name] = hashlib.sha256(dumps(part, anew)[0]).hexdigest()
        except Exception as error:
            raise UserError(
                f"a checkpoint cannot keep run.{name} ({reason(error)}): if __init__ makes it anew "
                "just as it is, name it, or its part that cannot be kept, in REBUILT"
            ) from error
    return prints


def restore(run: Run, saved: Mapping, ranks: Ranks) -> None:
    """Load the state of this process from a checkpoint into a new run."""
    device = str(run.setup.device)
    attributes, generators = unpack(saved, ranks.rank, _made_anew(run), device)
    for name in _attributes(run).keys() - attributes.keys():
        raise UserError(f"the script makes run.{name}, which the checkpoint does not have")
    for name in vars(run).keys() - {*run.REBUILT}:
        delattr(run, name)
    run.__dict__.update(attributes)
    probes.set_generators(generators, run.setup.device)
    # No hook takes the number of one that is kept.
    RemovableHandle.next_id = max(RemovableHandle.next_id, saved["next_hook"])
