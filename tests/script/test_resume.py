"""A resumed run is the run: attributes of every kind, drawn by seed, in __init__ or later."""

import datetime
import enum
import random
import threading
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.edits import fork_ranks
from support.self_play import make_args
from support.tables import slow_but
from support.training import differences, metrics, resume, train
from torch import nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, load_map
from diplomacy_engine.learning import checkpoint_state, checkpoints, startup
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.learning.run_log import NoLog

LATE = 2  # the update after which more attributes are made, and others are changed
Pair = namedtuple("Pair", "first second")


class Color(enum.Enum):
    RED, BLUE = 1, 2


class Scale:
    """A reader's own class: the deviation of what has been paid."""

    def __init__(self):
        self.count, self.squares, self.name = 0, np.zeros(3), None

    def move(self):
        self.count += 1
        self.squares += self.count
        self.name = f"after {self.count}"


class Slotted:
    __slots__ = ("value",)


class Lion(torch.optim.Optimizer):
    """With a count that is no tensor, and an attribute of its own."""

    def __init__(self, weights):
        super().__init__(weights, {"lr": 0.01})
        self.steps = 0

    def step(self):
        self.steps += 1
        for weight in self.param_groups[0]["params"]:
            state = self.state[weight]
            state["step"] = state.get("step", 0) + 1
            state["mean"] = state.get("mean", torch.zeros_like(weight)).lerp(weight.grad, 0.1)
            weight.data -= 0.01 * state["mean"].sign() * state["step"]


def slotted() -> Slotted:
    value = Slotted()
    value.value = [1]
    return value


def counted():
    count = 0

    def call():
        nonlocal count
        count += 1
        return count

    return call


def learner(make) -> Pair:
    """Return a module with gradients and an optimizer of its weights."""
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    return Pair(module, make(module.parameters()))


def overlapping() -> list:
    array = np.arange(6.0)
    return [array, array[1:4], array.reshape(2, 3)[:, 1]]


def tied() -> list:
    weight = nn.Parameter(torch.randn(3))
    return [weight, {"same": weight}, weight.data[:2]]


EVERYWHERE = {
    "none": lambda: None,
    "numbers": lambda: (1, -0.0, float("nan"), 2 + 1j, True, 2**80, "text", b"\xff"),
    "numpy number": lambda: np.float32(0.1),
    "tensor": lambda: torch.randn(3, 2).T,
    "bfloat16": lambda: torch.randn(3).bfloat16(),
    "whole numbers": lambda: torch.arange(3),
    "learned": lambda: nn.Parameter(torch.randn(2)),
    "tied": tied,
    "array": lambda: np.asfortranarray(np.random.rand(3, 2)),
    "no number": lambda: np.zeros((0, 3), bool),
    "structured": lambda: np.ones(2, ppo.TRANSITION),
    "dates": lambda: np.array(["2026-01-01"], "datetime64[D]"),
    "objects": lambda: np.array([None, [1]], object),
    "overlapping": overlapping,
    "module": lambda: nn.ModuleDict({"a": nn.GRU(2, 2), "b": nn.Embedding(2, 2)}),
    "frozen": lambda: nn.Linear(2, 2).requires_grad_(False).eval(),
    "Adam": lambda: learner(torch.optim.Adam),
    "Adam by loop": lambda: learner(partial(torch.optim.Adam, foreach=False)),
    "SGD": lambda: learner(partial(torch.optim.SGD, lr=0.1, momentum=0.9)),
    "Lion": lambda: learner(Lion),
    "torch generator": lambda: torch.Generator().manual_seed(3),
    "numpy generator": lambda: np.random.default_rng(3),
    "old generator": lambda: np.random.RandomState(3),
    "python generator": lambda: random.Random(3),
    "own": Scale,
    "slots": slotted,
    "enum": lambda: Color.RED,
    "type": lambda: (torch.float32, torch.Size([2]), torch.device("cpu"), Scale, np.dtype("i4")),
    "collections": lambda: [deque([1], 2), Counter("ab"), OrderedDict(a=[]), defaultdict(list)],
    "set": lambda: ({1, "a"}, frozenset({2})),
    "dated": lambda: (datetime.datetime(2026, 1, 1), Path("here"), range(3), slice(2)),
    "function": lambda: (F.relu, slotted),
    "method": lambda: Scale().move,
    "built in": lambda: torch.relu,
    "batch": lambda: ppo.Batch(None, *(np.random.rand(2).astype(np.float32) for _ in range(4))),
}


def watched() -> torch.Tensor:
    weight = torch.zeros(2, requires_grad=True)
    weight.register_hook(slotted)
    return weight


def count_calls(module, inputs, output) -> None:
    module.calls = getattr(module, "calls", 0) + 1


def hooked_by_name(module: nn.Module) -> nn.Module:
    module.register_forward_hook(count_calls)
    return module


def hooked(module: nn.Module) -> nn.Module:
    calls = []
    module.register_forward_hook(lambda *_: calls.append(1))
    module.calls = calls
    return module


AT_FIRST = {"hooked": lambda: hooked_by_name(nn.Linear(2, 2))}  # later ones get another number
REFUSED = {
    "lambda": lambda: lambda x: x + 1,
    "closure": counted,
    "parametrized": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
    "hook": lambda: hooked(nn.Linear(2, 2)),
    "normed": lambda: nn.utils.weight_norm(nn.Linear(2, 2)),
    "gradient's hook": watched,
    "graph": lambda: torch.zeros(2, requires_grad=True) + 1,
    "compiled": lambda: torch.compile(nn.Linear(2, 2), backend="eager"),
    "one memory": lambda: [array := np.zeros(2), torch.from_numpy(array)],
    "iterator": lambda: (n for n in range(3)),
    "lock": threading.Lock,
}


def drawn(rng: random.Random, leaves: dict, depth: int = 2):
    kind = rng.choice(["leaf", "list", "dict", "tuple", "own"]) if depth else "leaf"
    if kind == "leaf":
        return leaves[rng.choice(list(leaves))]()
    parts = [drawn(rng, leaves, depth - 1) for _ in range(rng.randint(1, 3))]
    if kind == "own":
        scale = Scale()
        scale.part = parts
        return scale
    return {"list": list, "tuple": tuple, "dict": lambda _: dict(enumerate(parts))}[kind](parts)


def moved(value, passed: dict):
    """Return what a value becomes in an update; what can be changed is, in place, and once."""
    if id(value) not in passed:
        passed[id(value)] = value, value
        passed[id(value)] = value, _moved(value, passed)
    return passed[id(value)][1]


def _moved(value, passed: dict):
    if isinstance(value, Pair) and isinstance(value.second, torch.optim.Optimizer):
        module, optimizer = value
        if any(weight.requires_grad for weight in module.parameters()):
            optimizer.zero_grad()
            module(torch.randn(4, 2)).square().sum().backward()
            optimizer.step()
        return value
    if isinstance(value, list):
        value[:] = [moved(part, passed) for part in value]
    elif isinstance(value, dict):
        value.update({key: moved(part, passed) for key, part in value.items()})
    elif isinstance(value, tuple):
        parts = [moved(part, passed) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    elif isinstance(value, nn.Module):
        value.train(not value.training)
        for part in (*value.parameters(), *value.buffers()):
            moved(part, passed)
    elif isinstance(value, torch.Tensor) and value.is_floating_point():
        value.data.mul_(0.5).add_(torch.randn(()))
    elif isinstance(value, np.ndarray) and value.dtype == float:
        value += 1
    elif isinstance(value, torch.Generator):
        torch.rand(3, generator=value)
    elif isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
        value.random()
    elif isinstance(value, Scale):
        value.move()
        moved(vars(value).get("part"), passed)
    elif isinstance(value, Slotted):
        value.value = [*value.value, 2]
    elif isinstance(value, deque | set):
        (value.append if isinstance(value, deque) else value.add)(len(value) + 7)
    elif callable(value) and getattr(value, "__name__", "") in ("call", "move"):
        value()
    elif isinstance(value, (np.float32, Color)):
        return Color.BLUE if isinstance(value, Color) else value + np.float32(0.1)
    return value


class EditedRun(ppo.Run):
    """A run with attributes that its seed draws; its updates change them."""

    OF_RANK = (*ppo.Run.OF_RANK, "extras", "shared", "later")  # of which each draws other numbers

    def __init__(self, setup, ranks):
        super().__init__(setup, ranks)
        self.updates, self.extras, self.later = 0, {}, None
        self.extend({**EVERYWHERE, **AT_FIRST})

    def extend(self, leaves: dict) -> None:
        """Add values, some of which are there already."""
        rng = random.Random(self.args.seed * 10 + self.updates)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.args.seed)
            for number in range(4):
                self.extras[f"{self.updates} {number}"] = drawn(rng, leaves)
        self.shared = [rng.choice(list(self.extras.values())), self.extras.get("0 0")]

    def play(self, clock):
        updates = self.results.counters["updates"]
        if updates > self.updates:
            self.updates = updates
            passed = {}
            moved(self.extras, passed)
            moved(self.shared, passed)
            if updates == LATE:
                self.extend(EVERYWHERE)
                self.later = nn.Linear(3, 1), np.float32(updates)
                self.agent.power.requires_grad_(False)
                self.agent.critic[1] = nn.ReLU()
                self.games.max_years = 3
        return super().play(clock)


SETTINGS = {"num_envs": 3, "num_steps": 2, "max_years": 9, "num_minibatches": 1, "update_epochs": 1}
SETTINGS |= {"average_exponent": 1.0, "pool_interval": 20, "total_timesteps": 10**6}


def new_run(seed: int, kind: type = EditedRun) -> ppo.Run:
    args = make_args(seed=seed, **SETTINGS)
    setup = startup.Setup(ppo.LEARNER_SPEC, args, load_map("small"), torch.device("cpu"))
    return kind(setup, Ranks())


def written(run: ppo.Run) -> dict:
    """Return a run's checkpoint, without the policy."""
    folder = SimpleNamespace(save_checkpoint=lambda _, content: contents.append(content))
    contents, log = [], NoLog()
    log.folder = folder
    checkpoint_state.save(run, Ranks(), log)
    return checkpoints.from_bytes(contents[0])


def train_on(run: ppo.Run, updates: int) -> None:
    log = NoLog()
    log.stop = SimpleNamespace(received=False)
    while run.results.counters["updates"] < updates:
        ppo.advance(run, Ranks(), log)


@pytest.mark.parametrize("seed", slow_but((1, 2), range(1, 7)))
def test_a_resumed_run_is_the_run(seed):
    run = new_run(seed)
    run.seat(np.arange(run.games.num_games))
    before = checkpoint_state.pack(run, Ranks())[:2]
    checkpoint_state.check_run(run, Ranks())
    assert checkpoint_state.pack(run, Ranks())[:2] == before, "the check changes nothing"
    train_on(run, 3)
    saved = written(run)
    train_on(run, 6)
    again = new_run(seed)
    rules = again.games.rules
    checkpoint_state.restore(again, saved, Ranks())
    assert again.games.max_years == 3 and rules.max_years == 9, "others may hold these rules"
    train_on(again, 6)
    assert checkpoint_state.pack(run, Ranks())[:2] == checkpoint_state.pack(again, Ranks())[:2]


@pytest.mark.parametrize("kind", slow_but(("lambda", "hook", "graph", "one memory"), REFUSED))
def test_what_cannot_be_kept_is_named_before_training(kind):
    class Edited(ppo.Run):
        REBUILT = ppo.Run.REBUILT

        def __init__(self, setup, ranks):
            super().__init__(setup, ranks)
            self.opened = {"here": [REFUSED[kind]()]}

    run = new_run(1, Edited)
    with pytest.raises(UserError, match=r"run\.opened .*REBUILT"):
        checkpoint_state.check_run(run, Ranks())
    Edited.REBUILT = (*ppo.Run.REBUILT, "opened")
    checkpoint_state.check_run(run, Ranks())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_resumed_run_of_two_processes_is_the_run(seed, tmp_path, monkeypatch):
    fork_ranks(monkeypatch)

    def main(stop_after=None):
        RemovableHandle.next_id = 0  # as in a process of its own
        train_edited = partial(ppo.train, make_run=EditedRun, stop_after=stop_after)
        return SimpleNamespace(Args=ppo.Args, LEARNER_SPEC=ppo.LEARNER_SPEC, train=train_edited)

    settings = {"processes": 2, "seed": seed, "eval_interval": 300, "total_timesteps": 600}
    settings |= {"eval_bots": ["hold"], "anneal": False}
    full = train(tmp_path / "full", script=main(), **settings)
    part = train(tmp_path / "part", script=main(1), status=130, **settings)
    assert resume(part, script=main()) == 0
    one, two = (torch.load(run / "checkpoint.pt", weights_only=True) for run in (full, part))
    assert [differences(one[name], two[name]) for name in ("model", "run", "ranks")] == [[], [], []]
    assert metrics(full) == metrics(part)
