"""Weights & Biases gets every figure once, also from a run that was stopped and resumed."""

import json
import sys
from pathlib import Path

import pytest
from support.training import main, refused
from support.waiting import until

TINY = "--map small --num-envs 8 --num-steps 4 --hidden 8 --num-layers 1 --processes 1 --track"
TINY += " --eval-games 2 --capture-games 0 --total-timesteps 120 --runs-folder"


class FakeRun:
    """Stands in for a W&B run; a resumed one keeps its id. `config` is what a sweep has set."""

    def __init__(self, told: dict, config: dict, logged: list[dict]):
        self.told, self.logged, self.finished = told, logged, False
        self.id, self.kept = told["id"] or "first", []
        self.config = json.loads(json.dumps(told["config"])) | config

    def define_metric(self, name: str, step_metric: str) -> None:
        assert (name, step_metric) == ("*", "global_step")

    def log(self, figures: dict) -> None:
        assert not self.finished
        self.logged.append(figures)

    def log_artifact(self, path: str, name: str, type: str) -> None:
        assert not self.finished and Path(path).name == "checkpoint.pt"
        self.kept.append((name, type))

    def finish(self, exit_code: int = 0) -> None:
        self.finished, self.exit_code = True, exit_code
        print("what W&B has to say in the end")


@pytest.fixture
def begin(monkeypatch):
    """Have W&B start fake runs, of a sweep's config if it is filled in; return both and a log."""
    wandb, runs, config, logged = pytest.importorskip("wandb"), [], {}, []

    def start(**options):
        runs.append(FakeRun(options, config, logged))
        return runs[-1]

    monkeypatch.setattr(wandb, "init", start)
    return runs, config, logged


def test_every_figure_is_logged_once(begin, tmp_path, monkeypatch, capsys):
    for name, value in (("TAGS", "try, again"), ("PROJECT", "mine")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    runs, _, logged = begin
    assert main([*TINY.split(), str(tmp_path)]) == 0
    (folder,) = tmp_path.iterdir()
    shown = capsys.readouterr().out  # the run's own table and commands are what one sees last
    assert shown.index("what W&B has to say") < shown.index("│ run folder")
    told, kept = runs[0].told, json.loads((folder / "args.json").read_text())
    assert told["tags"] == ["small", "try", "again"] and told["save_code"] is True
    assert (told["project"], told["name"]) == ("mine", folder.name)
    assert told["config"] == kept | {"eval_bots": ("random", "dumbbot"), "pool_bots": ()}
    assert main(["--resume", str(folder), "--total-timesteps", "200"]) == 0
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert logged == lines and lines[-1]["global_step"] >= 200
    assert [run.told["id"] for run in runs] == [None, "first"]
    for run in runs:
        assert run.kept == [("policy-first", "model")] and run.finished and run.exit_code == 0


def test_wandb_records_what_runs(begin, tmp_path, capsys):
    """As it would not where a sweep's command drops what is false, with args_no_boolean_flags."""
    runs, config, _ = begin
    config |= {"anneal": False, "hidden": 3, "num_layers": 1, "of_the_sweep": 5}
    argv = [*TINY.split(), str(tmp_path)]
    refused(argv, "anneal, hidden: ", "${args}", capsys=capsys)
    assert runs[0].exit_code == 2 and list(tmp_path.iterdir()) == []


def test_without_the_package_or_an_account(tmp_path, monkeypatch, capsys):
    wandb = pytest.importorskip("wandb")

    def refuse(**settings):
        assert 0 < settings["settings"].init_timeout < 60  # without a network it would try on
        raise wandb.errors.UsageError("No API key configured.")

    argv = [*TINY.split(), str(tmp_path)]
    monkeypatch.setattr(wandb, "init", refuse)
    refused(argv, "No API key", "WANDB_MODE=offline", capsys=capsys)
    monkeypatch.setitem(sys.modules, "wandb", None)
    refused(argv, "--track", "W&B", "[track]", capsys=capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_offline_files_hold_the_figures(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    wandb.teardown()  # it reads its environment once, and other tests have had it do so
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert main([*TINY.split(), str(tmp_path)]) == 0
    (folder,) = tmp_path.iterdir()
    (kept,) = (folder / "wandb").glob("offline-run-*/*.wandb")
    # W&B's own process may write a little after `finish` returns.
    until(lambda: b"eval/dumbbot/win" in kept.read_bytes(), 60)
    assert b"global_step" in kept.read_bytes()
    assert main(["--resume", str(folder), "--total-timesteps", "160"]) == 0
    names = [path.name for path in (folder / "wandb").glob("offline-run-*/*.wandb")]
    assert names == [kept.name] * 2  # run-ID.wandb: the resumed run is the same one
