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


@pytest.mark.parametrize(
    ("phase", "units", "orders", "results", "expected"), read_table(__file__, "results_of_orders")
)
def test_results_of_orders(phase, units, orders, results, expected):
    found = reading.read_orders(STANDARD, phase, units, orders, results)
    assert [[o.unit, o.said, o.counts] for own in found.values() for o in own] == expected
