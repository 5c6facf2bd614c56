"""Tiny runs of the trainer, and what they leave."""

import itertools
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from support.tables import read_text
from torch import nn

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import (
    checkpoint_state,
    checkpoints,
    evaluations,
    pickling,
    registry,
    settings,
    startup,
)

torch.set_num_threads(1)  # as a run does
REPOSITORY = Path(__file__).parents[2]
# Settings of tiny runs: those of all, what two kinds have besides, and one that learns to win.
RUNS = tomllib.loads(read_text(__file__, "runs.toml"))
TINY, LEARNS = RUNS["tiny"], RUNS["learns"]
SETTINGS = {name: RUNS[name] for name in ("plain", "rich")}
PLAIN = (
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
    type,
    torch.Tensor,
    torch.device,
    FunctionType,
)
STOPPED = 130  # exit status of a run that was stopped before its end


def main(argv: list[str], script: ModuleType = ppo) -> int:
    """Run a script in this process, as its command line does; return the exit status."""
    try:
        args = settings.parse_args(script.Args, argv)
    except SystemExit as end:
        return end.code
    return startup.main(script.LEARNER_SPEC, script.train, args)


def torchrun(*words: object, processes: int = 2) -> subprocess.CompletedProcess:
    argv = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    argv += [f"--nproc_per_node={processes}", *map(str, words)]
    paths = f"{REPOSITORY}:{REPOSITORY / 'tests'}"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    options = {"capture_output": True, "text": True, "timeout": 600}
    return subprocess.run(argv, cwd=REPOSITORY, env=environment, **options)


def command(script: ModuleType, argv: list[str]) -> int:
    """Run a command with flags of its own in this process; return the exit status."""
    try:
        return script.main(settings.parse_args(script.Args, argv))
    except SystemExit as end:
        return end.code


def write_config(path: Path, **changes) -> str:
    """Write a settings file of a tiny run; return its path."""
    seats = {} if "teams" in changes else {"learner_seats": 1}  # with teams it has no effect
    settings = seats | TINY | changes
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
    return str(path)


def train(folder: Path, *flags: str, script: ModuleType = ppo, status: int = 0, **changes) -> Path:
    """Train in a new run folder below `folder`; return the run folder."""
    folder.mkdir(exist_ok=True)
    before = set(folder.iterdir())
    config = write_config(folder.parent / f"{folder.name}.toml", **changes)
    assert main(["--config", config, "--runs-folder", str(folder), *flags], script) == status
    (run,) = set(folder.iterdir()) - before
    return run


def resume(run: Path, *flags: str, script: ModuleType = ppo) -> int:
    return main(["--resume", str(run), *flags], script)


def load(run: Path) -> dict:
    """Return the checkpoint of a run; `run` and `ranks` hold attributes by name, see `opened`."""
    saved = checkpoints.read(run / "checkpoint.pt")
    return opened(saved) if "run" in saved else dict(saved)  # what imitates has no run


class Anew(dict):
    """Stands in for what a run makes anew."""

    def __missing__(self, key: str):
        kind = str(key).partition(" ")[0]
        # The class of a parametrized layer; how one is compiled.
        if key[0] == ".":  # of a script of one's own
            raise KeyError(key)
        others = {"class": type("Layer", (nn.Module,), {}), "compiled": lambda method: method}
        return self.setdefault(key, others.get(kind) or SimpleNamespace(name=key))


def opened(saved: checkpoints.Checkpoint) -> dict:
    """Return a checkpoint with dictionaries in place of objects, and of modules their weights."""
    script, ranks = registry.of_checkpoint(saved).args_class.__module__, []
    names = {f".{name}": part for name, part in vars(sys.modules[script]).items()}
    for rank in range(len(saved["ranks"])):
        anew = Anew(names, game_map=saved.map)
        attributes, generators = checkpoint_state.unpack(saved, rank, anew, "cpu")
        shared = pickling.loads(saved["run"].numpy().tobytes(), anew, "cpu", "cpu")
        own = {name: part for name, part in attributes.items() if name not in shared}
        ranks.append(_view(own | {"generators": generators}))
    return dict(saved) | {"run": _view(shared), "ranks": ranks}


def _view(value):
    if isinstance(value, dict):
        return {name: _view(part) for name, part in value.items()}
    if isinstance(value, nn.Module | torch.optim.Optimizer):
        return _view(dict(value.state_dict()))
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        columns = {name: torch.from_numpy(value[name].copy()) for name in value.dtype.names or ()}
        return columns or torch.from_numpy(value.copy())
    if isinstance(value, list | tuple):
        fields = getattr(value, "_fields", None)
        parts = [_view(part) for part in value]
        return dict(zip(fields, parts)) if fields else parts
    if isinstance(value, PLAIN):
        return value
    _, args, *state = value.__reduce_ex__(2)
    return _view(state[0] if state and state[0] is not None else list(args[1:]))


def is_clock(name: str) -> bool:
    return name in ("charts/decisions_per_second", "minutes") or name.startswith("timing/")


def metrics(run: Path) -> list[dict]:
    """Return the lines of metrics.jsonl without what depends on the clock.

    All of every run is finite: W&B keeps a NaN for good in a summary by which a sweep may rank.
    """
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert all(math.isfinite(value) for line in lines for value in line.values())
    return [{name: line[name] for name in line if not is_clock(name)} for line in lines]


def events(run: Path) -> list[tuple[int, str, float]]:
    """Return the scalars of all TensorBoard files together, without what depends on the clock."""
    loaders = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    proto = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    found = []
    for path in run.glob("events.out.tfevents*"):
        for data in loaders.RawEventFileLoader(str(path)).Load():
            event = proto.Event.FromString(data)
            for value in event.summary.value:
                if not is_clock(value.tag):
                    found.append((event.step, value.tag, value.simple_value))
    return sorted(found)


def games(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "games").iterdir()}


def files(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def differences(one, two, where: str = "") -> list[str]:
    """Say where two checkpoints differ, in type or in any bit."""
    if type(one) is not type(two):
        return [f"{where}: {type(one).__name__}, {type(two).__name__}"]
    if isinstance(one, torch.Tensor):
        same = one.dtype == two.dtype and one.shape == two.shape
        return [] if same and one.numpy().tobytes() == two.numpy().tobytes() else [where]
    if isinstance(one, dict):
        if list(one) != list(two):
            return [f"{where}: keys {sorted(set(one) ^ set(two), key=str)}"]
        return [d for key in one for d in differences(one[key], two[key], f"{where}/{key}")]
    if isinstance(one, (list, tuple)):
        if len(one) != len(two):
            return [f"{where}: length {len(one)}, {len(two)}"]
        pairs = enumerate(zip(one, two))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{where}/{i}")]
    return [] if one == two or (one != one and two != two) else [f"{where}: {one}, {two}"]


def state(run: Path) -> dict:
    """Return the checkpoint without clocks, file sizes and the names of folders."""
    saved = load(run)
    for name in ("seconds", "files", "wandb_id", "next_hook"):
        del saved[name]
    for name in ("resume", "runs_folder", "config"):
        del saved["args"][name]
    return saved


def assert_same_run(one: Path, two: Path) -> None:
    assert differences(state(one), state(two)) == []
    assert metrics(one) == metrics(two)
    assert events(one) == events(two)
    assert games(one) == games(two)


def stop_in_step(monkeypatch, number: int, script: ModuleType = ppo) -> None:
    """Have the process asked to stop in the env step of that number; learners play ppo's."""
    steps, pay_learner = itertools.count(1), script.pay_learner

    def stopping(*args):
        if next(steps) == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return pay_learner(*args)

    monkeypatch.setattr(script, "pay_learner", stopping)


def stop_in_evaluation(monkeypatch, number: int, sent: int = signal.SIGTERM) -> None:
    """Have the process asked to stop as an evaluation begins to play a bot, the one so numbered."""
    bots, evaluate_player = itertools.count(1), evaluations.evaluate_player

    def stopping(*args, **options):
        if next(bots) == number:
            os.kill(os.getpid(), sent)
        return evaluate_player(*args, **options)

    monkeypatch.setattr(evaluations, "evaluate_player", stopping)


def signal_others_in_step(monkeypatch, number: int, sent: int) -> list[int]:
    """Send a signal to all started processes in step `number`; return the list of these."""
    steps, pay_learner, others = itertools.count(1), ppo.pay_learner, []

    def signalling(*args):
        if next(steps) == number:
            others.extend(child.pid for child in multiprocessing.active_children())
            for process in others:
                os.kill(process, sent)
        return pay_learner(*args)

    monkeypatch.setattr(ppo, "pay_learner", signalling)
    return others


def refused(argv: list[str], *words: str, capsys, script: ModuleType = ppo) -> str:
    """Check that a command line ends in exit status 2, naming `words`; return what is said.

    That is one sentence of ours, or tyro's box.
    """
    capsys.readouterr()
    status = main(argv, script)
    err = capsys.readouterr().err
    err = "".join(line for line in err.splitlines(True) if not line.startswith("compiling the "))
    assert status == 2, err
    said = " ".join(err.replace("│", " ").split())  # a box breaks lines
    if not err.startswith(("╭", " ")):
        assert err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n"), err
        assert len(err) < 500
    for word in words:
        assert word in said, (word, said)
    return said
