"""Tables of what people write in reports: headings of phases and powers, winters, retreats, marks.

A form that is not understood is refused with its line: never do two phases become one, or one
power's orders another's.
"""

import pytest

from diplomacy_engine.errors import UserError
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.textgame.game import Game
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


PHASES = (
    """
Fall 1901|Autumn 1901|FALL 1901|fall 1901|Fall, 1901|Fall of 1901|Fall '01|Fall 01|F1901|F1901M
f1901m|F01|F01M|F'01|F 1901|F 1901 M|F-1901-M|F.1901|1901 Fall|1901, Fall|1901: Fall|1901F|1901 F
Fa 1901|Fa01|Aut 1901|Aut. 1901|Au 01|Fall-1901|Fall/1901|Fall_1901|Fall (1901)|(Fall 1901)
[Fall 1901]|<Fall 1901>|*Fall 1901*|**Fall 1901**|__Fall 1901__|_Fall 1901_|# Fall 1901
### FALL 1901 MOVEMENT (`F1901M`)|> Fall 1901|>> Fall 1901|=== Fall 1901 ===|--- Fall 1901 ---
~~~ Fall 1901 ~~~|*** Fall 1901 ***|- Fall 1901|1. Fall 1901|2) Fall 1901|Fall 1901:|Fall 1901.
Fall 1901!|Fall 1901 -|Fall 1901 Movement|Fall 1901 moves|Fall 1901 orders|Fall 1901 results
Fall 1901 Movement Phase|Fall 1901 Diplomacy|Fall 1901 - Movement|Fall 1901 \u2013 Orders
Fall 1901 (Movement)|Fall 1901, Movement|Movement, Fall 1901|Movement: Fall 1901
Orders for Fall 1901|Results for Fall 1901|Results of Fall, 1901
Movement results for Fall of 1901.  (sparrow.002)|Phase: Fall 1901|Season: Fall 1901|Turn: Fall 1901
Phase: F1901M|Turn 2: Fall 1901|Turn 2 - Fall 1901|Turn 2 (Fall 1901)|Turn 2, Fall 1901
Fall 1901 (Turn 2)|Fall 1901 - Turn 2|Turn #2: F1901M|Phase 2: F1901M|F1901M results|F1901M (2)
F1901M - Movement|Phase F1901M|Game 17 - Fall 1901|Game #17, Fall 1901|Sparrow: Fall 1901
Fall 1901, game 17|Fall 1901 (due Friday)|Fall 1901, due Friday|Fall 1901 - 12 March 2024
Fall 1901 (12 March 2024)|Fall 1901, March 12th, 2024|Fall 1901 12/03/2024|Fall 1901 2024-03-12
Fall 1901 [2024-03-12 20:00 GMT]|Fall 1901 deadline 3 May|Fall 1901: the war spreads
\U0001f342 **Fall 1901** \U0001f342|Herbst 1901|Automne 1901|Otoño 1901|Fall Turn 1901
Fall Season, 1901|Year 1901, Fall|Fall of the year 1901|Fall Moves 1901|<h2>Fall 1901</h2>
Fall|Autumn
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
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
    ("season", "phases"),
    [
        ("1901\nSpring\n{}\nFall\n{}", ["S1901M", "F1901M"]),
        ("Year 1901\nSpring\n{}\n1901\nFall\n{}", ["S1901M", "F1901M"]),
        ("Spring 1901\n{}\nRetreats\n{}", ["S1901M"]),
        ("Spring 1901: France: A Par-Bur", ["S1901M"]),
        ("Orders for France, Spring 1901\nA Par-Bur", ["S1901M"]),
    ],
)
def test_seasons_below_a_year_and_phases_with_a_power(season, phases):
    found, _ = played(season.format("France: A Par-Bur", "Germany: A Mun H"))
    assert list(found) == phases and found["S1901M"]["FRANCE"] == ["A PAR - BUR"]


POWERS = (
    """
England|ENGLAND|england|England:|England -|England \u2013|**England**|**England**:|**England:**
__England__|*England*|_England_|`England`|### England|> England|- England|* England|• England
1. England|1) England|(1) England|#1 England|[England]|(England)|<b>England</b>|<England>|"England"
'England'|=England=|=== England ===|--- England ---|~~ England ~~|-- England|
\U0001f1ec\U0001f1e7 England|England \U0001f1ec\U0001f1e7|1\ufe0f\u20e3 England|England (Tom)
England (Tom):|England [Tom]|England (Tom M., 5 centers)|England - Tom|England \u2013 Tom Miller
England \u2014 Tom|England / Tom|England/Tom|England @tom|England (gpt-4o)|England - gpt-4o
Tom (England)|The English|English|English orders|England's orders|England's orders:
Orders for England|Orders of England:|Orders: England|Orders from England|Power: England
Country: ENGLAND|Player: England|From: England|Great Britain|Britain:|British:|United Kingdom
ENG:|Eng:|Eng.|Engl.|England (3)|England (5/5)|England: 5 centers|England, 5 SC|England NMR
England (Tom) NMR|England: NMR|England (Tom) declares civil disorder|England is in civil disorder
England did not submit orders|England - no orders received|England: none|England's moves
England moves:|England, Spring 1901|England!|England...|England;|England =
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
DOUBTFUL_POWERS = (
    "England, Tom", "E:", "Angleterre:", "Englnd:", "England and Russia", "England & Italy:",
    "Thanks, England", "Winner: England", "England stabbed me!", "England will attack, I fear",
    "### Kai",
)  # fmt: skip


@pytest.mark.parametrize("heading", [heading for heading in POWERS if heading])
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


@pytest.mark.parametrize(
    ("line", "orders"),
    [
        ("Kai: A Par-Bur, F Bre-MAO", None),
        ("France\nA Par-Bur\nGood luck!\nF Bre-MAO", {"FRANCE": ["A PAR - BUR", "F BRE - MAO"]}),
        (
            "France: A Par-Bur; Germany: A Mun H",
            {"FRANCE": ["A PAR - BUR"], "GERMANY": ["A MUN H"]},
        ),
        ("France Par-Bur, Bre-MAO", {"FRANCE": ["A PAR - BUR", "F BRE - MAO"]}),
        ("French A Par - Bur", {"FRANCE": ["A PAR - BUR"]}),
        (
            "France\nEnglish Channel - MAO\nA Par H",
            {"FRANCE": ["English Channel - MAO", "A PAR H"]},
        ),
    ],
)
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


BOTH = ["A PAR - BUR", "F BRE - MAO"]


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("France: `A PAR - BUR` · `F BRE - MAO`", BOTH),
        ("### FRANCE\nOrders: `A PAR - BUR` · `F BRE - MAO`", BOTH),
        ("France: `A PAR - BUR` `F BRE - MAO`", BOTH),
        ("| Power | Order | Result |\n|:--|---|:-:|\n| France | A Par-Bur | ok |\n"
         "| France | F Bre-MAO | ✗ |", BOTH),
        ("| **France** | `A PAR - BUR`, `F BRE - MAO` |", BOTH),
        ("France | A Par-Bur | F Bre-MAO", BOTH),
        ("France\n- **A PAR - BUR** ✓\n- **F BRE - MAO** ❌ (bounced)", BOTH),
        ("France\n* ✅ A PAR - BUR\n* ❌ F BRE - MAO", BOTH),
        ("France\n- [x] A PAR - BUR\n- [ ] F BRE - MAO", BOTH),
        ("France: A PAR - BUR ✓, F BRE - MAO ✗", BOTH),
        ("France: A PAR - BUR ✔️ F BRE - MAO", BOTH),
        ("France: ~~A PAR - PIC~~ A PAR - BUR, F BRE - MAO", BOTH),
        ("France: <s>A Par-Pic</s> A Par-Bur<br>\nF BRE -&gt; MAO", BOTH),
        ("France\n1. A PAR - BUR\n2. F BRE - MAO", BOTH),
        ("France:\n```\nA PAR - BUR\nF BRE - MAO\n```", BOTH),
        ("France\nA PAR ➡️ BUR\nF BRE → MAO", BOTH),
        ("France\nA PAR - BUR: bounced\nF BRE - MAO \u2014 failed", BOTH),
        ("France\nA PAR - BUR, bounced, F BRE - MAO", BOTH),
        ("France: A Par-Bur and F Bre-MAO", BOTH),
        ("France: A Par-Bur & F Bre-MAO", BOTH),
        ("France: A Par-Bur / F Bre-MAO", BOTH),
    ],
)  # fmt: skip
def test_marks_around_orders(text, orders):
    assert played(f"Spring 1901\n{text}") == ({"S1901M": {"FRANCE": orders}}, [])


BEFORE_WINTER = """\
Spring 1901
France: A Par-Bur, F Bre-MAO, A Mar-Spa
Germany: A Mun-Ruh, F Kie-Den
Austria: A Vie-Tyr
Italy: A Ven-Tri
Fall 1901
France: F MAO-Por
Italy: A Tri S A Rom-Ven, A Rom-Ven
Germany: A Ruh-Hol
Austria: F Tri-Alb, A Tyr H
"""
BUILDS = {"FRANCE": ["A PAR B", "F BRE B"]}


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("Winter 1901 build phase\nFrance: builds A Par, F Bre", BUILDS),
        ("Winter 1901\nFrance: +A Par, +F Bre", BUILDS),
        ("Winter 1901\nFrance: + A Par, + F Bre", BUILDS),
        ("Winter 1901 Builds\nFrance: A Par, F Bre", BUILDS),
        ("Winter 1901\nFrance\nA Par\nF Bre", BUILDS),
        ("Winter 1901\nFrance\n- A Par\n- F Bre", BUILDS),
        ("Winter 1901\nBuilds:\nFrance: A Par, F Bre", BUILDS),
        ("Winter 1901\nFrance\nBuilds: A Par, F Bre", BUILDS),
        ("Winter 1901\nFrance: 2 builds: A Par, F Bre", BUILDS),
        ("Winter 1901\nFrance builds 2: A Par, F Bre", BUILDS),
        ("Winter 1901\nFrance (2 builds): A Par and F Bre", BUILDS),
        ("Winter 1901\nFrance: build paris army, build fleet in Brest", BUILDS),
        ("W01A\nFrance builds army Paris, fleet Brest", BUILDS),
        ("Winter 1901 Adjustments\n**France**: `+A PAR` · `+F BRE`", BUILDS),
        ("France: Build A Par, Build F Bre", BUILDS),  # under the fall
        ("Winter 1901\nGermany: F Kie, A Mun", {"GERMANY": ["F KIE B", "A MUN B"]}),
        ("Winter 1901\nFrance: remove A Par", {"FRANCE": ["remove A Par"]}),  # void
        ("Winter 1901\nFrance: -A Par", {"FRANCE": ["-A Par"]}),
        ("Winter 1901\nRemovals:\nFrance: A Par", {"FRANCE": ["remove A Par"]}),
        ("Winter 1901\nFrance: +A Spa", {"FRANCE": ["+A Spa"]}),
    ],
)  # fmt: skip
def test_lists_of_a_winter(text, orders):
    assert played(BEFORE_WINTER + text)[0]["W1901A"] == orders


@pytest.mark.parametrize(
    "text",
    ["removes A Tyr", "-A Tyr", "- A Tyr", "A Tyr", "remove tyrolia army", "A Tyr removed"],
)
def test_removals_of_a_winter(text):
    lost = "Spring 1901\nAustria: A Vie-Tyr\nItaly: A Ven H\nFall 1901\nAustria: F Tri-Alb\n"
    lost += "Italy: A Ven-Tri\nGermany: A Mun H\nWinter 1901\nAustria: "
    orders, _ = played(lost + text)
    assert orders["W1901A"] == {"AUSTRIA": ["A TYR D"]}


DISLODGED = """\
Spring 1901
Germany: A Mun-Bur
France: A Par-Bur, A Mar S A Par-Bur
Italy: A Ven-Tyr
Fall 1901
Germany: {}
France: A Bur-Mun
Italy: A Tyr S A Bur-Mun
Spring 1902
Germany: {}
"""


@pytest.mark.parametrize(
    "line",
    [
        "A Mun H (dislodged, retreats to Sil)",
        "Mun H (retreats to Silesia)",
        "A Mun H (dislodged -> Sil)",
        "A Mun H *dislodged; retreat: Sil*",
        "A Mun H, dislodged, retreats to Sil",
        "A Mun - Ruh (bounce, dislodged, retreats Sil)",
        "A Mun H. Retreats to Sil",
        "A Mun H\nA Mun retreats to Sil",
        "A Mun H\nretreat mun sil",
        "A Mun H\nRetreats: A Mun - Sil",
    ],
)
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
