"""Weights & Biases gets every figure once, also from a run that was stopped and resumed."""

import json

import pytest
from support.waiting import until

import ppo_selfplay_diplomacy as ppo

TINY = "--map small --num-envs 8 --num-steps 4 --hidden 8 --num-layers 1 --threads 1"
TINY += " --eval-games 2 --save-games 0 --total-timesteps 120"


class FakeRun:
    """Stands in for a W&B run; a resumed one keeps its id."""

    def __init__(self, run_id: str | None, logged: list[dict]):
        self.id, self._logged, self.finished = run_id or "first", logged, False

    def define_metric(self, name: str, step_metric: str) -> None:
        assert (name, step_metric) == ("*", "global_step")

    def log(self, figures: dict) -> None:
        assert not self.finished
        self._logged.append(figures)

    def finish(self) -> None:
        self.finished = True


def test_every_figure_is_logged_once(tmp_path, monkeypatch, capsys):
    ids, logged = [], []

    def start(wandb, args, folder, wandb_id):
        ids.append(wandb_id)
        return FakeRun(wandb_id, logged)

    monkeypatch.setattr("diplomacy_engine.training.launch.start_wandb", start)
    assert ppo.main([*TINY.split(), "--runs-folder", str(tmp_path), "--track"]) == 0
    (folder,) = tmp_path.iterdir()
    assert ppo.main(["--resume", str(folder), "--total-timesteps", "200"]) == 0
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert logged == lines and lines[-1]["global_step"] >= 200
    assert ids == [None, "first"]


def test_without_an_account(tmp_path, monkeypatch, capsys):
    wandb = pytest.importorskip("wandb")

    def refuse(**settings):
        raise wandb.errors.UsageError("No API key configured.")

    monkeypatch.setattr(wandb, "init", refuse)
    assert ppo.main([*TINY.split(), "--runs-folder", str(tmp_path), "--track"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "--wandb-mode offline" in message


def test_offline_files_hold_the_figures(tmp_path, monkeypatch):
    """With W&B itself: a run, its resumption, and a file of each that `wandb sync` can upload."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    flags = "--track --wandb-mode offline --runs-folder"
    assert ppo.main([*TINY.split(), *flags.split(), str(tmp_path)]) == 0
    (folder,) = tmp_path.iterdir()
    (kept,) = (folder / "wandb").glob("offline-run-*/*.wandb")
    # W&B's own process may write a little after `finish` returns.
    until(lambda: b"eval/dumbbot/win" in kept.read_bytes(), 60)
    assert b"global_step" in kept.read_bytes() and b"eval/dumbbot/win" in kept.read_bytes()
    assert ppo.main(["--resume", str(folder), "--total-timesteps", "160"]) == 0
    files = list((folder / "wandb").glob("offline-run-*/*.wandb"))
    names = {path.name for path in files}  # run-ID.wandb: the resumed run is the same one
    assert len(files) == 2 and len(names) == 1
