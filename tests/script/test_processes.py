"""Several processes: what one does wrong is of all; torchrun's are the same.

That two that are started as users' are train as they should, and that a signal to one stops all,
test_training.py shows by its run `rich`.
"""

import pickle
import signal

import pytest
from support import edits, training

from diplomacy_engine import MapError, UserError
from diplomacy_engine.learning.ranks import TrainingError

CHANGES = {"num_envs": 9, "processes": 2}


@pytest.mark.parametrize("kind", [UserError, MapError, TrainingError])
def test_processes_can_tell_each_other_of_errors(kind):
    error = kind("somewhere", ["a reason"]) if kind is MapError else kind("a reason")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == str(error)


def test_a_process_that_dies_ends_the_run(tmp_path, monkeypatch, capsys):
    config = training.write_config(tmp_path / "tiny.toml", **CHANGES)
    edits.fork_ranks(monkeypatch)
    others = training.signal_others_in_step(monkeypatch, 40, signal.SIGKILL)
    argv = ["--config", config, "--runs-folder", str(tmp_path / "runs")]
    reason = "killed by SIGKILL, perhaps for lack of memory; the last checkpoint is intact"
    training.refused(argv, f"another rank has died, {reason}", capsys=capsys)
    (run,) = (tmp_path / "runs").iterdir()
    assert len(others) == 1 and 200 <= training.load(run)["global_step"] < 600


@pytest.mark.slow
def test_more_processes_than_games_of_an_evaluation(tmp_path):
    """The last one, against `mcts`, has few: a rank without any has nothing to add."""
    run = training.train(tmp_path / "runs", processes=3, num_envs=9, total_timesteps=80)
    assert training.metrics(run)[-1]["eval/random/win"] >= 0


@pytest.mark.slow  # torchrun, for tens of seconds
def test_ranks_of_torchrun_train_the_same(trained, tmp_path):
    """The sums of two are the same by pipes and by gloo; one rank speaks for both."""
    config = training.write_config(tmp_path / "rich.toml", **training.SETTINGS["rich"])
    words = "ppo_selfplay_diplomacy.py", "--config", config, "--runs-folder", tmp_path / "runs"
    done = training.torchrun(*words)
    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = (tmp_path / "runs").iterdir()
    assert done.stdout.count(f"run folder: {run}") == 1
    assert training.differences(training.state(run), training.state(trained("rich"))) == []
    assert training.metrics(run) == training.metrics(trained("rich"))
    done = training.torchrun(*words, "--num-envs", 1)
    assert done.stderr.count("error: --num-envs 1 is too few for 2 processes\n") == 1
