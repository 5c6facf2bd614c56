"""Weights & Biases gets every figure once, also from a run that was stopped and resumed."""

import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from support.training import main, refused
from support.waiting import until

from diplomacy_engine.learning import run_log

TINY = "--map small --num-envs 8 --num-steps 4 --hidden 8 --num-layers 1 --processes 1"
TINY += " --eval-games 2 --capture-games 0 --total-timesteps 120"


class FakeRun:
    """Stands in for a W&B run; a resumed one keeps its id."""

    def __init__(self, run_id: str | None, logged: list[dict]):
        self.id, self._logged, self.finished = run_id or "first", logged, False
        self.kept: list[tuple[str, str]] = []
        self.config: dict = {}

    def define_metric(self, name: str, step_metric: str) -> None:
        assert (name, step_metric) == ("*", "global_step")

    def log(self, figures: dict) -> None:
        assert not self.finished
        self._logged.append(figures)

    def log_artifact(self, path: str, name: str, type: str) -> None:
        assert not self.finished and Path(path).name == "checkpoint.pt"
        self.kept.append((name, type))

    def finish(self, exit_code: int = 0) -> None:
        self.finished, self.exit_code = True, exit_code
        print("what W&B has to say in the end")


def test_every_figure_is_logged_once(tmp_path, monkeypatch, capsys):
    ids, logged, runs = [], [], []

    def start(args, folder, wandb_id):
        ids.append(wandb_id)
        runs.append(FakeRun(wandb_id, logged))
        return runs[-1]

    monkeypatch.setattr("diplomacy_engine.learning.startup.start_wandb", start)
    assert main([*TINY.split(), "--runs-folder", str(tmp_path), "--track"]) == 0
    (folder,) = tmp_path.iterdir()
    shown = capsys.readouterr().out  # the run's own table and commands are what one sees last
    assert shown.index("what W&B has to say") < shown.index("│ run folder")
    assert main(["--resume", str(folder), "--total-timesteps", "200"]) == 0
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert logged == lines and lines[-1]["global_step"] >= 200
    assert ids == [None, "first"]
    assert [run.kept for run in runs] == [[("policy-first", "model")]] * 2


def test_without_the_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert main([*TINY.split(), "--runs-folder", str(tmp_path), "--track"]) == 2
    wanted = 'error: --track needs W&B: pip install "diplomacy-selfplay[track]"\n'
    assert capsys.readouterr().err == wanted


def test_without_an_account(tmp_path, monkeypatch, capsys):
    wandb = pytest.importorskip("wandb")

    def refuse(**settings):
        raise wandb.errors.UsageError("No API key configured.")

    monkeypatch.setattr(wandb, "init", refuse)
    monkeypatch.setattr(run_log, "unreachable", lambda server: "")
    assert main([*TINY.split(), "--runs-folder", str(tmp_path), "--track"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "WANDB_MODE=offline" in message


@pytest.fixture
def wandb_config() -> dict:
    """Return what W&B has for a run's settings that differs from those it is told, to fill in."""
    return {}


@pytest.fixture
def wandb_runs(wandb_config, monkeypatch) -> list[tuple[FakeRun, dict]]:
    """Have W&B start fake runs; return these, and with what each was started."""
    wandb, runs = pytest.importorskip("wandb"), []

    def start(**options):
        runs.append((FakeRun(options["id"], []), options))
        runs[-1][0].config = json.loads(json.dumps(options["config"])) | wandb_config
        return runs[-1][0]

    monkeypatch.setattr(wandb, "init", start)
    monkeypatch.setattr(run_log, "unreachable", lambda server: "")
    return runs


def test_what_wandb_is_told(wandb_runs, tmp_path, monkeypatch):
    for name, value in (("TAGS", "try, again"), ("PROJECT", "mine")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    flags = ["--track", "--runs-folder", str(tmp_path)]
    assert main([*TINY.split(), *flags]) == 0
    ((run, told),) = wandb_runs
    (folder,) = tmp_path.iterdir()
    assert told["tags"] == ["small", "try", "again"] and told["save_code"] is True
    assert (told["project"], told["name"]) == ("mine", folder.name) and run.exit_code == 0
    assert told["config"] == json.loads((folder / "args.json").read_text()) | {
        "eval_bots": ("random", "dumbbot"),
        "pool_bots": (),
    }


def test_wandb_records_what_runs(wandb_runs, wandb_config, tmp_path, capsys):
    """As it would not where a sweep's command drops what is false, with args_no_boolean_flags."""
    wandb_config |= {"anneal_ent": False, "hidden": 3, "num_layers": 1, "of_the_sweep": 5}
    flags = ["--track", "--runs-folder", str(tmp_path)]
    refused([*TINY.split(), *flags], "anneal_ent, hidden: ", "${args}", capsys=capsys)
    assert wandb_runs[0][0].exit_code == 2 and list(tmp_path.iterdir()) == []


def test_without_a_network(tmp_path, monkeypatch, capsys):
    """One sentence, soon, and no folder; a name that nobody knows is such a network."""
    pytest.importorskip("wandb")
    monkeypatch.setattr(run_log, "unreachable", lambda server: "no answer within 10 seconds")
    assert main([*TINY.split(), "--runs-folder", str(tmp_path), "--track"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "W&B cannot be reached at http" in message
    assert "no answer within 10 seconds" in message and "WANDB_MODE=offline" in message
    assert list(tmp_path.iterdir()) == []


def test_servers_that_answer_and_others():
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def log_message(self, *_): ...

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        assert run_log.unreachable(address) == ""
        server.shutdown()
    assert "refused" in run_log.unreachable(address)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        reason = run_log.unreachable(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.5)
        assert reason and time.monotonic() - begin < 5


def test_offline_files_hold_the_figures(tmp_path, monkeypatch):
    """With W&B itself: a run, its resumption, and a file of each that `wandb sync` can upload."""
    wandb = pytest.importorskip("wandb")
    wandb.teardown()  # it reads its environment once, and other tests have had it do so
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_MODE", "offline")
    flags = "--track --runs-folder"
    assert main([*TINY.split(), *flags.split(), str(tmp_path)]) == 0
    (folder,) = tmp_path.iterdir()
    (kept,) = (folder / "wandb").glob("offline-run-*/*.wandb")
    # W&B's own process may write a little after `finish` returns.
    until(lambda: b"eval/dumbbot/win" in kept.read_bytes(), 60)
    assert b"global_step" in kept.read_bytes() and b"eval/dumbbot/win" in kept.read_bytes()
    assert main(["--resume", str(folder), "--total-timesteps", "160"]) == 0
    files = list((folder / "wandb").glob("offline-run-*/*.wandb"))
    names = {path.name for path in files}  # run-ID.wandb: the resumed run is the same one
    assert len(files) == 2 and len(names) == 1
