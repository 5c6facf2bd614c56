"""What a player orders in one game, as texts."""

import pytest

from diplomacy_engine import (
    Game,
    UserError,
    make_bot,
    orders_for,
)


def test_orders_for_one_game():
    game = Game("standard")
    before = game.to_state()
    found = orders_for(game, make_bot("dumbbot"))
    assert list(found) == game.powers and game.to_state() == before and game.orders == {}
    for power, texts in found.items():
        assert sorted(" ".join(text.split()[:2]) for text in texts) == game.units[power]
        game.submit(power, texts)
    assert orders_for(game, make_bot("dumbbot"), ["ITALY"]) == {"ITALY": found["ITALY"]}
    with pytest.raises(UserError, match="did you mean"):
        orders_for(game, make_bot("dumbbot"), ["ITALIA"])


def test_orders_for_says_what_it_was_given():
    game = Game("small")
    with pytest.raises(UserError, match="'dumbbot' is not a player"):
        orders_for(game, "dumbbot")
    with pytest.raises(UserError, match=r"a list of names, such as \['ENGLAND'\]"):
        orders_for(game, make_bot("dumbbot"), "ENGLAND")


def test_orders_for_winter_and_for_powers_without_a_decision():
    state = {
        "name": "W1901A",
        "units": {"FRANCE": ["A BUR"]},
        "centers": {"FRANCE": ["PAR", "MAR"]},
    }
    game = Game.from_state("standard", state)
    found = orders_for(game, make_bot("dumbbot"), ["FRANCE", "ITALY"])
    assert found["ITALY"] == [] and len(found["FRANCE"]) == 1
    game.submit("FRANCE", found["FRANCE"])
    game = Game("small", max_years=1)
    while not game.is_over:
        game.adjudicate()
    assert orders_for(game, make_bot("random")) == {"ENGLAND": [], "RUSSIA": []}
