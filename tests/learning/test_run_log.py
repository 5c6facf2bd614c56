"""What a run's log leaves: TensorBoard's charts, texts and pictures, pages, and W&B's page."""

import json
import os
import re
import sys
from contextlib import closing
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from support.tables import read_table

from diplomacy_engine import evaluate_player, load_map, make_bot
from diplomacy_engine._progress import Progress
from diplomacy_engine.learning.evaluations import against_searches
from diplomacy_engine.learning.report import report
from diplomacy_engine.learning.run_folder import RunFolder
from diplomacy_engine.learning.run_log import RunLog, dashboard


def test_charts_are_golden(golden):
    """A line of a chart has one figure, of several runs."""
    layout = dashboard(["random", "runs/x.pt", "dumbbot"], ["ENGLAND", "ITALY"])
    golden("dashboard", json.dumps(layout, indent=1).splitlines())


def test_charts_by_seat_are_those_of_the_evaluations(tmp_path):
    """Powers that are all in one team are evaluated without teams."""
    game_map, bot = load_map("small").with_teams("ENGLAND+RUSSIA"), make_bot("hold")
    log, layouts = RunLog(RunFolder(tmp_path), Progress(100, 0), game_map), []
    log.writer.add_custom_scalars = layouts.append
    report = evaluate_player(game_map.contested(), bot, bot, 2, max_years=1, threads=1)
    with closing(log):
        log.begin(Args("small", eval_bots=("hold",)))
        log.evaluations({"hold": report}, 1, ["hold"], {})
    logged = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert len(layouts[0]["by seat"]) == 2
    for _, (name,) in layouts[0]["by seat"].values():
        assert sum(bool(re.search(name, tag)) for tag in logged) == 1


@dataclass
class Args:
    map: str = "three"
    config: str | None = None
    reward: str = "score"
    eval_bots: tuple = ()


class Wandb:
    """Stands in for a W&B run."""

    id = "x"

    def __init__(self):
        self.logged = []

    def define_metric(self, *names, **options): ...

    def log(self, figures):
        self.logged.append(figures)

    def log_artifact(self, *names, **options): ...

    def finish(self): ...


def test_a_report_s_chart_is_true_to_scale(tmp_path, monkeypatch):
    """Mermaid spaces the points of a line evenly, whenever the evaluations were; and the commit is
    what git says."""
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\necho abc-dirty\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    bot, file = make_bot("hold"), tmp_path / "metrics.jsonl"
    result = evaluate_player("small", bot, bot, 2, max_years=1, threads=1).result()
    wins = {100_000: 0.0, 200_000: 0.5, 1_000_000: 1.0}
    lines = ({"global_step": step, "eval/hold/win": share} for step, share in wins.items())
    file.write_text("\n".join(map(json.dumps, lines)))
    text = report("a run", [], {}, 1.0, file, {"hold": result})
    assert "(commit abc-dirty)" in text
    assert "0.1 --> 1\n" in text and "line [0.0, 71.9, 100.0]" in text


def test_the_best_policy_is_kept(tmp_path, capsys):
    """By wins against the last bot of every evaluation, not those of the last one alone.

    A log that is opened again knows the earlier ones.
    """
    hold, dumbbot = make_bot("hold"), make_bot("dumbbot")
    lost = evaluate_player("small", hold, dumbbot, 6, max_years=3, threads=1)

    def evaluate(player: str, step: int) -> int:
        report = evaluate_player("small", make_bot(player), hold, 6, max_years=3, threads=1)
        log = RunLog(RunFolder(tmp_path), Progress(100, 0), load_map("small"))
        reports = {"random": report, "hold": report, "lookahead": lost}
        with closing(log):
            log.evaluations(reports, step, ["random", "hold"], {"global_step": step})
        return torch.load(tmp_path / "best.pt")["global_step"]

    assert evaluate("hold", 1) == 1  # no win, and yet the best so far
    assert evaluate("dumbbot", 2) == 2
    with open(tmp_path / "metrics.jsonl", "a") as file:  # a folder may come from anybody
        file.write('{"eval/hold/win": [1]}\n"eval/hold/win"\n{"eval/hold/win": "x"\n')
    assert evaluate("hold", 3) == 2
    assert evaluate("dumbbot", 4) == 2  # as good, and later
    shown = capsys.readouterr().out.rpartition("4 decisions: wins ")[2]
    places = [shown.index(f"against {bot}") for bot in ("hold", "random", "lookahead")]
    assert places == sorted(places), "the bot that matters most is named first"
    places = [shown.index(f"win against {bot}") for bot in ("hold", "random", "lookahead")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "games", "searched"), read_table(__file__, "a_run_ends_with_searches")
)
def test_a_run_ends_with_searches(name, games, searched):
    """So many that they take about a minute; and on small it says what is the most."""
    args = SimpleNamespace(eval_bots=["hold"], eval_games=games)
    lines = []
    against_searches(args, load_map(name), SimpleNamespace(message=lines.append))
    (text,) = lines
    bots, *most = text.split("; ")
    assert bots.split(", ")[1:] == searched and bool(most) == (name == "small")


def test_sample_games_reach_tensorboard_the_run_folder_and_wandb(tmp_path, monkeypatch):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    html = SimpleNamespace(Html=lambda page, inject: f"html {page}")
    monkeypatch.setitem(sys.modules, "wandb", html)
    (tmp_path / "games").mkdir()
    wandb, hold = Wandb(), make_bot("hold")
    log = RunLog(RunFolder(tmp_path), Progress(100, 0), load_map("small"), wandb)

    def report(samples: int):
        bot = make_bot("dumbbot")
        return evaluate_player("small", bot, hold, 2, samples=samples, max_years=1, threads=1)

    with closing(log):
        log.begin(Args("small", None, "a|b", ("dumbbot", "random")))
        log.evaluations({"dumbbot": report(2), "random": report(0)}, 7, ["dumbbot"], {})
        log.evaluations({"dumbbot": report(0)}, 8, ["dumbbot"], {})
        log.flush()
    kept = {path.name for path in (tmp_path / "games").iterdir()}
    assert kept == {"000000000007.html", "000000000007.jsonl"}
    page = (tmp_path / "games" / "000000000007.html").read_text()
    assert "7 decisions" in page
    figures, shown, later = wandb.logged
    assert shown == {"global_step": 7, "games/replay": f"html {page}"}
    assert figures["global_step"] == 7
    assert {"eval/dumbbot/win", "eval/dumbbot/win_ENGLAND", "eval/random/win"} <= figures.keys()
    assert later["global_step"] == 8 and "eval/dumbbot/win" in later
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    tags = events.Tags()
    assert sorted(tags["images"]) == ["games/dumbbot/board", "games/dumbbot/centers"]
    (image,) = events.Images("games/dumbbot/board")
    assert image.step == 7 and image.encoded_image_string.startswith(b"\x89PNG")
    assert "custom_scalars__config__" in str(tags["tensors"])
    (settings,) = events.Tensors("settings/text_summary")
    text = settings.tensor_proto.string_val[0].decode()
    assert "| map | `small` | `three` |" in text and "| reward | `a\\|b` | `score` |" in text
    assert "| config |  |  |" in text and "flags: --map small" in text
