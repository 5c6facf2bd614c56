"""What evaluations and tournaments print, write and show on the way."""

import csv
import json
import re
import shutil

import pytest
from support.tables import read_table

from diplomacy_engine._progress import Progress
from diplomacy_engine.commands import _matches
from diplomacy_engine.commands.cli import main
from diplomacy_engine.learning import checkpoints
from diplomacy_engine.players.policy.files import ready_policies
from diplomacy_engine.scoring.outcomes import FIGURES
from diplomacy_engine.textgame.game import Game
from diplomacy_engine.textgame.saved_game import read_saved_games

EVALUATE = "evaluate --map small --player dumbbot --against random --games 6 --max-years 5"
TOURNAMENT = "tournament --map three --players dumbbot random hold --games 9 --max-years 5"


def table(path) -> list[dict]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(words: str, folder) -> tuple[dict, list[dict], list[dict], list[dict]]:
    files = {name: folder / name for name in ("r.json", "r.csv", "g.csv", "g.jsonl")}
    flags = dict(zip(("--json", "--csv", "--per-game", "--save-games"), map(str, files.values())))
    assert main([*words.split(), *(word for pair in flags.items() for word in pair)]) == 0
    result = json.loads(files["r.json"].read_text())
    assert "per_game" not in result and not list(folder.glob(".*"))
    games = list(read_saved_games(files["g.jsonl"]))
    return result, table(files["r.csv"]), table(files["g.csv"]), games


@pytest.mark.parametrize(("words", "shown"), read_table(__file__, "what_commands_print"))
def test_what_commands_print(words, shown, capsys):
    assert main(words.split()) == 0
    assert shown in " ".join(capsys.readouterr().out.split())


def test_an_evaluation(tmp_path, capsys):
    result, figures, games, saved_games = run(f"{EVALUATE} --seed 3 --threads 2", tmp_path)
    shown = capsys.readouterr().out
    assert "dumbbot against random on map small: 6 games, seed 3; at most 5 years" in shown
    assert (result["games"], result["max_years"], result["greedy"]) == (6, 5, False)
    rows = set(re.findall(r"^(\w+(?: \w+)*?)  +[-\d]", shown, re.MULTILINE))
    same = {"elimination"} | ({"solo", "most_centers"} if "no game was drawn" in shown else set())
    assert rows == {figure.replace("_", " ") for figure in FIGURES if figure not in same}
    overall = result["overall"]["win"]
    value, low, high = (f"{100 * overall[key]:.1f}" for key in ("value", "low", "high"))
    assert f" {value}% ({low} to {high}) " in shown
    assert list(figures[0]) == ["player", "against", "power", "figure", "value", "low", "high"]
    assert len(figures) == 3 * len(FIGURES)
    for row in figures:
        part = result["by_power"][row["power"]] if row["power"] else result["overall"]
        assert (row["player"], row["against"]) == ("dumbbot", "random")
        assert {key: float(row[key]) for key in ("value", "low", "high")} == part[row["figure"]]
    assert len(games) == 6 and list(games[0]) == ["game", "power", *FIGURES]
    assert len(saved_games) == 6
    assert saved_games[1]["players"] == {"ENGLAND": "random", "RUSSIA": "dumbbot"}
    assert Game.from_saved_game(saved_games[0], max_years=9).map.name == "small"


def test_a_team_of_one_power_has_rows_of_its_own(tmp_path):
    teams = "--map three --teams ENGLAND+ITALY --player dumbbot --against random --max-years 2"
    result, figures, *_ = run(f"evaluate {teams} --games 2", tmp_path)
    found = {row["power"]: row["value"] for row in figures if row["figure"] == "centers_behind"}
    assert len(figures) == 6 * len(FIGURES) and len(found) == 6
    for name, part in result["by_team"].items():
        assert float(found[f"team {name}"]) == part["centers_behind"]["value"]


def test_a_tournament(tmp_path):
    result, figures, games, saved_games = run(f"{TOURNAMENT} --save-count 2", tmp_path)
    found = {(row["player"], row["against"], row["power"], row["figure"]): row for row in figures}
    assert len(found) == len(figures) == 3 * (1 + 4 * len(FIGURES)) + 6 * 2
    for name, part in result["players"].items():
        assert float(found[name, "", "", "rating"]["low"]) == part["rating"]["low"]
        italy = part["by_power"]["ITALY"]
        assert float(found[name, "", "ITALY", "win"]["high"]) == italy["win"]["high"]
    pair = result["cross_table"]["random"]["dumbbot"]
    assert float(found["random", "dumbbot", "", "above"]["value"]) == pair["above"]["value"]
    assert len(games) == 27 and list(games[0]) == ["game", "power", "player", *FIGURES]
    assert len(saved_games) == 2


THREE = "evaluate --map three --player random --against hold --games 4 --max-years 3"


@pytest.mark.parametrize(("words", "total"), [(EVALUATE, 6), (THREE, 6), (TOURNAMENT, 9)])
def test_progress(words, total, monkeypatch, capsys):
    """Of running games, too, so that it moves while the first ones are still played."""
    seen = []

    class Seen(Progress):
        def __init__(self, *args, **options):
            super().__init__(*args, **options, clock=lambda: 0.0)

        def update(self, step, **figures):
            seen.append((step, self.total, self.unit))
            super().update(step, **figures)

    monkeypatch.setattr(_matches, "Progress", Seen)
    assert main(words.split()) == 0
    steps = [step for step, _, _ in seen]
    assert steps == sorted(steps) and steps[-1] == total
    assert len(set(steps)) > 3
    assert {(of, unit) for _, of, unit in seen} == {(total, "games")}
    assert capsys.readouterr().err == ""  # before ten seconds, where there is no terminal


def test_a_command_reads_a_checkpoint_once(tmp_path, monkeypatch, capsys):
    """Though it says the map, which it has to fit, and is played."""
    read, paths = checkpoints.read, []
    monkeypatch.setattr(checkpoints, "read", lambda path: paths.append(str(path)) or read(path))
    files = [shutil.copy(ready_policies()[f"small-pure-{n}"], tmp_path / f"{n}.pt") for n in (1, 2)]
    words = f"evaluate --player greedy:{files[0]} --against {files[1]} --games 2 --max-years 1"
    assert main(words.split()) == 0, capsys.readouterr().err
    assert sorted(paths) == [str(file) for file in files]
