"""Ctrl-C: answered at once, a slip of the finger is forgiven, a second one is obeyed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.waiting import until

from diplomacy_engine.learning import signals
from diplomacy_engine.learning.signals import StopSignals


def send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def usual_handlers():
    """Handle signals as Python does, whatever the shell or an earlier test has made of them."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def clock(monkeypatch):
    """Return the time, as a list of one number that a test may change."""
    now = [50.0]
    monkeypatch.setattr(signals.time, "monotonic", lambda: now[0])
    return now


def test_the_first_is_answered_and_a_slip_forgiven(clock, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stderr", os.fdopen(os.dup(2), "w"))
    with StopSignals() as stop:
        assert not stop.received
        send()
        assert stop.received
        assert "a checkpoint will be saved" in capfd.readouterr().err
        clock[0] += 0.9
        send()
        send(signal.SIGTERM)
        assert capfd.readouterr().err == ""  # once is enough
        clock[0] += 0.2
        send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            send()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_slip_is_forgiven_when_the_loop_is_over(clock, capfd):
    """Of several processes only one answers."""
    with StopSignals(announce=False) as stop:
        send()
    send()
    assert stop.received
    clock[0] += 1.1
    with pytest.raises(KeyboardInterrupt):
        send()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with StopSignals(announce=False):
        send(signal.SIGTERM)
        send()  # torchrun's processes may get both
    assert capfd.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_double_ctrl_c_keeps_the_checkpoint(tmp_path):
    """The whole trainer, interrupted twice within a second: it saves, and says how to go on."""
    flags = "--map small --num-envs 8 --num-steps 4 --hidden 8 --num-layers 1 --processes 1"
    flags += " --eval-interval 1000000 --save-interval 1000000 --capture-games 0"
    process = subprocess.Popen(
        [sys.executable, "ppo_selfplay_diplomacy.py", *flags.split(), "--runs-folder", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    told = {}
    for line in process.stdout:
        name, _, value = line.strip().partition(": ")
        told[name] = value
        if "curves" in told:
            break
    folder = Path(told["run folder"])
    assert told["curves"] == f"tensorboard --logdir {folder.parent}"
    until(lambda: (folder / "metrics.jsonl").is_file(), 120)  # it learns
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    # Python itself ends by the signal if it is about to end.
    assert process.returncode in (130, -signal.SIGINT), err
    assert f"continue it:\n  python ppo_selfplay_diplomacy.py --resume {folder}\n" in out
    assert (
        err.strip()
        == "stopping after this step; a checkpoint will be saved (Ctrl-C again: not saved)"
    )
    assert (folder / "checkpoint.pt").is_file()
