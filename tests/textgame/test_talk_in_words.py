"""What `Game` says of the talk of a phase, what a deal leaves to whom, and messages in words."""

import numpy as np

from diplomacy_engine import Game, make_bot
from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.press.daide import message_words

UNITS = {"ENGLAND": ["A PAR", "A PIC"], "ITALY": ["A MAR", "A PIE"], "RUSSIA": ["A MUN"]}
TERMS = {"ours": ["A PAR - GAS"], "theirs": ["A MAR S A PAR - GAS"]}


def game_with_deal() -> Game:
    game = Game.from_state("three", {"name": "S1901M", "units": UNITS})
    game.change_rules(press="offers")
    game.accept("ITALY", game.offer("ENGLAND", "ITALY", **TERMS))
    game.offer("RUSSIA", "ITALY", peace=True)
    return game


def test_players_are_asked_for_what_deals_leave():
    game = game_with_deal()
    bound, full = game.decisions(), game.vector_game.decisions()
    assert len(bound.order) < len(full.order) and bound.count == full.count
    seed = game.vector_game.state.seed.copy()
    for name in ("dumbbot", "random", "hold"):
        trial = game.copy()
        for power, texts in orders_by_player(trial, make_bot(name), trial.powers, 3).items():
            assert all(text in trial.legal_orders(text[:5]) for text in texts)
            trial.submit(power, texts)
        trial.adjudicate()
        orders = trial.history[0]["orders"]
        assert "A PAR - GAS" in orders["ENGLAND"] and len(orders["ENGLAND"]) <= 2
        assert "A MAR S A PAR - GAS" in orders["ITALY"]
    assert np.array_equal(game.vector_game.state.seed, seed) and game.deals("ITALY")
    game.submit("RUSSIA", ["A MUN H"])
    game.withdraw("RUSSIA")
    assert game.orders == {}


def test_messages_in_words():
    game = game_with_deal()
    game.decline("ITALY", 2)
    said = [message_words(game.vector_game, message) for message in game.messages]
    deal = "(Army Paris: move to Gascony; Army Marseilles: support army Paris to Gascony)"
    peace = "(peace between Italy and Russia)"
    assert said[:2] == [f"offers a deal {deal}", f"agrees to the deal {deal}"]
    assert said[2:] == [f"offers a deal {peace}", f"declines the deal {peace}"]
    for text in ("hello", "PRP ( PCE ( MARS ) )", "YES (", "PRP", ""):
        message = {"sender": "ITALY", "recipient": "RUSSIA", "message": text}
        assert message_words(game.vector_game, message) == text
    peace = game.messages[2]
    for role in ("sender", "recipient"):  # a deal is between two powers
        assert message_words(game.vector_game, peace | {role: "GLOBAL"}) == peace["message"]
    winter = Game.from_position("three W1901A; ENGLAND A PAR = PAR LON; ITALY A MAR =")
    text = game.messages[0]["message"]
    message = {"sender": "ENGLAND", "recipient": "ITALY", "message": text}
    assert message_words(winter.vector_game, message) == text
    message = {"sender": "SYSTEM", "recipient": "GLOBAL", "message": "PRP ( x )" + "y" * 9000}
    assert len(message_words(game.vector_game, message)) == 2000
