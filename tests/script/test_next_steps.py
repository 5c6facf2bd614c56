"""What a run prints at its end can be pasted: each command does what the line above it says."""

import itertools
import json
import re
import shlex
import sys
from pathlib import Path
from urllib.request import url2pathname

import pytest
from support.training import STOPPED, is_clock, main, metrics, stop_in_step, train

import diplomacy_engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.commands import cli
from diplomacy_engine.learning import settings
from diplomacy_engine.learning.run_folder import RunFolder
from diplomacy_engine.learning.run_log import dashboard, next_steps
from diplomacy_engine.rules.game_rules import GameRules
from diplomacy_engine.rules.map import load_map
from diplomacy_learners import exploit


def told(text: str) -> dict[str, list[str]]:
    lines = text.splitlines()
    return {
        above.removesuffix(":"): shlex.split(line)
        for above, line in itertools.pairwise(lines)
        if above.endswith(":")
    }


@pytest.mark.slow
def test_the_commands_of_a_run_that_was_stopped(tmp_path, monkeypatch, capsys):
    """By a signal; the folder's name has a space, and its run goes on to its end when asked."""
    stop_in_step(monkeypatch, 40)
    run = train(tmp_path / "my runs", status=STOPPED, eval_interval=250, capture_games=1)
    found = told(capsys.readouterr().out)
    assert list(found) == [
        "measure how strong it is",
        "play against it",
        "measure how far it can be exploited (docs/learning.md says what to expect)",
        "look at its last sample games",
        "continue it",
    ]
    *_, url = found["look at its last sample games"]
    page = Path(url2pathname(url.removeprefix("file://")))
    assert page == max((run / "games").glob("*.html")).resolve()
    words = found["measure how strong it is"]
    assert words[:3] == ["python", "-m", "diplomacy_engine"]
    assert cli.main([*words[3:], "--games", "2"]) == 0
    assert f"{run.name} against dumbbot" in capsys.readouterr().out
    words = found["play against it"]
    assert cli.parse(words[3:])[1].against == (str(run),)
    words = found[[*found][2]]
    args = exploit.read_args(words[3:])
    assert words[2] == "diplomacy_learners.exploit" and args.pool_bots == (str(run),)
    words = found["continue it"]
    assert main(words[words.index("--resume") :]) == 0
    steps = told(capsys.readouterr().out)
    assert "continue it" not in steps  # it has made all its decisions
    report = (run / "report.md").read_text()
    assert f"diplomacy-selfplay {diplomacy_engine.__version__}" in report
    for what, words in steps.items():
        assert f"{what.capitalize()}:\n\n    {shlex.join(words)}" in report
    assert f"# {run.name}" in report and "--eval-interval 250" in report
    assert "Games of at most 6 years, then a draw, with" in report
    last = [line for line in metrics(run) if "eval/random/win" in line]
    assert len(last) > 1 and f"| {last[-1]['global_step']:,} | " in report
    assert f"{100 * last[-1]['eval/random/win']:.1f}% (" in report
    names = set().union(*metrics(run))
    for charts in dashboard(["random", "hold"], ["ENGLAND", "RUSSIA"]).values():
        for _, (name,) in charts.values():  # TensorBoard has something to show
            assert is_clock(name.strip("^$")) or any(re.search(name, logged) for logged in names)


def test_paths_below_the_current_folder_are_short(tmp_path, monkeypatch, capsys):
    """And a flag that gives the script's own default in place of the file's is among those that
    train the run again."""
    monkeypatch.chdir(tmp_path)
    flags = "--weak-seats", str(ppo.Args.weak_seats)
    run = train(tmp_path / "runs", *flags, total_timesteps=60, weak_seats=0.5)
    shown = capsys.readouterr().out
    again = re.search(r"Train it again:\n\n    (.+)", (run / "report.md").read_text())[1]
    words = itertools.dropwhile(lambda word: word != "--config", shlex.split(again))
    args = json.loads((run / "args.json").read_text())
    assert json.loads(json.dumps(vars(settings.parse_args(ppo.Args, [*words])))) == args
    assert f"run folder: runs/{run.name}\n" in shown and "--logdir runs\n" in shown
    assert f"runs/{run.name}" in told(shown)["play against it"]


def test_what_a_match_of_the_policy_needs(tmp_path, monkeypatch, golden):
    """A learner of the user's own is named, and so are teams, and rules other than the usual."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    run, lines = RunFolder(tmp_path / "a run"), []
    assert next_steps(run, resume=True) == {}  # nothing has been saved
    run.path.mkdir()
    run.checkpoint.touch()
    teams = GameRules(load_map("three").with_teams("ENGLAND+ITALY"))
    other = GameRules(load_map("small"), max_years=9, year_limit="truncate")
    script, torchrun = "ppo_selfplay_diplomacy.py", {"TORCHELASTIC_RUN_ID": "x"}
    for called, player, rules, variables in (
        (script, "my learner.py:runs/x", teams, {}),
        ("/opt/venv/bin/diplomacy-train", None, other, {}),
        (script, None, None, torchrun | {"LOCAL_WORLD_SIZE": "2"}),
    ):
        monkeypatch.setattr(sys, "argv", [called])
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        steps = next_steps(run, resume=True, player=player, rules=rules)
        lines += [called, *(f"{what}: {command}" for what, command in steps.items())]
        cli.parse(shlex.split(steps["play against it"])[3:])
    golden("next steps", lines)
