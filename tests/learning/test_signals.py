"""Ctrl-C: answered at once, a slip of the finger is forgiven, a second one is obeyed."""

import os
import signal
import sys

import pytest
from support.training import STOPPED, train

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import signals
from diplomacy_engine.learning.run_folder import RunFolder
from diplomacy_engine.learning.signals import StopSignals


def send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def usual_handlers():
    """Handle signals as Python does, whatever the shell or an earlier test has made of them."""
    usual = {signal.SIGINT: signal.default_int_handler}
    usual |= dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def clock(monkeypatch):
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


def test_what_is_printed_after_a_terminal_has_hung_up(monkeypatch):
    here, there = os.openpty()
    with os.fdopen(there, "w") as terminal, StopSignals() as stop:
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(sys, name, terminal)
        os.close(here)
        with pytest.raises(OSError):
            print("lost", flush=True)
        send(signal.SIGHUP)
        print("no error", flush=True)
        assert stop.received
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_nohup_is_respected():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with StopSignals() as stop:
        send(signal.SIGHUP)
        assert not stop.received


def test_a_double_ctrl_c_keeps_the_checkpoint(tmp_path, monkeypatch, capfd):
    """The second one comes while the run saves; it says how to go on."""
    monkeypatch.setattr(sys, "stderr", os.fdopen(os.dup(2), "w"))
    monkeypatch.setattr(signals, "GRACE", 600)  # on a busy machine
    pay_learner, save = ppo.pay_learner, RunFolder.save_checkpoint

    def paying(*given):
        send()
        return pay_learner(*given)

    def saving(*given):
        send()
        return save(*given)

    monkeypatch.setattr(ppo, "pay_learner", paying)
    monkeypatch.setattr(RunFolder, "save_checkpoint", saving)
    run = train(tmp_path / "runs", status=STOPPED)
    out, err = capfd.readouterr()
    assert f"curves: tensorboard --logdir {run.parent}\n" in out
    assert f"--resume {run}\n" in out.partition("continue it:\n")[2]
    assert err.count("a checkpoint will be saved") == 1 == err.strip().count("\n") + 1
    assert (run / "checkpoint.pt").is_file()
