"""Reading order texts: what is understood, what is corrected, and what is refused and why."""

import re
import tomllib

import pytest
from support.maps import TRIBES
from support.tables import read_table

from diplomacy_engine import MAP_NAMES, Game, Map, load_map, vocabulary
from diplomacy_engine.rules import notation, order_words, reading
from diplomacy_engine.rules.order_matching import matching_orders
from diplomacy_engine.textgame.order_texts import order_texts

STANDARD = load_map("standard")


@pytest.mark.parametrize(
    ("units", "orders", "read"),
    read_table(__file__, "a_convoy_that_no_fleet_could_carry_goes_by_land"),
)
def test_a_convoy_that_no_fleet_could_carry_goes_by_land(units, orders, read):
    game = Game.from_position(f"standard S1901M; FRANCE {units} =")
    reasons = game.submit("FRANCE", orders, strict=False)
    assert game.orders["FRANCE"] == [new or old for old, new in zip(orders, read)]
    changes = [old for old, new in zip(orders, read) if new not in ("", old)]
    assert len(reasons) == len(changes)
    assert all(old in reason for old, reason in zip(changes, reasons))
    if changes:
        with pytest.raises(ValueError, match=changes[0]):
            game.submit("FRANCE", orders)


def test_the_support_of_a_convoy_that_goes_by_land_counts():
    game = Game.from_position("standard S1901M; FRANCE A MAR, A GAS =; ITALY A SPA =")
    game.submit("FRANCE", ["A MAR - SPA VIA", "A GAS S A MAR - SPA"], strict=False)
    assert game.adjudicate() == {"A MAR": [], "A GAS": [], "A SPA": ["dislodged"]}


@pytest.mark.parametrize("name", MAP_NAMES)
def test_every_order_of_the_vocabulary_reads_as_itself(name):
    """Whatever text the vocabulary holds, it says what the table says."""
    game_map = load_map(name)
    words = vocabulary(game_map)
    for number in range(0, len(words), 5 if name == "standard" else 1):
        text = words.texts[number]
        order = reading.read_order(game_map, text)
        assert order == reading.read_order(game_map, text.lower().replace(" - ", "-"))
        assert matching_orders(game_map, words, order, [number]) == [number]
        if order.units:
            place = order.unit.place
            assert place.coast == game_map.board.location_coast[words.table.location[number]]
            assert reading.ordered_unit(game_map, text) == order.unit
            assert text.startswith(notation.unit_text(game_map, order.unit) + " ")


def test_codes_and_coasts_that_are_words_of_orders_are_places():
    """Whatever a map calls them, its texts are read as what they are."""
    text = TRIBES
    for pair in ["CAP THE", "DUN REM", "HIL DSB", "MOU BUL", "ROC VIA", "BAY CUT", "RIVER S"]:
        name, word = pair.split()
        text = re.sub(rf"\b{name}\b", word, text)
    game_map = Map(tomllib.loads(text))
    words = vocabulary(game_map)
    for number, order_text in enumerate(words.texts):
        order = reading.read_order(game_map, order_text)
        assert order == reading.read_order(game_map, order_text.lower())
        assert number in matching_orders(game_map, words, order, range(len(words)))
        assert order_texts(order_text) == [order_text]
    for code, v in game_map.province_index.items():
        for place in (code, f"A {code}", f"*A {code}"):
            assert reading.read_place(game_map, place)[1].province == v
    assert order_words.in_words(game_map, "F BUL/NC") == "fleet Mouth"


def test_full_names_and_aliases_of_every_map():
    for name in ("small", "three", "standard"):
        game_map = load_map(name)
        for code, v in game_map.province_index.items():
            for word in (code, code.lower(), game_map.province_names[code]):
                assert reading.read_place(game_map, word)[1].province == v
                assert reading.read_place(game_map, f"A {word}")[1].province == v
                assert reading.read_unit(game_map, f"army {word}")[0].place.province == v
        for alias, code in game_map.aliases.items():
            assert reading.read_place(game_map, alias)[1].province == game_map.province_index[code]


def test_a_name_for_two_provinces_is_refused_with_both():
    facts = {**load_map("small").facts}
    provinces = {code: dict(entry) for code, entry in facts["provinces"].items()}
    provinces["LON"]["name"] = provinces["PAR"]["name"] = "The City"
    provinces["WAL"]["name"] = "Mos"
    game_map = Map(facts | {"provinces": provinces})
    with pytest.raises(ValueError, match="'CITY' may be LON or PAR"):
        reading.read_place(game_map, "The City")
    assert reading.read_place(game_map, "mos")[1].province == game_map.province_index["MOS"]


@pytest.mark.parametrize("text", ["", "A", "F", "/", "()", "A PAR MUN", "A PAR H", "XYZ", "*"])
def test_unknown_places(text):
    with pytest.raises(ValueError, match="is not a unit or province"):
        reading.read_place(STANDARD, text)


def said(phase: str, units: dict, orders: dict, results: dict) -> list[tuple]:
    """Return (unit, result, whether it counts) of every order, in the order given."""
    found = reading.read_orders(STANDARD, phase, units, orders, results)
    return [(each.unit, each.said, each.counts) for several in found.values() for each in several]


def test_each_order_gets_its_own_result():
    units = {"FRANCE": ["A PAR", "F SPA/NC"], "ENGLAND": ["A PIC"]}
    orders = {
        "FRANCE": ["a par - bur", "F SPA - GAS", "A PAR H", "A MUN H", "F PAR H", "A PIC H", "??"],
        "ENGLAND": ["A PIC mumbles"],
        "GAUL": ["A PAR H"],
        "ITALY": None,
    }
    results = {"A PAR": ["bounce", "dislodged"], "F SPA/NC": [], "A PIC": ["void"]}
    assert said("S1901M", units, orders, results) == [
        ("A PAR", "bounce, dislodged", True),
        ("F SPA/NC", "", True),
        ("A PAR", "void", False),  # a second order
        ("A MUN", "void", False),  # there is no such unit
        ("F PAR", "void", False),
        ("A PIC", "void", False),  # another power's
        ("", "void", False),  # unreadable
        ("A PIC", "void", True),
    ]


def test_an_order_that_can_be_read_counts_before_one_that_cannot():
    orders = {"FRANCE": ["A PAR - XXX", "A PAR - BUR"]}
    found = said("S1901M", {"FRANCE": ["A PAR"]}, orders, {"A PAR": ["bounce"]})
    assert found == [("A PAR", "void", False), ("A PAR", "bounce", True)]


def test_builds_are_no_units_yet():
    units = {"FRANCE": ["A PAR"], "RUSSIA": []}
    orders = {
        "FRANCE": ["A PAR B", "A BRE B", "WAIVE", "WAIVE"],
        "RUSSIA": ["F STP/NC B", "A PAR B"],
    }
    results = {"A PAR": ["disband"], "A BRE": [], "F STP/NC": ["void"]}
    assert said("W1901A", units, orders, results) == [
        ("A PAR", "void", False),
        ("A BRE", "", True),
        ("", "", True),
        ("", "", True),
        ("F STP/NC", "void", True),
        ("A PAR", "void", False),
    ]
    assert not any(counts for _, _, counts in said("S1901M", units, orders, results))
