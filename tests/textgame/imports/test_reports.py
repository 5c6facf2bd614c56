"""Reports of other people's games: their headings, wordings and marks, and what is told of them.

A form that is not understood is refused with its line: never do two phases become one, or one
power's orders another's.
"""

import contextlib
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judge import judge_history
from support.tables import read_table

from diplomacy_engine import Game, Map, UserError, load_map
from diplomacy_engine.commands.cli import main
from diplomacy_engine.play.file import read_session
from diplomacy_engine.rules.names import power_called
from diplomacy_engine.textgame.imports.games import read_pasted
from diplomacy_engine.textgame.imports.headings import HeadingReader
from diplomacy_engine.textgame.imports.order_blocks import read_report
from diplomacy_engine.textgame.imports.webdiplomacy import read_variant

STANDARD = load_map("standard")


def played(text):
    """Return phase -> power -> orders, where there are any, and the notes."""
    notes = []
    game = Game.from_saved_game(read_pasted(text, STANDARD, notes.append))
    return orders_of(game), notes


def orders_of(game):
    return {
        phase["name"]: {power: texts for power, texts in phase["orders"].items() if texts}
        for phase in game.history
    }


@pytest.mark.parametrize("row", read_table(__file__, "games_in_texts"))
def test_a_game_in_a_text(row):
    text, *expected = row
    notes, position = [], expected[1] if len(expected) > 1 else None
    try:
        game = Game.from_saved_game(read_pasted(text, STANDARD, notes.append))
    except UserError as error:
        assert [str(error)] == expected and str(error).isprintable()
    else:
        assert [orders_of(game), position and game.to_position(), notes] == expected


LOST = """\
Dear all, here they are
Spring 1901
France: A Par flies Bur, F Bre-MAO, A Nor-Swe
The deadline is Friday, at noon
Germany: A Mun-Bur, A Kie-Den
"""


@pytest.mark.parametrize("command", ["import-game", "replay", "play"])
def test_every_way_in_prints_every_note(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    file = tmp_path / "report.txt"
    file.write_text(LOST)
    words = {"replay": [str(file), "--text"], "import-game": [str(file)]}.get(command)
    words = words or ["--resume", str(file), "--text", "--power", "FRANCE", "--against", "hold"]
    assert main([command, *words]) == 0
    notes = []
    read_session(file, note=notes.append)
    assert len(notes) == 4
    assert capsys.readouterr().err == "".join(f"note: {note}\n" for note in notes)


@pytest.mark.parametrize(("name", "power"), read_table(__file__, "names_of_powers"))
def test_names_of_powers(name, power):
    assert power_called(STANDARD, name) == power


def renamed(**names):
    """Return the small map with other names of provinces."""
    facts = load_map("small").facts
    provinces = {code: dict(entry) for code, entry in facts["provinces"].items()}
    for code, name in names.items():
        provinces[code]["name"] = name
    return Map(facts | {"provinces": provinces})


def rows_of(game_map, names):
    places = [{"id": n, "name": name} for n, name in enumerate(names, 1)]
    powers = [{"countryID": n, "name": p.title()} for n, p in enumerate(game_map.powers, 1)]
    return {"territories": places, "countries": powers}


def test_names_of_a_variants_places():
    theirs = dict(read_table(__file__, "names_of_a_variants_places"))
    codes = load_map("small").provinces
    game_map = renamed(**dict(zip(codes, theirs)))
    others = [game_map.province_names[code] for code in codes[len(theirs) :]]
    coasts = [text for text in game_map.locations if "/" in text]
    found = read_variant(rows_of(game_map, [*theirs.values(), *others, *coasts]), game_map)
    assert [found.places[n] for n in range(1, len(theirs) + 1)] == codes[: len(theirs)]


def test_a_name_that_stays_ambiguous_is_refused_with_both():
    codes = load_map("small").provinces
    game_map = renamed(**{codes[0]: "Upper Egypt East", codes[1]: "Upper Egypt West"})
    with pytest.raises(UserError) as error:
        read_variant(rows_of(game_map, ["Upper Egypt"]), game_map)
    assert codes[0] in str(error.value) and codes[1] in str(error.value)


PHASES = read_table(__file__, "headings_of_phases")


@pytest.mark.parametrize("heading", PHASES)
def test_a_heading_of_a_phase(heading):
    text = f"Spring 1901\nFrance: A Par-Bur\n{heading}\nFrance: A Bur-Bel\n"
    both = {"S1901M": {"FRANCE": ["A PAR - BUR"]}, "F1901M": {"FRANCE": ["A BUR - BEL"]}}
    assert played(text) == (both, [])
    due = f"{heading} {DUE[len(heading) % len(DUE)]}"
    late = f"Spring 1901\nFrance: A Par-Bur\n{due}\nGermany: A Mun-Ruh\n"
    with contextlib.suppress(UserError):
        both = {"FRANCE": ["A PAR - BUR"], "GERMANY": ["A MUN - RUH"]}
        assert played(late)[0] == {"S1901M": both}


DUE = read_table(__file__, "when_orders_are_due")


@pytest.mark.parametrize("due", DUE)
def test_a_line_about_when_orders_are_due_is_no_heading(due):
    text = "{}\nFrance: A Par-Bur\n{}\nGermany: A Mun-Ruh\n"
    both = {"FRANCE": ["A PAR - BUR"], "GERMANY": ["A MUN - RUH"]}
    for line in (f"Fall 1901 {due}", f"F1901M: {due}", f"Orders for Fall of 1901 {due}!"):
        with pytest.raises(UserError, match=r"line 3, .*; line 4, .*line 5"):
            played(text.format("Spring 1901", f"{line}\n{line}"))
    orders, notes = played(text.format("Spring 1901", f"Spring 1901 orders {due}"))
    assert orders == {"S1901M": both} and len(notes) == 1 and notes[0].startswith("line 3, ")


@pytest.mark.parametrize("heading", read_table(__file__, "two_phases_never_become_one"))
def test_two_phases_never_become_one(heading):
    with pytest.raises(UserError, match="line 3, ") as error:
        played(f"Spring 1901\nFrance: A Par-Bur\n{heading}\nFrance: A Bur-Bel\n")
    assert heading in str(error.value)
    phases, notes = played(f"Spring 1901\nFrance: A Par-Bur\n{heading}\n")  # no orders below it
    assert list(phases) == ["S1901M"] and len(notes) <= 1


POWERS = read_table(__file__, "headings_of_powers")


@pytest.mark.parametrize("heading", POWERS)
def test_a_heading_of_a_power(heading):
    text = f"Spring 1901\nFrance: A Par-Bur\n{heading}\nF Lon-NTH\nA Lvp-Yor\n"
    both = {"ENGLAND": ["F LON - NTH", "A LVP - YOR"], "FRANCE": ["A PAR - BUR"]}
    if "Spring" in heading:
        del both["FRANCE"]
        text = text.replace("France: A Par-Bur\n", "")
    assert played(text) == ({"S1901M": both}, [])


@pytest.mark.parametrize("heading", read_table(__file__, "no_powers_orders_become_anothers"))
def test_no_powers_orders_become_anothers(heading):
    with pytest.raises(UserError, match="line 3, ") as error:
        played(f"Spring 1901\nFrance: A Par-Bur\n{heading}\nF Bre-MAO\n")
    assert heading.strip("# ") in str(error.value)
    found, notes = played(f"Spring 1901\nFrance: A Par-Bur\n{heading}\nGermany: A Mun-Ruh\n")
    assert found["S1901M"] == {"FRANCE": ["A PAR - BUR"], "GERMANY": ["A MUN - RUH"]}
    assert len(notes) == 1 and notes[0].startswith("line 3, ")


def test_a_history_of_a_judge():
    """It begins with a position. What matters comes first in the notes, standard lines are two."""
    game, lines = judge_history(random.Random(1), 34)
    at = lines.index("Movement results for Fall of 1901.  (sparrow.002)") + 2
    lines[at:at] = ["England: Army London -> Atlantis.", "France: Army Warsaw -> Moscow."]
    notes = []
    again = Game.from_saved_game(read_pasted("\n".join(lines), STANDARD, notes.append))
    for here, there in zip(again.history, game.history, strict=True):
        assert all(here["state"][key] == there["state"][key] for key in ("name", "units"))
    assert (again.units, again.centers) == (game.units, game.centers)
    assert f"line {at + 1}, " in notes[0] and f"(line {at + 2})" in notes[1]
    assert len(notes) == 4


def reading(lines):
    """Return phase, power and text of what a report has, and the lines of which notes tell: those
    passed over, and those of orders of a unit that nobody has. None if it is refused."""
    try:
        report = read_report(STANDARD, "\n".join(lines))
    except UserError:
        return None
    entries = [(e.phase or "S1901M", e.power, e.text) for e in report.entries if e.text]
    void = {e.line for e in report.entries if e.text.startswith("Eng")}
    return sorted(entries), {remark.line for remark in report.remarks} | void


def meaning(lines):
    """Return what lines mean of which each names a phase, or a power, or has orders."""
    phase, power, entries = "S1901M", "", []
    for _, now, name, texts in lines:
        phase, power = now or phase, name or power * (not now)
        entries += [(phase, power, text) for text in texts]
    return sorted(entries)


def some_report(rng):
    """Return lines, and for each the phase, the power and the orders that it has."""
    english = rng.choice((["F LON - NTH (bounce)"], ["F Edi-Nwg"], ["A Lvp-Yor", "F Lon-NTH"]))
    russian = ["F Sev-Bla (cut)", "A War-Gal"]
    names = [heading for heading in POWERS if "Spring" not in heading]
    dates = [heading for heading in PHASES if any(map(str.isdecimal, heading))]
    return [
        ("Spring 1901", "S1901M", "", []),
        ("France: A Par-Bur, F Bre-MAO", "", "FRANCE", ["A Par-Bur", "F Bre-MAO"]),
        (rng.choice(names), "", "ENGLAND", []),
        (", ".join(english), "", "", english),
        ("Good luck to all of you", "", "", []),
        (rng.choice(dates), "F1901M", "", []),
        ("Germany", "", "GERMANY", []),
        ("A Mun-Ruh", "", "", ["A Mun-Ruh"]),
        ("Russia: F Sev-Bla (cut) A War-Gal", "", "RUSSIA", russian),
    ]


@given(st.randoms(use_true_random=False), st.sampled_from(("drop", "double", "swap")))
def test_lines_that_move_mean_what_they_meant(rng, change):
    lines = some_report(rng)
    at = rng.randrange(len(lines) - 1)
    new = {"drop": [], "double": [lines[at]] * 2, "swap": [lines[at + 1], lines[at]]}[change]
    lines[at : at + 1 + (change == "swap")] = new
    result = reading(line[0] for line in lines)
    assert result is None or result[0] == meaning(lines)
    assert result is None or all(power for _, power, _ in result[0])


@given(st.randoms(use_true_random=False))
def test_a_letter_that_changes_takes_no_order_away_in_silence(rng):
    """The other lines mean what they meant, or it is an error, or a note names the line."""
    lines = some_report(rng)
    at = rng.randrange(len(lines))
    text, phase, power, own = lines[at]
    letter = rng.randrange(len(text))
    changed = text[:letter] + rng.choice("aeS :,.-()1x") + text[letter + 1 :]
    headings = HeadingReader(STANDARD, "S1901M" * bool(at))
    if (phase or power) and headings.split(changed)[0] not in (None, headings.split(text)[0]):
        return  # it names something else
    result = reading([*(line[0] for line in lines[:at]), changed, *(n[0] for n in lines[at + 1 :])])
    if result and {entry[0] for entry in result[0]} - {"S1901M", "F1901M"}:
        return  # another year
    others = [entry for entry in meaning(lines) if entry[2] not in own]
    assert result is None or at + 1 in result[1] or {*others} <= {*result[0]}, (text, changed)
