"""What is made of replies; constraints as servers are given them."""

import json
import re
import tomllib

import pytest
from support.language import question, question_of_game
from support.tables import read_table, read_text

from diplomacy_engine import Game
from diplomacy_engine.extras.language.constraints import parts, request_fields
from diplomacy_engine.extras.language.questions import Slot
from diplomacy_engine.extras.language.replies import complaint, lines_of, read_reply, sentence_of
from diplomacy_engine.extras.language.thoughts import sections

WINTER = "standard W1901A; FRANCE A BUR, F MAO = PAR MAR BRE BEL; GERMANY A MUN = MUN"


def read(asked_question, text, slots=None, ordered=None):
    slots = range(len(asked_question.slots)) if slots is None else slots
    reading = read_reply(asked_question, list(slots), ordered or {}, text)
    orders = {s: asked_question.written([number])[0] for s, number in reading.numbers.items()}
    return orders, reading.complaints


@pytest.fixture
def france():
    return question_of_game(Game("standard"), "FRANCE")


DRAFT = ["F BRE - ENG", "A MAR - PIE", "A PAR - PIC"]
FIRST = ["F BRE - MAO", "A MAR - SPA", "A PAR - BUR"]
REPLIES = tomllib.loads(read_text(__file__, "reply_forms.toml"))
DECIDED, UNDECIDED = REPLIES["decided"], REPLIES["undecided"]
FORMS = REPLIES["forms"] | {f"decided: {name}": text for name, text in DECIDED.items()}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_replies(france, form):
    orders, complaints = read(france, FORMS[form])
    assert list(orders.values()) == FIRST and not complaints


@pytest.mark.parametrize("form", UNDECIDED)
def test_without_a_decision_nothing_is_ordered(france, form):
    orders, complaints = read(france, UNDECIDED[form])
    assert orders == {} and len(complaints) == 2
    assert not any(order in sentence_of(UNDECIDED[form]) for order in DRAFT) or form in (
        "no list is whole",
    )


@pytest.mark.parametrize("form", DECIDED)
def test_thoughts_that_are_cut_off_order_nothing(france, form):
    """Wherever the reply ends: the last line of a thought may be its decision, a draft is not."""
    text = DECIDED[form]
    for end in range(0, len(text), 7):
        numbers = read_reply(france, [0, 1, 2], {}, text[:end], cut_off=True).numbers
        orders = france.written(numbers.values())
        assert not set(orders) & set(DRAFT) or form in BARE, text[:end]


# These begin with a list of orders that nothing says to be a thought.
BARE = (
    *("end alone, after a list", "two lists", "mistral, end alone", "two fenced lists"),
    "answer behind a draft",
)


@pytest.mark.parametrize("form", DECIDED)
def test_nothing_of_a_thought_is_said(form):
    text = DECIDED[form]
    for end in (*range(0, len(text), 7), len(text)):
        said = sentence_of(text[:end])
        assert not any(order in said for order in DRAFT) or form in NO_MARK, text[:end]


# Nothing says that a thought begins; the end may still come.
NO_MARK = (*BARE, "end alone", "Final orders:", "final orders on a line")


@pytest.mark.parametrize(("text", "said"), read_table(__file__, "what_is_said"))
def test_what_is_said(text, said):
    assert sentence_of(text) == said


def test_a_second_request_says_what_was_wrong_with_the_form(france):
    reading = read_reply(france, [0, 1, 2], {}, '{"plan": "go west", "orders": "attack"}')
    text = complaint(reading, france.slots)
    assert "go west" in text and repr(france.slots[0].texts[0]) in text
    assert "no legal order for F BRE, A MAR, A PAR" in text


@pytest.mark.parametrize(("text", "left"), read_table(__file__, "thoughts_are_left_out"))
def test_thoughts_are_left_out(text, left):
    lines = [line for section in sections(text) for line in lines_of(section, bool)]
    assert lines == ([left] if left else [])


def test_complaints_name_the_line_and_the_reason(france):
    orders, complaints = read(france, "A PAR - MOS\nF BRE - MAO\nA BER - MUN\nI hold the rest.")
    assert list(orders.values()) == ["F BRE - MAO"]
    assert complaints[0].startswith("'A PAR - MOS' is not legal: ")
    assert "belongs to GERMANY" in complaints[1]
    assert complaints[2] == "no legal order for A MAR, A PAR"
    for two in ("A PAR - BUR / A PAR - PIC", "A PAR - BUR; A PAR - PIC"):
        orders, complaints = read(france, f"{two}\nF BRE - MAO\nA MAR - SPA, A MAR - SPA")
        assert list(orders.values()) == ["F BRE - MAO", "A MAR - SPA"]
        assert complaints[0].startswith("'A PAR - BUR or A PAR - PIC' is not legal: ")
    orders, complaints = read(france, json.dumps([*DRAFT, *FIRST[:2], *DRAFT[2:]]))
    assert list(orders.values()) == DRAFT[2:] and len(complaints) == 3


def test_winter_gives_each_province_once():
    asked = question(WINTER, "FRANCE")
    assert [slot.unit for slot in asked.slots] == ["build 1", "build 2"]
    orders, complaints = read(asked, "A PAR B\nF PAR B\nA PAR B\n")
    assert list(orders.values()) == ["A PAR B"] and len(complaints) == 3
    orders, complaints = read(asked, "WAIVE\nwaive")
    assert list(orders.values()) == ["WAIVE", "WAIVE"]
    orders, complaints = read(asked, "WAIVE\nwaive\nA PAR B")  # one too many
    assert not orders and len(complaints) == 2
    orders, complaints = read(asked, "F BRE B\nWAIVE\n\nBetter\n\nA MAR B\nA PAR B")
    assert list(orders.values()) == ["A MAR B", "A PAR B"]
    left = asked.open_slot(asked.slots[1], [asked.slots[0].numbers[0]])
    assert "WAIVE" in left.texts and len(left.texts) < len(asked.slots[1].texts)


@pytest.mark.parametrize("coast", ["NC", "SC"])
def test_a_support_that_names_no_coast_goes_where_the_fleet_goes(coast):
    fleets = question("standard F1901M; FRANCE F MAO, F POR = BRE MAR", "FRANCE")
    orders, complaints = read(fleets, f"F MAO S F POR - SPA\nF POR - SPA/{coast}")
    support = f"F MAO S F POR - SPA/{coast}"
    assert (list(orders.values()), complaints) == ([support, f"F POR - SPA/{coast}"], [])
    fleets = question("standard F1901M; FRANCE F MAO = BRE; ITALY F POR = ROM", "FRANCE")
    orders, complaints = read(fleets, "F MAO S F POR - SPA")
    assert not orders and "has to name the coast" in complaints[0]


def test_servers_are_asked_for_the_legal_orders_alone(france):
    slots = france.slots
    pattern = request_fields("vllm", "regex", slots)["structured_outputs"]["regex"]
    legal = "".join(f"{slot.texts[-1]}\n" for slot in slots)
    assert re.fullmatch(pattern, legal) and not re.fullmatch(pattern, legal.rstrip("\n"))
    assert not re.fullmatch(pattern, legal.replace("A PAR", "A MUN"))
    assert request_fields("sglang", "regex", slots) == {"regex": pattern}
    fields = request_fields("llama.cpp", "grammar", slots)
    assert request_fields("sglang", "grammar", slots) == {"ebnf": fields["grammar"]}
    first, *rules = fields["grammar"].splitlines()
    assert first == 'root ::= unit1 "\\n" unit2 "\\n" unit3 "\\n"'
    for slot, rule in zip(slots, rules):
        assert [json.loads(text) for text in rule.split(" ::= ")[1].split(" | ")] == slot.texts
    form = request_fields("openai", "json", slots)["response_format"]["json_schema"]
    schema = form["schema"]
    assert form["strict"] is True and schema["additionalProperties"] is False
    assert schema["required"] == ["F BRE", "A MAR", "A PAR"] == list(schema["properties"])
    assert schema["properties"]["A PAR"]["enum"] == slots[2].texts
    assert request_fields("", "none", slots) == {}


@pytest.mark.parametrize(
    ("constraint", "lengths"), [("json", [2, 1]), ("choice", [1, 1, 1]), ("regex", [3])]
)
def test_long_decisions_are_split(constraint, lengths):
    slots = [Slot(f"A {n}", list(range(400)), [f"A {n} - {m}" for m in range(400)]) for n in "ABC"]
    assert [len(part) for part in parts(constraint, slots)] == lengths
