"""The state of a run in a checkpoint, beside its policy."""

import hashlib
import random
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.hooks import RemovableHandle

from ..errors import UserError
from . import checkpoints, probes
from .checkpoints import reason
from .checks import optimizers
from .pickling import dumps, loads
from .ranks import Ranks
from .run_folder import RunFolder

RUN_FORMAT = 8  # of that state


def check_run(run: Any, ranks: Ranks) -> None:
    """Raise UserError if part of an edited run would not learn, or not survive a checkpoint: one is
    written and read in memory, into a second run, which must then be as the first is."""
    shared, own, parts = pack(run, run.setup.anew, new=True)
    groups = [g for part in parts if isinstance(part, Optimizer) for g in part.param_groups]
    stepped = {id(weight) for group in groups for weight in group["params"]}
    for name, weight in run.agent.named_parameters():
        if weight.requires_grad and id(weight) not in stepped:
            raise UserError(f"agent.{name} learns nothing: no optimizer of the run has it")
    annealed = set(map(id, optimizers(run)))
    for part in parts if run.args.anneal else ():
        kind = type(part).__name__
        if isinstance(part, LRScheduler):
            raise UserError(f"a {kind} sets the learning rate, and so does --anneal: turn one off")
        if isinstance(part, Optimizer) and id(part) not in annealed:
            raise UserError(f"an {kind} is not annealed: make it an attribute of Run")
    policy = run.setup.policy(run)
    _check_same(run, shared, ranks, "draw it at random before `seed_generators(local.seed)`")
    expected = run.setup.learner.weights(asdict(run.args), run.game_map)
    for name in policy["model"].keys() ^ expected.keys():
        raise UserError(
            f"a checkpoint of this run could not be played, for only one has {name}: the run's "
            "network, or what make_agent makes; change networks in Agent, or in make_agent"
        )
    with probes.kept_generators():
        twin = type(run)(run.setup, ranks)
        try:
            anew = restore(twin, _saved(run, shared, [own]), Ranks())
        except Exception as error:
            raise UserError(
                f"a checkpoint of this run could not be read ({reason(error)})"
            ) from error
        same = pack(twin, anew)[:2] == (shared, own)
    before, after = _prints(run, run.setup.anew), _prints(twin, anew)
    for name in before if not same else ():
        if before[name] != after[name]:
            raise UserError(f"a checkpoint would bring run.{name} back otherwise than it is")


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
        files, (shared, own, _) = log.flush(), pack(run, run.setup.anew)
        _check_same(run, shared, ranks, "make it of sums over all of them, `ranks.sum`")
        gathered = ranks.gather(own)
        if ranks.rank > 0:
            return
        saved = run.setup.policy(run) | _saved(run, shared, gathered)
        saved |= {"wandb_id": log.wandb_id, "files": files, "seconds": log.seconds}
        log.folder.save_checkpoint(run.step, checkpoints.to_bytes(saved))


def _saved(run: Any, shared: bytes, owns: Sequence[bytes]) -> dict:
    """Return what a checkpoint has of the states that `pack` returns on all processes."""
    run_state, *ranks = (torch.frombuffer(bytearray(c), dtype=torch.uint8) for c in (shared, *owns))
    device = run.setup.device.type
    saved = {"run_format": RUN_FORMAT, "run": run_state, "ranks": ranks, "device": device}
    return saved | {"hooks": RemovableHandle.next_id}


def pack(run: Any, anew: dict[Any, Any], new: bool = False) -> tuple[bytes, bytes, list]:
    """Return the state of a run that all processes share, that of this one, and the objects in it.

    It is all attributes but those that REBUILT of their class names. `anew` is what __init__ of the
    run makes anew, by key; a `new` run adds to it.

    Raises:
        UserError: an attribute cannot be kept; its name is in the message.
    """
    if new:
        anew |= {f"run.{name}": vars(run).get(name) for name in run.REBUILT} | {"run": run}
        anew |= {"random": random.getstate.__self__, "numpy": np.random.get_state.__self__}
        anew |= {"torch": torch.default_generator}
    script, attributes = type(run).__module__, _attributes(run)
    own = {name: attributes.pop(name) for name in run.OF_RANK}
    pool = run.pool
    copies = [number for number in run.results.duels if number in pool.agents]  # not joined ones
    copies = {pool.frozen_at[number]: pool.agents[number].state_dict() for number in copies}
    try:
        shared = {"copies": copies, "attributes": attributes}
        shared, parts = dumps(shared, script, anew, new)
        own = {"attributes": own, "generators": probes.generators(run.setup.device)}
        own, own_parts = dumps(own, script, ChainMap(anew, dict(enumerate(parts))), new)
    except Exception:
        _prints(run, anew, new)
        raise
    return shared, own, parts + own_parts


def _attributes(run: Any) -> dict[str, Any]:
    return {name: part for name, part in vars(run).items() if name not in run.REBUILT}


def _prints(run: Any, anew: dict[Any, Any], new: bool = False) -> dict[str, str]:
    """Return a hash of each attribute of a run; UserError if one cannot be kept."""
    prints = {}
    for name, part in _attributes(run).items():
        try:
            content, _ = dumps(part, type(run).__module__, anew, new)
        except Exception as error:
            raise UserError(
                f"a checkpoint cannot keep run.{name} ({reason(error)}): if __init__ makes it anew "
                "just as it is, name it in REBUILT of its class"
            ) from error
        prints[name] = hashlib.sha256(content).hexdigest()
    return prints


def _check_same(run: Any, shared: bytes, ranks: Ranks, advice: str) -> None:
    """Raise UserError unless all processes have the same shared state."""
    if len(set(ranks.gather(hashlib.sha256(shared).hexdigest()))) == 1:
        return
    first, *others = ranks.gather(_prints(run, run.setup.anew))
    for name in first.keys() - {*run.OF_RANK}:
        if any(other.get(name) != first[name] for other in others):
            raise UserError(
                f"run.{name} differs between processes, and a checkpoint keeps one for all: "
                f"{advice}, or if each is to have its own, name {name} in OF_RANK"
            )


def restore(run: Any, saved: dict, ranks: Ranks) -> dict[Any, Any]:
    """Load the state of this process from a checkpoint into a new run; return its `anew`."""
    anew, script, fresh = {}, type(run).__module__, _attributes(run)
    pack(run, anew, new=True)
    devices = saved["device"], str(run.setup.device)
    contents = saved["run"], saved["ranks"][ranks.rank]
    shared, own = (content.numpy().tobytes() for content in contents)
    shared = loads(shared, script, anew, devices)
    before = dict(enumerate(dumps(shared, script, anew)[1]))
    own = loads(own, script, ChainMap(anew, before), devices)
    attributes = shared["attributes"] | own["attributes"]
    for name in fresh.keys() - attributes.keys():
        raise UserError(f"the script makes run.{name}, which the checkpoint does not have")
    vars(run).update(attributes)
    # Hooks registered from here on take no number of those that are kept.
    RemovableHandle.next_id = max(RemovableHandle.next_id, saved["hooks"])
    probes.set_generators(own["generators"], run.setup.device)
    return anew
