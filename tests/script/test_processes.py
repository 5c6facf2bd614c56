"""Two ranks of torchrun: the same weights and pool, counters, stopping, resuming, crashes.

One start of torchrun plays through all that goes well, for each start takes seconds.
"""

import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from support.training import (
    REPOSITORY,
    STOPPED,
    differences,
    load,
    main,
    metrics,
    refused,
    state,
    train,
    write_config,
)
from support.waiting import until

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.errors import UserError
from diplomacy_engine.learning.run_folder import RunFolder

CHANGES = {
    "num_envs": 9,
    "pool_size": 20,
    "pool_sampling": "pfsp",
    "target_kl": 0.05,
}

TOGETHER = """
import hashlib, json, os, signal, sys
from pathlib import Path
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import startup
from support import training

config, folder = sys.argv[1], Path(sys.argv[2])
ranks = startup.Ranks.of_torchrun()
close, ranks.close = ranks.close, lambda: None
startup.Ranks.of_torchrun = lambda: ranks
found, runs = {"own_decisions": 0}, []
pay_learner, make = ppo.pay_learner, ppo.Run.__init__


def digest(agent):
    parts = [weight.detach().numpy().tobytes() for weight in agent.parameters()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def keeping(run, *rest):
    make(run, *rest)
    runs.append(run)


def counting(run, result):
    found["own_decisions"] += sum(len(seen.decisions.game) for seen in run.buffer.seen[-1:])
    return pay_learner(run, result)


def main(*words):
    status = training.main([*words])
    ranks.gather(None)
    return status


def last():
    run = runs[-1]
    kept = run.pool.frozen_at, run.pool.games, run.pool.score
    pool = [
        [n, *(part[n] for part in kept), digest(run.pool.agents[n])] for n in run.pool.copies
    ]
    row_seed = int(run.games.snapshot()["row_seed"][0])
    return found | {
        "games": run.games.num_games, "weights": digest(run.agent), "pool": pool,
        "counters": dict(run.results.counters), "row_seed": row_seed,
    }


def only(folder):
    (run,) = folder.iterdir()
    return str(run)


ppo.Run.__init__, ppo.pay_learner = keeping, counting
assert main("--config", config, "--runs-folder", str(folder / "whole")) == 0
whole = last()

# Only the second rank is asked to stop, and does so in the middle of a step.
steps = 0
def stopping(*args):
    global steps
    steps += 1
    if steps == 25 and ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    return pay_learner(*args)
ppo.pay_learner = stopping
assert main("--config", config, "--runs-folder", str(folder / "stopped")) == 130
stopped_at = last()["counters"]["global_step"]
ppo.pay_learner = pay_learner
assert main("--resume", only(folder / "stopped")) == 0
resumed = last()["weights"]

refusals = [main("--config", config, "--num-envs", "1", "--runs-folder", str(folder / "bad"))]
refusals.append(main("--resume", str(folder / "one")))
result = {"whole": whole, "stopped_at": stopped_at, "resumed": resumed, "refusals": refusals}
(folder / f"rank{ranks.rank}.json").write_text(json.dumps(result))
close()
"""


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
ENVIRONMENT["PYTHONPATH"] = f"{REPOSITORY}:{REPOSITORY / 'tests'}"


def torchrun(script: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*TORCHRUN, str(script), *words],
        cwd=REPOSITORY,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Return a folder of runs by two ranks, what each rank found, and what was printed."""
    folder = tmp_path_factory.mktemp("ranks")
    config = write_config(folder / "tiny.toml", **CHANGES)
    few = ["--total-timesteps", "60", "--eval-games", "2"]
    assert main(["--config", config, "--runs-folder", str(folder / "alone"), *few]) == 0
    (folder / "one").symlink_to(next((folder / "alone").iterdir()))
    script = folder / "together.py"
    script.write_text(TOGETHER)
    done = torchrun(script, config, str(folder))
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in (0, 1)]
    return folder, found, done


@pytest.mark.slow  # torchrun, for tens of seconds
def test_all_ranks_have_the_same_weights_and_the_same_pool(together):
    _, (first, second), _ = together
    for name in ("weights", "pool", "counters"):
        assert first["whole"][name] == second["whole"][name], name
    assert len({weights for *_, weights in first["whole"]["pool"]}) > 3
    assert sum(games for _, _, games, _, _ in first["whole"]["pool"]) > 0


@pytest.mark.slow
def test_ranks_share_the_games_and_play_their_own(together):
    _, (first, second), _ = together
    assert (first["whole"]["games"], second["whole"]["games"]) == (4, 5)
    assert first["whole"]["row_seed"] != second["whole"]["row_seed"]


@pytest.mark.slow
def test_counters_are_those_of_all_ranks(together):
    folder, found, _ = together
    (run,) = (folder / "whole").iterdir()
    own = [rank["whole"]["own_decisions"] for rank in found]
    saved = load(run)
    assert min(own) > 100 and sum(own) == saved["global_step"] >= 600
    assert saved["run"]["results"]["counters"] == found[0]["whole"]["counters"]
    lines = metrics(run)
    sizes = [line["charts/batch_size"] for line in lines if "charts/batch_size" in line]
    assert sum(sizes) == saved["global_step"]  # every decision is learned from once
    games = sum(line.get("selfplay/games", 0) for line in lines)
    assert 0 < games <= saved["run"]["results"]["counters"]["games"]
    assert {"eval/random/win", "eval/hold/win"} <= set().union(*lines)


@pytest.mark.slow
def test_a_stop_of_one_rank_stops_all_and_resume_is_exact(together):
    folder, found, done = together
    ((whole,), (stopped,)) = ((folder / name).iterdir() for name in ("whole", "stopped"))
    assert done.stdout.count(f"--resume {stopped}") == 1
    assert found[0]["stopped_at"] == found[1]["stopped_at"] < 400
    assert found[0]["resumed"] == found[1]["resumed"] == found[0]["whole"]["weights"]
    assert differences(state(whole), state(stopped)) == []
    assert metrics(whole) == metrics(stopped)


@pytest.mark.slow
def test_wrong_use(together, capsys):
    folder, found, done = together
    assert found[0]["refusals"] == found[1]["refusals"] == [2, 2]
    assert done.stderr.count("error: --num-envs 1 is too few for 2 processes\n") == 1
    assert done.stderr.count("is a run of 1 process and cannot be continued by 2") == 1
    assert not (folder / "bad").exists()
    (run,) = (folder / "whole").iterdir()
    saved = load(run) | {"ranks": load(run)["ranks"] * 2}
    torch.save(saved, run / "checkpoint.pt")
    words = "a run of 4 processes", "torchrun --nproc_per_node=4"
    refused(["--resume", str(run)], *words, capsys=capsys)


CRASH = """
import os, signal, sys, time
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import startup
from support.training import main

steps, pay_learner, close = 0, ppo.pay_learner, startup.RunLog.close
def dying(*args):
    global steps
    steps += 1
    if steps == 40 and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return pay_learner(*args)
def slow(*rest):
    time.sleep(3)  # meanwhile torchrun tells the others to end
    close(*rest)
ppo.pay_learner, startup.RunLog.close = dying, slow
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow  # torchrun, for tens of seconds
def test_a_rank_that_dies_stops_the_others(tmp_path):
    script = tmp_path / "crash.py"
    script.write_text(textwrap.dedent(CRASH))
    config = write_config(tmp_path / "tiny.toml", **CHANGES)
    before = time.monotonic()
    done = torchrun(script, "--config", config, "--runs-folder", str(tmp_path / "runs"))
    assert time.monotonic() - before < 300 and done.returncode != 0
    assert "error: another rank has died; the last checkpoint is intact" in done.stderr
    assert f"exitcode  : -{signal.SIGKILL.value}" in done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert 200 <= load(run)["global_step"] < 600
    assert not list(run.rglob("*.tmp"))


@pytest.mark.slow  # torchrun, for tens of seconds
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process")
def test_ranks_stop_when_their_launcher_is_gone(tmp_path):
    """With a checkpoint; until then the folder is theirs, and nobody else goes on with it."""
    script, runs = REPOSITORY / "ppo_selfplay_diplomacy.py", tmp_path / "runs"
    config = write_config(tmp_path / "tiny.toml", **CHANGES | {"total_timesteps": 10**6})
    words = [str(script), "--config", config, "--runs-folder", str(runs)]
    with open(tmp_path / "out", "wb") as out:
        launcher = subprocess.Popen(
            [*TORCHRUN, *words], cwd=REPOSITORY, env=ENVIRONMENT, stdout=out, stderr=out
        )
    try:
        until(lambda: any(runs.glob("*/checkpoint.pt")), 300)
        (run,) = runs.iterdir()
        with pytest.raises(UserError, match="another process is training in"):
            RunFolder.open(run)
    finally:
        launcher.kill()
        launcher.wait()
    until(lambda: is_free(run), 120)
    step = load(run)["global_step"]
    assert f"{step:012d}.pt" in os.listdir(run / "checkpoints")
    assert "continue it:\n" in (tmp_path / "out").read_text()


def is_free(run: Path) -> bool:
    try:
        RunFolder.open(run).close()
    except UserError:
        return False
    return True


# --- Processes that the script starts itself ------------------------------------------------------


def signal_others_in_step(monkeypatch, number: int, *signals: int) -> list[int]:
    """Send signals to all started processes in step `number`; return the list of these."""
    steps, pay_learner, others = itertools.count(1), ppo.pay_learner, []

    def signalling(*args):
        if next(steps) == number:
            others.extend(child.pid for child in multiprocessing.active_children())
            for process, sent in itertools.product(others, signals):
                os.kill(process, sent)
        return pay_learner(*args)

    monkeypatch.setattr(ppo, "pay_learner", signalling)
    return others


def test_a_process_that_dies_ends_the_run(tmp_path, monkeypatch, capsys):
    config = write_config(tmp_path / "tiny.toml", **CHANGES | {"processes": 2})
    others = signal_others_in_step(monkeypatch, 40, signal.SIGKILL)
    argv = ["--config", config, "--runs-folder", str(tmp_path / "runs")]
    refused(argv, "another rank has died; the last checkpoint is intact", capsys=capsys)
    (run,) = (tmp_path / "runs").iterdir()
    assert len(others) == 1 and 200 <= load(run)["global_step"] < 600


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process")
def test_a_signal_to_one_process_stops_all_and_none_is_left(tmp_path, monkeypatch, capsys):
    """Each plays its part until the step is over; those that were started end with the first."""
    others = signal_others_in_step(monkeypatch, 30, signal.SIGTERM)
    run = train(tmp_path / "runs", status=STOPPED, **CHANGES | {"processes": 2})
    assert "continue it:\n" in capsys.readouterr().out
    saved = load(run)
    assert len(saved["ranks"]) == 2 and 0 < saved["global_step"] < 600
    assert not multiprocessing.active_children()
    for process in others:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
