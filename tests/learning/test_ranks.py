"""Processes that train together: what they tell each other, and that two learn as one would."""

import copy
import multiprocessing
import os
import platform
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from support.edits import fork_ranks
from support.positions import ready, some_batch
from support.self_play import make_agent, make_args
from support.tables import read_text
from support.training import REPOSITORY
from torch import distributed

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, make_bot
from diplomacy_engine.learning import startup
from diplomacy_engine.learning.ranks import Distributed, Pipes, Ranks, TrainingError
from ppo_selfplay_diplomacy import Args, update


def together(function, count: int = 2) -> list:
    links = [multiprocessing.Pipe() for _ in range(count - 1)]
    ranks = [Ranks(Pipes([here for here, _ in links], first=True), 0, count)]
    ranks += [
        Ranks(Pipes([there], first=False), rank, count, rank)
        for rank, (_, there) in enumerate(links, 1)
    ]
    found = [None] * count

    def work(rank: int) -> None:
        try:
            found[rank] = function(ranks[rank])
        except Exception as error:
            found[rank] = error
        ranks[rank].close()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return found


@pytest.mark.parametrize("count", [2, 3])
def test_sums_are_the_same_everywhere(count):
    def work(ranks: Ranks):
        one = ranks.sum({"a": ranks.rank + 1, "b": np.array([[1.5, ranks.rank]]), "c": True})
        names = ranks.gather({"rank": ranks.rank})
        return one, names, ranks.union(np.array([ranks.rank, 7, ranks.rank]))

    for sums, names, union in together(work, count):
        assert sums["a"] == sum(range(1, count + 1)) and sums["c"] == count
        assert sums["b"].tolist() == [[1.5 * count, sum(range(count))]]
        assert names == [{"rank": rank} for rank in range(count)]
        assert union == {*range(count), 7}


def wait_for_the_others(ranks: Ranks) -> int:
    while not ranks.stop.value:
        time.sleep(0.01)
    return 7


def test_a_signal_to_one_process_stops_all(monkeypatch):
    fork_ranks(monkeypatch)
    ranks = Ranks.start(2, wait_for_the_others)
    (child,) = multiprocessing.active_children()
    ranks.stop.value = True
    child.join(60)
    ranks.close()
    assert child.exitcode == 7


@pytest.mark.parametrize(
    "share", [lambda row, rank: row % 3 % 2 == rank, lambda row, rank: (row >= 0) == (rank == 0)]
)
def test_a_step_is_that_of_the_whole_minibatch(share):
    """To rounding; also if one rank has nothing to learn from."""
    changes = {"num_minibatches": 1, "update_epochs": 3}
    first = make_agent("three")
    batch = some_batch(first, 31, "three")

    def learned(ranks: Ranks, rows: np.ndarray):
        agent = copy.deepcopy(first)
        run = ready(agent, **changes)
        # Adam would blow up rounding where a gradient is all but zero.
        run.optimizer = torch.optim.SGD(agent.parameters(), lr=0.01)
        figures = update(run, batch.take(rows), 0.01, ranks)
        weights = torch.cat([weight.detach().flatten() for weight in agent.parameters()])
        return weights, figures

    rows = np.arange(31)
    one, figures = learned(Ranks(), rows)
    before = torch.cat([weight.detach().flatten() for weight in first.parameters()])
    assert (one - before).abs().max() > 1e-3
    for two, same in together(lambda ranks: learned(ranks, rows[share(rows, ranks.rank)])):
        assert (one - two).abs().max() < 1e-6
        assert same == pytest.approx(figures, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_are_summed_once_a_step(to_none):
    def work(ranks: Ranks):
        weight, other = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
        optimizer = torch.optim.SGD([weight, other], 0.1)
        for step in range(3):
            optimizer.zero_grad(set_to_none=to_none)
            for part in range(2):
                (weight * (ranks.rank + 10 * part + 100 * step)).sum().backward()
            ranks.sum_gradients([weight, other])
            ranks.sum_gradients([torch.nn.Parameter(torch.ones(1))])  # of another network
            assert weight.grad.tolist() == [22 + 400 * step] * 2 and not other.grad.any()
            optimizer.step()
        weight.sum().backward()
        with pytest.raises(TrainingError, match="once before each step"):
            ranks.sum_gradients([weight, other])
        return True

    assert together(work) == [True, True]


def test_buffers_become_those_of_all():
    def work(ranks: Ranks):
        agent = torch.nn.BatchNorm1d(2)
        agent.running_mean += ranks.rank
        agent.num_batches_tracked += 5 * ranks.rank
        ranks.average_buffers(agent)
        return agent.running_mean.tolist(), agent.num_batches_tracked.item()

    assert together(work, 3) == [([1.0, 1.0], 0)] * 3


def test_ranks_out_of_step_are_noticed():
    def work(ranks: Ranks):
        weight = torch.nn.Parameter(torch.zeros(1000))
        return ranks.gather({"a": 1}) if ranks.rank else ranks.sum_gradients([weight])

    for error in together(work):
        assert isinstance(error, TrainingError)


def test_what_one_did_wrong_is_said_everywhere():
    def work(ranks: Ranks):
        return ranks.agree(make_bot, "nobody" if ranks.rank == 1 else "hold")

    for error in together(work):
        assert isinstance(error, UserError) and "there is no bot 'nobody'" in str(error)


def test_one_that_has_left_is_noticed():
    def work(ranks: Ranks):
        return None if ranks.rank == 1 else ranks.sum({"a": 1})

    error, _ = together(work)
    assert isinstance(error, TrainingError) and str(error) == "another rank has died"


def test_ranks_of_torchrun_leave_their_group_once(tmp_path):
    store = f"file://{tmp_path / 'store'}"
    distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    ranks = Ranks(Distributed())
    assert ranks.gather("all") == ["all"]
    with pytest.raises(ValueError, match="dense tensors only"):
        Distributed().add(torch.zeros(3, 2).T)
    ranks.close()
    ranks.close()
    assert not distributed.is_initialized()


def test_shares_of_the_games():
    shares = [Ranks(None, rank, 3).share(Args(num_envs=8, seed=5)) for rank in range(3)]
    assert sorted(share.num_envs for share in shares) == [2, 3, 3]
    assert shares[0].seed == 5 and len({share.seed for share in shares}) == 3
    assert Ranks().share(Args(seed=7)) == Args(seed=7)


def test_one_process_is_enough():
    ranks, value = Ranks(), np.arange(3)
    assert ranks.gather(value)[0] is value and ranks.sum({"a": 2, "b": value})["b"][2] == 2
    with pytest.raises(UserError, match="there is no bot 'nobody'"):
        ranks.agree(make_bot, "nobody")
    with pytest.raises(ValueError, match="invalid literal"):
        ranks.agree(int, "no")


STARTING = read_text(__file__, "starting.py.txt")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process")
@pytest.mark.slow
def test_started_processes_end_with_one_that_is_killed(tmp_path):
    """They hold its output open, so that reading it to the end waits for them."""
    script = tmp_path / "starting.py"
    script.write_text(textwrap.dedent(STARTING))
    options = {"env": os.environ | {"PYTHONPATH": str(REPOSITORY)}, "text": True}
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as process:
        assert process.stdout.readline().startswith("('hello', ")
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate(timeout=60)
    assert rest == "" and process.returncode == -signal.SIGKILL


def test_processes_share_the_gpus_and_ranks_of_torchrun_do_not(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr("diplomacy_engine.learning.ranks._try_gpu", lambda device: "a GPU")
    monkeypatch.setattr("diplomacy_engine.learning.ranks.usable_cores", lambda: 16)
    ranks = [Ranks(Pipes([], first=not rank), rank, 4, rank) for rank in range(4)]
    assert [rank.choose_device(True).index for rank in ranks] == [0, 1, 0, 1]
    said = capsys.readouterr().out.splitlines()
    assert said[2].startswith("rank 2 on cuda:0 (a GPU)") and "4 processor threads" in said[2]
    assert ranks[3].choose_device(False).type == "cpu"
    assert Ranks(Distributed(), 1, 4, 1).choose_device(True).index == 1
    with pytest.raises(UserError, match="none of the 2 GPUs is left for rank 2"):
        Ranks(Distributed(), 2, 4, 2).choose_device(True)


OLD_DRIVER = "The NVIDIA driver on your system is too old (found version 11040).\nPlease update"


def test_a_gpu_that_cannot_compute_is_one_sentence(monkeypatch, capsys):
    def set_device(device):
        raise RuntimeError(OLD_DRIVER)

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", set_device)
    with pytest.raises(UserError) as error:
        Ranks().choose_device(True)
    said = str(error.value)
    assert said.startswith("--cuda: cuda:0 cannot compute: The NVIDIA driver") and "\n" not in said

    def train(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    args = make_args(processes=1, eval_bots=("hold",))
    assert startup.main(ppo.LEARNER_SPEC, train, args) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "memory" in line]
    assert "memory is full" in said and "--num-envs" in said


LINUX = re.match(r"(\d+)\.(\d+)", platform.release()) if sys.platform == "linux" else None
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage").exists()
COLLAPSES = HUGE_PAGES and LINUX is not None and tuple(map(int, LINUX.groups())) >= (6, 1)


@pytest.mark.skipif(not COLLAPSES, reason="no Linux that collapses small pages into huge ones")
@pytest.mark.slow
def test_memory_moves_to_huge_pages_and_keeps_what_it_holds():
    code = read_text(__file__, "huge_pages.py.txt")
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert (run.stdout, run.stderr) == ("True\n", "")
