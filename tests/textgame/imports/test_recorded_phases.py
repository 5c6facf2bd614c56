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
from support.tables import read_text

from diplomacy_engine import Game, load_map
from diplomacy_engine.textgame.imports.games import read_games, read_pasted

STANDARD = load_map("standard")
ROW = json.loads(read_text(__file__, "record.json"))


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
