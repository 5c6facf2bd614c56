"""The state of a run in a checkpoint, beside its policy."""

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .._files import file_sha256
from ..errors import UserError
from . import checkpoints, probes
from .checkpoints import MOST_WEIGHT, is_sound, reason
from .object_graph import Reader, Writer, hash_of, node_hash
from .ranks import Ranks, TrainingError
from .run_folder import RunFolder

RUN_FORMAT = 7  # of that state
MIN_LEARNING_RATE = 1e-8  # below it a step may be lost in rounding


def optimizers(run: Any) -> list[Optimizer]:
    """Return the optimizers of a run, also those in collections and in objects of its script."""
    pending, passed, out = list(vars(run).values()), set(), []
    for value in pending:
        if id(value) in passed:
            continue
        passed.add(id(value))
        if isinstance(value, Optimizer):
            out.append(value)
        elif isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value
        elif type(value).__module__ == type(run).__module__ and not isinstance(value, nn.Module):
            pending += getattr(value, "__dict__", {}).values()
    return out


def weight_hash(agent: nn.Module) -> int:
    """Return a checksum of an agent's weights."""
    weights = torch.cat([weight.detach().flatten().float() for weight in agent.parameters()])
    return int(weights.view(torch.int32).sum()) % 2**40


def check_learned(run: Any, losses: Mapping[str, float], before: int, ranks: Ranks) -> None:
    """Raise TrainingError if an update went wrong; `before` is the `weight_hash` before it."""
    if not all(map(math.isfinite, losses.values())):
        raise TrainingError(f"a loss is not finite ({dict(losses)})")
    steppers = optimizers(run)
    moments = [figures for optimizer in steppers for figures in optimizer.state.values()]
    if not is_sound(run.agent.parameters(), moments):
        raise TrainingError(f"a weight is not finite, or beyond {MOST_WEIGHT:,.0f}")
    after = weight_hash(run.agent)
    if ranks.sum({"hash": after})["hash"] != after * ranks.count:
        raise TrainingError(
            "an update has left the processes with different weights: `ranks.sum_gradients` comes "
            "after the last backward(), and before gradients are clipped"
        )
    rates = [group["lr"] for optimizer in steppers for group in optimizer.param_groups]
    if after == before and max(rates) > MIN_LEARNING_RATE:
        raise TrainingError(
            "an update has changed no weight: does run.optimizer step the weights of run.agent, "
            "and does nothing clear their gradients, or the loss's, before it does?"
        )


def check_run(run: Any, ranks: Ranks) -> None:
    """Raise UserError if part of an edited run would not learn, or not survive a checkpoint: one is
    written and read in memory, into a second run, which must then be as the first is."""
    state = pack(run)
    reached = list(zip(state.writer.names, state.writer.values))
    steppers = {name: value for name, value in reached if isinstance(value, Optimizer)}
    groups = [group for optimizer in steppers.values() for group in optimizer.param_groups]
    stepped = {id(weight) for group in groups for weight in group["params"]}
    for name, weight in run.agent.named_parameters():
        if weight.requires_grad and id(weight) not in stepped:
            raise UserError(f"agent.{name} learns nothing: no optimizer of the run has it")
    annealed = set(map(id, optimizers(run)))
    for name, value in reached:
        if run.args.anneal and isinstance(value, LRScheduler):
            kind = type(value).__name__
            raise UserError(f"a {kind} sets the learning rate, and so does --anneal: turn one off")
        if run.args.anneal and isinstance(value, Optimizer) and id(value) not in annealed:
            raise UserError(f"{name} is not annealed: make it an attribute of Run")
    policy = run.setup.policy(run)
    _check_same(state, ranks, "draw it at random before `seed_generators(local.seed)`")
    saved = checkpoints.to_bytes(policy | {"run": state.shared, "ranks": [state.own]})
    expected = run.setup.learner.weights(asdict(run.args), run.game_map)
    for name in policy["model"].keys() ^ expected.keys():
        raise UserError(
            f"a checkpoint of this run could not be played, for only one has {name}: the run's "
            "network, or what make_agent makes; change networks in Agent, or in make_agent"
        )
    with probes.kept_generators():
        try:
            twin = type(run)(run.setup, ranks)
            again = pack(twin, restore_run(twin, checkpoints.from_bytes(saved), Ranks()))
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"a checkpoint of this run could not be read ({reason(error)})"
            ) from error
    if _prints(state) != _prints(again):
        name, _ = _difference(_prints(state), _prints(again))
        raise UserError(f"a checkpoint would bring {name} back otherwise than it is")
    run.setup.initial.update(state.writer.initial)


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
        files, state = log.flush(), pack(run, run.setup.initial or None)
        _check_same(state, ranks, "make it of sums over all of them, `ranks.sum`")
        # As bytes: a tensor of unsigned numbers, such as the games' seeds, cannot be pickled.
        gathered = ranks.gather(checkpoints.to_bytes(state.own))
        if ranks.rank > 0:
            return
        pool = run.pool
        own = [number for number in run.results.duels if number in pool.agents]  # not joined ones
        saved = run.setup.policy(run) | {
            "copies": {
                pool.frozen_at[n]: pool.agents[n].state_dict() for n in own if n in pool.agents
            },
            "run_format": RUN_FORMAT,
            "run": state.shared,
            "ranks": [checkpoints.from_bytes(part) for part in gathered],
            "wandb_id": log.wandb_id,
            "files": files,
            "seconds": log.seconds,
        }
        log.folder.save_checkpoint(run.step, checkpoints.to_bytes(saved))


class State(NamedTuple):
    shared: dict  # nodes and attributes that a checkpoint has once for all processes
    own: dict  # those of this process
    writer: Writer


def pack(run: Any, initial: dict | None = None) -> State:
    """Return the state of a run: all attributes but those that REBUILT of their class names.

    `initial`: of the run when it was new, what __init__ makes anew; None: it is new.

    Raises:
        UserError: an attribute cannot be kept; its name is in the message.
    """
    writer, attributes = Writer(run, "run", initial), dict(vars(run))
    for name in run.REBUILT:
        writer.rebuilt(attributes.pop(name, None), f"run.{name}")
    own = {name: attributes.pop(name) for name in run.OF_RANK}
    shared = {name: writer.visit(value, f"run.{name}") for name, value in attributes.items()}
    count = len(writer.nodes)
    own = {name: writer.visit(value, f"run.{name}") for name, value in own.items()}
    generators = {n: writer.visit(g, f"generators.{n}") for n, g in _generators(run).items()}
    nodes, device = writer.finished(), run.setup.device.type
    return State(
        {"nodes": nodes[:count], "attributes": shared},
        {"nodes": nodes[count:], "attributes": own, "generators": generators, "device": device},
        writer,
    )


def _generators(run: Any) -> dict[str, Any]:
    """Return this process's global generators by name."""
    generators = {"torch": torch.default_generator, "random": random.getstate.__self__}
    generators["numpy"] = np.random.get_state.__self__
    if run.setup.device.type == "cuda":
        generators["cuda"] = torch.cuda.default_generators[run.setup.device.index]
    return generators


def _check_same(state: State, ranks: Ranks, advice: str) -> None:
    """Raise UserError unless all processes have the same shared state."""
    prints = _prints(state)
    if len(set(ranks.gather(hash_of(repr(prints).encode())))) == 1:
        return
    first, *others = ranks.gather(prints)
    for name, attribute in (_difference(first, other) for other in others if other != first):
        raise UserError(
            f"{name} differs between processes, and a checkpoint keeps one for all: "
            f"{advice}, or if each is to have its own, name {attribute} in OF_RANK"
        )


def _prints(state: State) -> list[tuple[str, str]]:
    """Return names and hashes of what all processes share."""
    nodes, attributes = state.shared["nodes"], state.shared["attributes"]
    plain = [(f"run.{name}", repr(part)) for name, part in attributes.items()]
    return [*zip(state.writer.names, map(node_hash, nodes)), *plain]


def _difference(one: Sequence, two: Sequence) -> tuple[str, str]:
    """Return the first name of which two lists of `_prints` differ, and the run's attribute."""
    pairs = itertools.zip_longest(one, two, fillvalue=("run", ""))
    name = next(max(a[0], b[0]) for a, b in pairs if a != b)
    return name, re.split(r"[.[]", name)[1]


def restore_run(run: Any, saved: dict, ranks: Ranks) -> dict:
    """Load the state of this process from a checkpoint into a new run; return its `initial`."""
    shared, own = saved["run"], saved["ranks"][ranks.rank]
    new, nodes = pack(run).writer, [*shared["nodes"], *own["nodes"]]
    reader = Reader(nodes, new, run.setup.device, own["device"])
    attributes = shared["attributes"] | own["attributes"]
    missing = [f"run.{name}" for name in vars(run) if name not in (*run.REBUILT, *attributes)]
    for name, part in attributes.items():
        vars(run)[name] = reader.visit(part, f"run.{name}")
    for name in _generators(run).keys() & own["generators"].keys():  # with or without a GPU
        reader.visit(own["generators"][name], f"generators.{name}")
    if saved["script_sha256"] != file_sha256(run.setup.learner.file):
        missing += reader.gone
    if missing:
        raise UserError(f"the script makes {missing[0]}, which the checkpoint does not have")
    return new.initial
