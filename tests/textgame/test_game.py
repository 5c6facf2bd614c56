"""The text facade: phases, legal orders, submission, results, positions, ends of games."""

import copy
import pickle
import random
from enum import Enum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.games import orderable, play_randomly, random_orders, standard, state

from diplomacy_engine import Game, GameRules, Map, VectorGame
from diplomacy_engine.games import vector_game
from diplomacy_engine.rules.map import Board
from diplomacy_engine.rules.vocabulary import OrderTable, OrderVocabulary

# The opening, and what a phase shows


def test_opening():
    game = Game("standard")
    assert game.phase == "S1901M"
    assert game.powers == sorted(game.units) == sorted(game.centers)
    assert game.units["FRANCE"] == ["A MAR", "A PAR", "F BRE"]
    assert game.units["RUSSIA"] == ["A MOS", "A WAR", "F SEV", "F STP/SC"]
    assert game.centers["FRANCE"] == ["BRE", "MAR", "PAR"]
    assert (game.dislodged, game.adjustments, game.winners) == ({}, {}, [])
    assert not game.is_over
    assert Game().to_state() == game.to_state(), "standard is the default map"


# Legal orders


def test_places_of_legal_orders():
    game = Game("standard")
    assert game.legal_orders("A PAR") == game.legal_orders("PAR") == game.legal_orders("a Paris")
    assert game.legal_orders("F STP/SC") == game.legal_orders("F STP")
    for place in ("F PAR", "A BUR", "BUR", "F MAO", "A MAO"):
        assert game.legal_orders(place) == [], place
    for place in ("A XYZ", "XYZ", "", "A", "A PAR H", "PAR MUN"):
        with pytest.raises(ValueError, match="is not a unit or province"):
            game.legal_orders(place)
    for place in (None, b"PAR", 3, ["A PAR"]):
        with pytest.raises(ValueError, match="is not a unit or province"):
            game.legal_orders(place)


@given(seed=st.integers(0, 2**32), phases=st.integers(0, 12))
@settings(max_examples=10)
def test_only_legal_orders_are_accepted(seed, phases):
    """Any order of the vocabulary is refused, or means a legal one of that very unit."""
    game, rng = Game("standard"), random.Random(seed)
    play_randomly(game, rng, phases)
    texts = game._games.vocabulary.texts
    legal = {
        power: {text for place in places for text in game.legal_orders(place)}
        for power, places in orderable(game).items()
    }
    for power, own in legal.items():
        unnamed = {text.rpartition("/")[0] for text in own}
        units = {place[:5] for place in game.units[power]}
        near = [text for text in texts if text[:5] in units]
        for text in [*rng.sample(texts, 50), *rng.sample(near, min(150, len(near)))]:
            try:
                game.submit(power, [text])
            except ValueError:
                assert text not in own
                continue
            assert game.orders[power][0] in own | unnamed
            if text in own:
                assert game.orders[power] == [text]
            else:
                assert game.orders[power][0][:5] == text[:5]


# Submission


def test_strict_submission_is_all_or_nothing_and_replaces_the_one_before():
    game = Game("standard")
    game.submit("FRANCE", ["F BRE - MAO"])
    game.submit("FRANCE", ["A PAR - BUR"])
    with pytest.raises(ValueError, match=r"'A MAR - MOS': an army can never move from MAR to MOS"):
        game.submit("FRANCE", ["A PAR - PIC", "A MAR - MOS"])
    assert game.orders == {"FRANCE": ["A PAR - BUR"]}
    with pytest.raises(ValueError, match="'A PAR H': there is already an order for PAR"):
        game.submit("FRANCE", ["A PAR - PIC", "A PAR H"])
    game.submit("FRANCE", [])
    assert game.orders == {"FRANCE": []}


def test_lenient_submission():
    game = Game("standard")
    orders = ["A PAR - MOS", "F PAR - BUR", "A MUN - RUH", "nonsense", "", "A GAS H"]
    orders += ["F BRE - PAR", "F BRE - MAO", "F BRE - ENG"]
    game.submit("FRANCE", [*orders, "A MAR S A PAR - BUR"], strict=False)
    assert game.orders["FRANCE"] == [*orders, "A MAR S A PAR - BUR"]
    results = game.adjudicate()
    assert results["A PAR"] == ["void"]
    assert results["F BRE"] == [], "the first legal order counts, also after a void one"
    assert results["A MUN"] == [], "nobody orders the units of others"
    assert results["A MAR"] == ["void"], "that support matches nothing"
    assert set(results) == {unit for units in Game("standard").units.values() for unit in units}
    assert game.units["FRANCE"] == ["A MAR", "A PAR", "F MAO"]
    assert game.history[0]["orders"]["FRANCE"] == [*orders, "A MAR S A PAR - BUR"]


def test_void_orders_in_retreats_and_winter():
    game = standard("S1901R", {"RUSSIA": ["A MUN"]}, retreats={"GERMANY": {"A MUN": ["BER"]}})
    game.submit("GERMANY", ["A MUN R BOH"], strict=False)
    game.submit("RUSSIA", ["A MUN - BER"], strict=False)
    assert game.adjudicate() == {"A MUN": ["void", "disband"]}
    game = standard("W1901A", {"RUSSIA": ["A BER"]}, centers={"GERMANY": ["MUN"]})
    game.submit("GERMANY", ["A BER B", "F MUN B", "A MUN B", "A MUN B", "WAIVE"], strict=False)
    assert game.adjudicate() == {"F MUN": ["void"], "A MUN": [], "A BER": ["disband"]}


def test_void_orders_hold_and_can_be_supported():
    units = {"FRANCE": ["A PAR", "A GAS"], "GERMANY": ["A BUR", "A PIC"]}
    game = standard(units=units)
    game.submit("FRANCE", ["A PAR - MOS", "A GAS S A PAR"], strict=False)
    game.submit("GERMANY", ["A BUR - PAR", "A PIC S A BUR - PAR"])
    assert game.adjudicate() == {"A PAR": ["void"], "A GAS": [], "A BUR": ["bounce"], "A PIC": []}


@pytest.mark.parametrize(
    "orders", [None, 3, b"A PAR - BUR", {"A PAR": "H"}, [b"A PAR - BUR"], [None], [["A PAR H"]]]
)
def test_orders_that_are_no_texts(orders):
    for strict in (True, False):
        with pytest.raises(ValueError, match="must be a list of texts"):
            Game("small").submit("ENGLAND", orders, strict)


# Phases


# Ends


def test_nothing_can_be_ordered_once_the_game_is_over():
    centers = {"ENGLAND": ["LON", "PAR", "POR", "ROM"], "RUSSIA": ["MOS", "ANK"]}
    position = state("F1901M", {"ENGLAND": ["A GRE"], "RUSSIA": ["A MOS"]}, centers=centers)
    game = Game.from_state("small", position)
    game.submit("ENGLAND", ["A GRE - ANK"])
    game.adjudicate()
    assert game.winners == ["ENGLAND"] and game.adjustments == {}
    assert game.legal_orders("A ANK") == game.legal_orders("LON") == []
    with pytest.raises(ValueError, match="the game is over"):
        game.adjudicate()
    with pytest.raises(ValueError, match="the game is over"):
        game.submit("ENGLAND", ["A ANK H"])
    game.submit("ENGLAND", ["A ANK H"], strict=False)


def test_loading_does_not_end_the_game():
    position = state(units={"ENGLAND": ["A GRE"]}, centers={"ENGLAND": ["LON"] + MANY})
    game = Game.from_state("small", position)
    assert not game.is_over
    game.adjudicate()
    assert not game.is_over
    game.adjudicate()
    assert game.winners == ["ENGLAND"]


MANY = ["PAR", "POR", "ROM", "BUD", "BUL"]


# Copies, rows, maps


def test_a_row_of_many_games():
    games = VectorGame("standard", num_games=3, seed=4)
    orders = games.new_orders()
    orders[1, games.map.province_index["PAR"]] = games.vocabulary.number["A PAR - BUR"]
    games.step(orders)
    view = Game.from_row(games, 1)
    assert view.phase == "F1901M"
    assert view.units["FRANCE"] == ["A BUR", "A MAR", "F BRE"]
    view.adjudicate()
    assert games.state.phase[1] == 2, "a view is a copy"


CONSTANT = Enum, GameRules, Map, Board, OrderVocabulary, OrderTable, vector_game._OfMap


def contents(value, parts):
    """Return what a value is made of, for `==`; put what can be changed into `parts`, by id."""
    if isinstance(value, CONSTANT) or id(value) in parts:
        return type(value)
    if isinstance(value, np.ndarray | list | set | dict) or hasattr(value, "__dict__"):
        parts[id(value)] = value
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    if isinstance(value, list | tuple):
        return [contents(item, parts) for item in value]
    table = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    return value if table is None else {key: contents(table[key], parts) for key in table}


def go_on(game):
    for _ in range(2):
        if not game.is_over:
            game.adjudicate()


@given(
    seed=st.integers(0, 2**32),
    phases=st.integers(0, 8),
    press=st.sampled_from([None, "mutual", "offers"]),
    read=st.booleans(),
)
@settings(max_examples=12)
def test_a_copy_is_equal_and_shares_nothing_that_changes(seed, phases, press, read):
    """In the middle of a phase, with orders, offers and votes; also an attribute of one's own."""
    game, rng = Game("three", press=press, draw_votes=True), random.Random(seed)
    play_randomly(game, rng, phases)
    game.own = {"noise": [np.arange(3)]}
    if not game.is_over:
        for power, texts in random_orders(game, rng).items():
            game.submit(power, texts[:1])
            if rng.random() < 0.5:
                game.vote(power)
        game.concede(rng.choice(game.powers))
    if press and not game.is_over and game.phase[-1] == "M":
        game.offer(*rng.sample([p for p in game.powers if p not in game.conceded], 2), peace=True)
    if read:
        assert len(game.history) <= phases
    mine, past = {}, {}
    is_like, _ = contents(game, mine), contents(game._history, past)
    for copied, shared in ((Game.copy, past), (copy.copy, past), (copy.deepcopy, {})):
        other, theirs = copied(game), {}
        assert contents(other, theirs) == is_like
        assert mine.keys() & theirs.keys() <= shared.keys()
        go_on(other)
        assert contents(game, {}) == is_like
    kept = pickle.loads(pickle.dumps(game))
    for one in (kept, game):
        go_on(one)
    assert game.to_saved_game() == kept.to_saved_game() == other.to_saved_game()
