"""Several processes: what one does wrong, or a signal to one, is of all; torchrun's are the same.

That two train as they should, test_training.py shows by its run `rich`.
"""

import itertools
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys

import pytest
from support.training import (
    REPOSITORY,
    SETTINGS,
    STOPPED,
    differences,
    load,
    metrics,
    refused,
    state,
    train,
    write_config,
)

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import MapError, UserError
from diplomacy_engine.learning.ranks import TrainingError

CHANGES = {"num_envs": 9, "processes": 2}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}",
}


def torchrun(*words: object) -> subprocess.CompletedProcess:
    argv = [*TORCHRUN, *map(str, words)]
    options = {"capture_output": True, "text": True, "timeout": 600}
    return subprocess.run(argv, cwd=REPOSITORY, env=ENVIRONMENT, **options)


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


@pytest.mark.parametrize("kind", [UserError, MapError, TrainingError])
def test_processes_can_tell_each_other_of_errors(kind):
    error = kind("somewhere", ["a reason"]) if kind is MapError else kind("a reason")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == str(error)


def test_a_process_that_dies_ends_the_run(tmp_path, monkeypatch, capsys):
    config = write_config(tmp_path / "tiny.toml", **CHANGES)
    others = signal_others_in_step(monkeypatch, 40, signal.SIGKILL)
    argv = ["--config", config, "--runs-folder", str(tmp_path / "runs")]
    refused(argv, "another rank has died; the last checkpoint is intact", capsys=capsys)
    (run,) = (tmp_path / "runs").iterdir()
    assert len(others) == 1 and 200 <= load(run)["global_step"] < 600


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process")
def test_a_signal_to_one_process_stops_all_and_none_is_left(tmp_path, monkeypatch, capsys):
    """Each plays its part until the step is over; those that were started end with the first."""
    others = signal_others_in_step(monkeypatch, 30, signal.SIGTERM)
    run = train(tmp_path / "runs", status=STOPPED, **CHANGES)
    assert "continue it:\n" in capsys.readouterr().out
    saved = load(run)
    assert len(saved["ranks"]) == 2 and 0 < saved["global_step"] < 600
    assert [len(own["games"]["row_seed"]) for own in saved["ranks"]] == [4, 5]
    assert not multiprocessing.active_children()
    for process in others:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


@pytest.mark.slow  # torchrun, for tens of seconds
def test_ranks_of_torchrun_train_the_same(trained, tmp_path):
    """The sums of two are the same by pipes and by gloo; one rank speaks for both."""
    config = write_config(tmp_path / "rich.toml", **SETTINGS["rich"])
    words = "ppo_selfplay_diplomacy.py", "--config", config, "--runs-folder", tmp_path / "runs"
    done = torchrun(*words)
    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = (tmp_path / "runs").iterdir()
    assert done.stdout.count(f"run folder: {run}") == 1
    assert differences(state(run), state(trained("rich"))) == []
    assert metrics(run) == metrics(trained("rich"))
    done = torchrun(*words, "--num-envs", 1)
    assert done.stderr.count("error: --num-envs 1 is too few for 2 processes\n") == 1
