"""The text facade: phases, legal orders, submission, results, positions, ends of games."""

import copy
import pickle
import random
from enum import Enum

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.games import orderable, play_randomly, random_orders

from diplomacy_engine import Game, GameRules, Map, VectorGame
from diplomacy_engine.games import vector_game
from diplomacy_engine.rules.map import Board
from diplomacy_engine.rules.vocabulary import OrderTable, OrderVocabulary


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
