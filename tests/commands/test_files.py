"""What evaluations and tournaments write and show, and where their map comes from."""

import csv
import io
import json
import subprocess
import sys

import pytest
from support.commands import SCRIPT, refusal, write_checkpoint

import diplomacy_engine
from diplomacy_engine._progress import Progress
from diplomacy_engine.commands import _matches
from diplomacy_engine.commands.cli import main
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.saved_game import read_saved_games
from diplomacy_engine.players.loading import policy_map
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.vocabulary import vocabulary
from diplomacy_engine.scoring.outcomes import FIGURES

EVALUATE = "evaluate --map small --player dumbbot --against random --games 6 --max-years 5"
TOURNAMENT = "tournament --map three --players dumbbot random hold --games 9 --max-years 5"


def table(path) -> list[dict]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(words: str, folder) -> tuple[dict, list[dict], list[dict], list[dict]]:
    """Run a command with all its files; return JSON, CSV, rows of games, saved games."""
    files = {name: folder / name for name in ("r.json", "r.csv", "g.csv", "g.jsonl")}
    flags = dict(zip(("--json", "--csv", "--per-game", "--save-games"), map(str, files.values())))
    assert main([*words.split(), *(word for pair in flags.items() for word in pair)]) == 0
    result = json.loads(files["r.json"].read_text())
    assert "per_game" not in result and not list(folder.glob(".*"))
    games = list(read_saved_games(files["g.jsonl"]))
    return result, table(files["r.csv"]), table(files["g.csv"]), games


def test_the_files_of_an_evaluation(tmp_path, capsys):
    result, figures, games, saved_games = run(EVALUATE, tmp_path)
    assert list(figures[0]) == ["player", "against", "power", "figure", "value", "low", "high"]
    assert len(figures) == 3 * len(FIGURES)
    for row in figures:
        part = result["by_power"][row["power"]] if row["power"] else result["overall"]
        assert (row["player"], row["against"]) == ("dumbbot", "random")
        assert {key: float(row[key]) for key in ("value", "low", "high")} == part[row["figure"]]
    assert len(games) == 6 and list(games[0]) == ["game", "power", *FIGURES]
    mean = sum(float(row["centers"]) for row in games) / 6
    assert mean == pytest.approx(result["overall"]["centers"]["value"])
    assert len(saved_games) == 6
    assert saved_games[1]["players"] == {"ENGLAND": "random", "RUSSIA": "dumbbot"}


def test_the_files_of_a_tournament(tmp_path, capsys):
    result, figures, games, saved_games = run(f"{TOURNAMENT} --save-count 2", tmp_path)
    found = {(row["player"], row["against"], row["power"], row["figure"]): row for row in figures}
    assert len(found) == len(figures) == 3 * (1 + 4 * len(FIGURES)) + 6 * 2
    for name, part in result["players"].items():
        assert float(found[name, "", "", "rating"]["low"]) == part["rating"]["low"]
        assert (
            float(found[name, "", "ITALY", "win"]["high"])
            == part["by_power"]["ITALY"]["win"]["high"]
        )
    pair = result["cross_table"]["random"]["dumbbot"]
    assert float(found["random", "dumbbot", "", "above"]["value"]) == pair["above"]["value"]
    assert len(games) == 27 and list(games[0]) == ["game", "power", "player", *FIGURES]
    assert len(saved_games) == 2
    seated = {row["power"]: row["player"] for row in games if row["game"] == "2"}
    assert saved_games[1]["players"] == seated


@pytest.mark.parametrize("words", [EVALUATE, TOURNAMENT])
def test_files_that_cannot_be_meant(words, tmp_path, capsys):
    def refused(*more):
        return refusal(*words.split(), *more, capsys=capsys)

    page = tmp_path / "x.html"
    message = refused("--save-games", page)
    assert "saved games are a .jsonl file" in message and f"--output {page}" in message
    assert "name the same file" in refused("--json", tmp_path / "x", "--csv", tmp_path / "x")
    assert f"no folder {tmp_path / 'none'}" in refused("--per-game", tmp_path / "none" / "x.csv")
    assert list(tmp_path.iterdir()) == []


def test_players_stand_with_spaces_between(capsys):
    message = refusal("tournament", "--players", "dumbbot, random,hold", capsys=capsys)
    assert message == ("separate the players by spaces, not commas: --players dumbbot random hold")


@pytest.fixture
def three(tmp_path):
    """A checkpoint of the map three, and the script that plays it."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    own = load_map("three")
    about = {"map_name": own.name, "map_facts": own.facts, "vocabulary_hash": vocabulary(own).hash}
    return write_checkpoint(tmp_path / "run" / "checkpoint.pt", script, **about), script


def test_the_map_is_the_checkpoints(three, capsys):
    path, script = three
    assert policy_map(path, script) is load_map("three")
    assert policy_map("dumbbot") is None
    options = f"--games 3 --max-years 1 --script {script}"
    assert main(f"evaluate --player hold --against {path.parent} {options}".split()) == 0
    assert "on map three" in capsys.readouterr().out
    assert main(f"tournament --players hold {path} {options}".split()) == 0
    assert "on map three" in capsys.readouterr().out
    bots = "--player hold --against hold"
    assert main(f"evaluate {bots} --games 2 --max-years 1".split()) == 0
    assert "on map small" in capsys.readouterr().out
    words = f"evaluate --map small --player {path} {options}".split()
    assert "was trained on map 'three', not on 'small'" in refusal(*words, capsys=capsys)


def test_a_map_of_ones_own_comes_with_the_checkpoint(three, tmp_path):
    _, script = three
    facts = dict(load_map("three").facts) | {"name": "mine"}
    mine = write_checkpoint(tmp_path / "a.pt", script, map_name="mine", map_facts=facts)
    assert policy_map(mine, script).name == "mine"
    assert policy_map(mine, script).powers == load_map("three").powers
    for wrong, message in (
        ({}, "the checkpoint does not name the map that it holds"),
        ({"map_facts": 3}, "map_facts: expected object, got int"),
        ({"map_facts": {"name": "mine"}}, "does not hold its map: give it with --map"),
    ):
        other = write_checkpoint(tmp_path / "b.pt", script, map_name="mine", **wrong)
        with pytest.raises(UserError, match=rf"b\.pt.* {message}$"):
            policy_map(other, script)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("words", [EVALUATE, TOURNAMENT])
def test_progress(words, monkeypatch, capsys):
    """Of running games, too, so that it moves while the first ones are still played."""
    seen = []

    class Seen(Progress):
        def update(self, step, **figures):
            seen.append((step, self.total, self.unit))
            super().update(step, **figures)

    monkeypatch.setattr(_matches, "Progress", Seen)
    assert main(words.split()) == 0
    steps = [step for step, _, _ in seen]
    total = 6 if words == EVALUATE else 9
    assert steps == sorted(steps) and steps[-1] == total
    assert len(set(steps)) > 3
    assert {(of, unit) for _, of, unit in seen} == {(total, "games")}
    assert capsys.readouterr().err == ""  # short of ten seconds, where there is no terminal


def test_progress_vanishes_from_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with _matches.showing_progress(10) as report:
        report(4.7)
        assert "4 of 10 games" in sys.stderr.getvalue()
    assert sys.stderr.getvalue().rpartition("games")[2].count("\x1b[2K") >= 1


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == diplomacy_engine.__version__


@pytest.mark.parametrize("words", ["--help", "evaluate --help", EVALUATE])
def test_a_reader_that_has_seen_enough(words):
    """As `| head -n 1`: no traceback, and the status is that of a closed pipe, or 0 for a help."""
    command = [sys.executable, "-m", "diplomacy_engine", *words.split()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait() in ((141,) if words == EVALUATE else (0, 141))
    assert err == b""
