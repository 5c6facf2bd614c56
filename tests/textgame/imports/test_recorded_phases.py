"""Records of phases with units and orders, as the data of the games of the site droidippy are.

The file itself is not part of the project. The slow test looks for it beside the checkout, or where
the environment variable HUMAN_GAMES says.
"""

import json
import lzma
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from support.tables import read_table, read_text

from diplomacy_engine import Game, UserError, load_map
from diplomacy_engine.commands.cli import main
from diplomacy_engine.textgame.imports.games import read_games, read_pasted

STANDARD = load_map("standard")
ROW = json.loads(read_text(__file__, "record.json"))
BEGIN = ROW["phases"][0]["units"]


def changed(phase, **entries):
    phases = [dict(each) for each in ROW["phases"]]
    phases[phase].update(entries)
    return ROW | {"phases": phases}


@pytest.mark.parametrize("way", ["pasted", "file", "lines"])
def test_a_record_is_a_game(tmp_path, way):
    notes = []
    file = tmp_path / "games.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + (json.dumps(ROW) if way == "lines" else ""))
    if way == "pasted":
        games = [read_pasted(json.dumps(ROW), STANDARD, notes.append)]
    else:
        games = list(read_games(file, note=notes.append))
    assert len(games) == (2 if way == "lines" else 1)
    game = Game.from_saved_game(games[0])
    assert game.id == "7" and [phase["name"] for phase in game.history] == ["S1901M", "F1901M"]
    assert game.history[0]["orders"]["FRANCE"] == ["A MAR - SPA", "A PAR - BUR", "F BRE - MAO VIA"]
    assert not any("differs" in note for note in notes)
    assert sum("by land" in note for note in notes) == 3 * len(games)


def test_a_phase_that_a_record_lacks():
    notes = []
    rows = ROW["phases"]
    later = [rows[0], rows[1] | {"name": "S1902M", "centers": Game(STANDARD).centers}]
    game = Game.from_saved_game(
        read_pasted(json.dumps(ROW | {"phases": later}), STANDARD, notes.append)
    )
    assert [phase["name"] for phase in game.history] == ["S1901M", "S1902M"]
    assert "there is no record of F1901M: the game continues from S1902M" in notes


def test_a_record_that_differs_goes_on_from_its_position_and_keeps_the_centers():
    notes = []
    units = BEGIN | {"FRANCE": ["A SPA", "A GAS", "F BRE"], "ENGLAND": ["F ENG", "A WAL", "F NWG"]}
    game = Game.from_saved_game(
        read_pasted(json.dumps(changed(1, units=units)), STANDARD, notes.append)
    )
    assert "A GAS" in game.history[1]["state"]["units"]["FRANCE"]
    assert game.history[1]["state"]["centers"] == game.history[0]["state"]["centers"]
    assert "F1901M differs from our rules' result; the game continues from it" in notes


def test_a_record_with_other_centers_goes_on_from_them():
    notes = []
    centers = Game(STANDARD).centers
    taken = {power.lower(): codes for power, codes in centers.items()}
    taken["france"] = [*taken["france"], "SPA"]
    phases = [
        {"name": name, "units": BEGIN, "orders": {"ITALY": ["A ROM H"]}, "centers": owned}
        for name, owned in (("S1901M", centers), ("F1901M", taken), ("S1902M", taken))
    ]
    game = Game.from_saved_game(read_pasted(json.dumps({"phases": phases}), STANDARD, notes.append))
    owned = [phase["state"]["centers"]["FRANCE"] for phase in game.history]
    assert owned == [["BRE", "MAR", "PAR"]] * 2 + [["BRE", "MAR", "PAR", "SPA"]]
    assert notes == ["S1902M differs from our rules' result; the game continues from it"]


@pytest.mark.parametrize(("row", "sentence"), read_table(__file__, "a_bad_record_is_refused"))
def test_a_bad_record_is_refused(row, sentence, tmp_path, capsys):
    with pytest.raises(UserError) as error:
        read_pasted(json.dumps(row), STANDARD)
    assert sentence in str(error.value)
    file = tmp_path / "games.jsonl"
    file.write_text(json.dumps(row))
    assert main(["import-game", str(file)]) == 2
    assert sentence in capsys.readouterr().err


def human_games() -> Path | None:
    name = "human_games.jsonl.xz"
    path = os.environ.get("HUMAN_GAMES")
    beside = [folder / "shared" / name for folder in Path(__file__).resolve().parents]
    places = [Path(path)] if path else beside
    return next((place for place in places if place.is_file()), None)


def too_few_removals(phases, spring):
    """Tell whether a power gave too few removals in the winter before a spring of a record."""
    at = next(i for i, phase in enumerate(phases) if phase["name"] == spring)
    winter, centers = phases[at - 1], phases[at].get("centers", {})
    return winter["name"][-1] == "A" and any(
        len(units) - len(centers.get(power, ()))
        > sum(f"{unit} D" in winter["orders"].get(power, ()) for unit in units)
        for power, units in winter["units"].items()
        if len(units) > len(centers.get(power, ()))
    )


@pytest.mark.slow
@pytest.mark.skipif(human_games() is None, reason="the file of people's games is not here")
def test_games_of_people_come_out_as_recorded(tmp_path):
    """What differs: a winter with too few removals, for which the site has another rule; a phase
    that the record lacks; a winter of the record in which nobody can do anything."""
    with lzma.open(human_games(), "rt") as file:
        lines = file.readlines()
    copy, notes = tmp_path / "games.jsonl", []
    copy.write_text("".join(lines))
    counts, unexplained = Counter(), []
    for line, saved in zip(lines, read_games(copy, note=notes.append), strict=True):
        phases = json.loads(line)["phases"]
        counts["phases"] += len(saved["phases"]) - 1
        for note in notes:
            name = note.split()[0]
            if " differs from our rules' result" in note:
                why = "removals" if too_few_removals(phases, name) else "unexplained"
            elif re.match(r"there is no record of \w+[MR]:", note):
                why = "no record"
            elif " is skipped: " in note:
                why = "idle winter" if name[-1] == "A" else "unexplained"
            else:
                why = "by land" if "by land" in note else "illegal orders"
            counts[why] += 1
            unexplained += [(saved["id"], note)] if why == "unexplained" else []
        notes.clear()
    print(counts)
    assert not unexplained
    assert counts["phases"] > 20 * len(lines) and counts["no record"] * 200 < len(lines)
    assert counts["by land"] * 25 > len(lines)
