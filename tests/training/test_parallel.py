"""Workers: processes that answer as one would."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from support.training import REPOSITORY

from diplomacy_engine.training.parallel import TrainingError, Workers, _Channel


def add(known: dict, one: np.ndarray, other: float) -> np.ndarray:
    return one + other + known.get("more", 0)


def whereabouts(known: dict, seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def fail(known: dict, number: int) -> None:
    if number == 1:
        raise ValueError(f"no {number}")


def die(known: dict, asking: int) -> None:
    if os.getpid() != asking:
        os._exit(1)


def write(known: dict, array: np.ndarray) -> np.ndarray:
    array += 1
    return array


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_answers_come_in_order(count, platform, monkeypatch):
    monkeypatch.setattr("sys.platform", platform)
    workers = Workers(count, {})
    for items in (0, 1, 2, 7):
        asked = [(np.arange(3.0), float(number)) for number in range(items)]
        for sizes in (None, np.arange(items)):
            found = workers.map(add, asked, sizes)
            assert [array.tolist() for array in found] == [[n, n + 1, n + 2] for n in range(items)]
    for known in ({"more": 10.0, "it": 2}, {"more": 20.0}, {"more": 20.0}, {}):
        workers.know(known)
        expected = 1.0 + known.get("more", 0.0)
        assert workers.known == known
        assert [array[0] for array in workers.map(add, [(np.zeros(1), 1.0)] * 4)] == [expected] * 4


def test_every_process_gets_its_share():
    workers = Workers(3, {})
    assert len(set(workers.map(whereabouts, [(0.01,)] * 3))) == 3
    large, *small = workers.map(whereabouts, [(0.01,)] * 5, [4, 1, 1, 1, 1])
    assert large == os.getpid() and large not in small and len(set(small)) == 2


def test_arrays_are_nobody_elses():
    workers = Workers(2, {})
    mine = np.zeros(5)
    _, first = workers.map(write, [(np.zeros(5),), (mine,)])
    workers.map(write, [(np.zeros(5),), (np.full(5, 7.0),)])
    assert mine.tolist() == [0] * 5 and first.tolist() == [1] * 5
    first += 1  # and may be written


def test_arrays_that_find_no_room_arrive_too(monkeypatch):
    monkeypatch.setattr(_Channel, "ROOM", 4096)
    workers = Workers(2, {})
    for size in (10, 5000, 10**6, 100):
        arrays = workers.map(add, [(np.arange(size), 1), (np.arange(size), 2)])
        assert all((array == np.arange(size) + 1 + n).all() for n, array in enumerate(arrays))


def test_an_error_in_a_worker_is_raised_here():
    workers = Workers(2, {})
    with pytest.raises(ValueError, match="no 1") as caught:
        workers.map(fail, [(0,), (1,)])
    assert "in fail" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="no 1"):
        workers.map(fail, [(1,), (0,)])
    assert workers.map(fail, [(0,), (2,)]) == [None, None]


def test_a_worker_that_died_is_noticed():
    workers = Workers(2, {})
    for _ in range(2):
        with pytest.raises(TrainingError, match="a worker process has died"):
            workers.map(die, [(os.getpid(),)] * 2)


def test_workers_end_with_the_last_who_could_ask_them():
    workers, later = Workers(2, {}), Workers(2, {})
    _, process = workers.map(whereabouts, [(0.0,)] * 2)
    os.kill(process, 0)
    del workers
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert len(later.map(whereabouts, [(0.0,)] * 2)) == 2


KILLED = """
import os, time
from diplomacy_engine.training.parallel import Workers

def whereabouts(known):
    time.sleep(0.1)
    return os.getpid()

workers = Workers(3, {})
print(*workers.map(whereabouts, [()] * 3), flush=True)
time.sleep(100)
"""


def test_workers_end_with_a_process_that_is_killed():
    """They hold its output open, so that reading it to the end waits for them."""
    command = [sys.executable, "-c", textwrap.dedent(KILLED)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert len(set(process.stdout.readline().split())) == 3
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate(timeout=60)
    assert rest == "" and process.returncode == -signal.SIGKILL
