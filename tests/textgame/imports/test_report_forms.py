"""Tables of what people write in reports: headings of phases and powers, winters, retreats, marks.

A form that is not understood is refused with its line: never do two phases become one, or one
power's orders another's.
"""

import pytest
from support.tables import read_table, read_text

from diplomacy_engine import Game, UserError, load_map
from diplomacy_engine.textgame.imports.games import read_pasted

STANDARD = load_map("standard")


def played(text):
    """Return phase -> power -> orders, where there are any, and the notes."""
    notes = []
    game = Game.from_saved_game(read_pasted(text, STANDARD, notes.append))
    orders = {phase["name"]: phase["orders"] for phase in game.history}
    return {
        name: {power: texts for power, texts in given.items() if texts}
        for name, given in orders.items()
    }, notes


PHASES = read_table(__file__, "headings_of_phases")
DOUBTFUL_PHASES = (
    "Turn 2", "Round 2", "1901", "A1901", "Fall 19O1", "Fall nineteen-one", "Next: Fall 1901",
    "In Fall 1901 we fought", "Deadline for Fall 1901 is Friday", "Spring/Fall 1901",
    "Spring and Fall 1901", "Fall 1901, and France is ready", "Fall 1901 1902", "Spring",
)  # fmt: skip


@pytest.mark.parametrize("heading", PHASES)
def test_a_heading_of_a_phase(heading):
    text = f"Spring 1901\nFrance: A Par-Bur\n{heading}\nFrance: A Bur-Bel\n"
    both = {"S1901M": {"FRANCE": ["A PAR - BUR"]}, "F1901M": {"FRANCE": ["A BUR - BEL"]}}
    assert played(text) == (both, [])


@pytest.mark.parametrize("heading", DOUBTFUL_PHASES)
def test_two_phases_never_become_one(heading):
    with pytest.raises(UserError, match="line 3, ") as error:
        played(f"Spring 1901\nFrance: A Par-Bur\n{heading}\nFrance: A Bur-Bel\n")
    assert heading in str(error.value)
    phases, notes = played(f"Spring 1901\nFrance: A Par-Bur\n{heading}\n")  # no orders below it
    assert list(phases) == ["S1901M"] and len(notes) <= 1


@pytest.mark.parametrize(
    ("season", "phases"), read_table(__file__, "seasons_below_a_year_and_phases_with_a_power")
)
def test_seasons_below_a_year_and_phases_with_a_power(season, phases):
    found, _ = played(season.format("France: A Par-Bur", "Germany: A Mun H"))
    assert list(found) == phases and found["S1901M"]["FRANCE"] == ["A PAR - BUR"]


POWERS = read_table(__file__, "headings_of_powers")
DOUBTFUL_POWERS = (
    "England, Tom", "E:", "Angleterre:", "Englnd:", "England and Russia", "England & Italy:",
    "Thanks, England", "Winner: England", "England stabbed me!", "England will attack, I fear",
    "### Kai",
)  # fmt: skip


@pytest.mark.parametrize("heading", POWERS)
def test_a_heading_of_a_power(heading):
    text = f"Spring 1901\nFrance: A Par-Bur\n{heading}\nF Lon-NTH\nA Lvp-Yor\n"
    both = {"ENGLAND": ["F LON - NTH", "A LVP - YOR"], "FRANCE": ["A PAR - BUR"]}
    if "Spring" in heading:
        del both["FRANCE"]
        text = text.replace("France: A Par-Bur\n", "")
    assert played(text) == ({"S1901M": both}, [])


@pytest.mark.parametrize("heading", DOUBTFUL_POWERS)
def test_no_powers_orders_become_anothers(heading):
    with pytest.raises(UserError, match="line 3, ") as error:
        played(f"Spring 1901\nFrance: A Par-Bur\n{heading}\nF Bre-MAO\n")
    assert heading.strip("# ") in str(error.value)
    found, notes = played(f"Spring 1901\nFrance: A Par-Bur\n{heading}\nGermany: A Mun-Ruh\n")
    assert found["S1901M"] == {"FRANCE": ["A PAR - BUR"], "GERMANY": ["A MUN - RUH"]}
    assert len(notes) == 1 and notes[0].startswith("line 3, ")


@pytest.mark.parametrize(("line", "orders"), read_table(__file__, "orders_beside_names"))
def test_orders_beside_names(line, orders):
    if orders is None:
        with pytest.raises(UserError, match="line 2, "):
            played(f"Spring 1901\n{line}")
        return
    assert played(f"Spring 1901\n{line}")[0]["S1901M"] == orders


def test_an_order_with_a_mistake_in_brackets_is_told():
    orders, notes = played("Spring 1901\nFrance: (A Parb-ur), F Bre-MAO")
    assert orders == {"S1901M": {"FRANCE": ["F BRE - MAO"]}}
    assert len(notes) == 1 and "A Parb-ur" in notes[0]


@pytest.mark.parametrize(("text", "orders"), read_table(__file__, "marks_around_orders"))
def test_marks_around_orders(text, orders):
    assert played(f"Spring 1901\n{text}") == ({"S1901M": {"FRANCE": orders}}, [])


BEFORE_WINTER = read_text(__file__, "before_winter.txt")


@pytest.mark.parametrize(("text", "orders"), read_table(__file__, "lists_of_a_winter"))
def test_lists_of_a_winter(text, orders):
    assert played(BEFORE_WINTER + text)[0]["W1901A"] == orders


@pytest.mark.parametrize(
    "text", ["removes A Tyr", "-A Tyr", "- A Tyr", "A Tyr", "remove tyrolia army", "A Tyr removed"]
)
def test_removals_of_a_winter(text):
    lost = "Spring 1901\nAustria: A Vie-Tyr\nItaly: A Ven H\nFall 1901\nAustria: F Tri-Alb\n"
    lost += "Italy: A Ven-Tri\nGermany: A Mun H\nWinter 1901\nAustria: "
    orders, _ = played(lost + text)
    assert orders["W1901A"] == {"AUSTRIA": ["A TYR D"]}


DISLODGED = read_text(__file__, "dislodged.txt")


@pytest.mark.parametrize("line", read_table(__file__, "a_retreat_that_results_tell"))
def test_a_retreat_that_results_tell(line):
    more = "\nFrance: A Mun H" if "Ruh" in line else ""
    if "Ruh" in line:
        line = line.replace("- Ruh", "H")
    orders, notes = played(DISLODGED.format(line, f"A Sil-Boh{more}"))
    assert orders["F1901R"] == {"GERMANY": ["A MUN R SIL"]}
    assert orders["S1902M"]["GERMANY"] == ["A SIL - BOH"]
    assert not any("F1901R" in note for note in notes)


def test_a_retreat_that_our_rules_do_not_know_is_told():
    orders, notes = played("Spring 1901\nFrance: A Par H (dislodged, retreats to Gas)\nFall 1901\n"
                           "France: A Par H\n")  # fmt: skip
    assert list(orders) == ["S1901M", "F1901M"] and len(notes) == 1 and "S1901R" in notes[0]


def test_a_unit_that_was_disbanded():
    orders, _ = played(DISLODGED.format("A Mun H (dislodged, disbanded)", "F Kie H"))
    assert orders["F1901R"] == {"GERMANY": ["A MUN D"]}
