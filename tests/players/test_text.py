"""Text players: they play wherever others do, read their own lists, and remember their game."""

import numpy as np
import pytest

from diplomacy_engine import (
    Game,
    UserError,
    VectorGame,
    evaluate_player,
    make_bot,
    orders_for,
)
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.text import TextAdapter


class Echo:
    """Gives what a bot would, in texts, and keeps what it was asked."""

    name = "echo"

    def __init__(self, bot="dumbbot", scramble=lambda texts: texts):
        self.bot, self.scramble, self.asked = make_bot(bot), scramble, []

    def orders(self, question):
        self.asked.append((question.game.phase, question.power, question.history, question.slots))
        games, power = question.game.vector_game, question.power
        decisions = games.decisions()
        mine = decisions.take(decisions.power == games.map.power_index[power])
        orders = orders_of(games, self.bot, mine)
        question.game.adjudicate()  # changes nothing outside
        return self.scramble([games.vocabulary.texts[n] for n in orders[0] if n >= 0])


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_texts_play_as_numbers_do(name):
    """A bot that speaks gives the orders that it gives in numbers, in every kind of phase."""
    games = VectorGame(name, 3, seed=4, max_years=6, auto_reset=False)
    bot, spoken = make_bot("dumbbot"), TextAdapter(Echo())
    phases = set()
    while (games.state.end == 0).any():
        phases |= set(games.state.phase.tolist())
        orders = orders_of(games, bot)
        assert (orders_of(games, spoken) == orders).all()
        games.step(orders)
    assert phases >= {0, 2, 4} and phases & {1, 3}


def test_a_text_player_plays_a_match():
    """A power whose lists are read wrongly could not beat one that holds."""
    result = evaluate_player(
        "small", TextAdapter(Echo()), make_bot("hold"), 4, max_years=8, threads=1
    ).result()
    assert result["player"] == "echo" and result["overall"]["win"]["value"] == 1


def test_what_is_illegal_or_missing_goes_to_the_fallback():
    games = VectorGame("small", 1, seed=1, auto_reset=False)
    texts = games.vocabulary.texts
    wrong = Echo(scramble=lambda texts: ["A PAR - MOON", "nonsense", 7, "A MOS H"])
    decisions = games.decisions()
    mine = decisions.take(decisions.power == 0)
    assert (orders_of(games, TextAdapter(wrong), mine) == -1).all()
    held = orders_of(games, TextAdapter(wrong, fallback="hold"), mine)
    assert [texts[n] for n in held[0] if n >= 0] == ["A LON H"]
    assert (held == orders_of(games, make_bot("hold"), mine)).all()


def test_it_remembers_its_own_game_only():
    echo = Echo("hold")
    player = TextAdapter(echo)
    games = VectorGame("small", 2, seed=1, max_years=3, auto_reset=False)
    player.begin(games, np.arange(2))
    for _ in range(2):
        games.step(orders_of(games, player))
    phase, _, history, slots = echo.asked[-1]
    assert phase == "F1901M" and [seen["name"] for seen in history] == ["S1901M"]
    assert slots[0][0] == "A MOS" and "A MOS H" in slots[0][1]
    assert history[0]["state"] == Game("small").to_state()
    player.begin(games, np.array([1]))
    games.step(orders_of(games, player))
    lengths = [len(history) for _, _, history, _ in echo.asked[-4:]]
    assert lengths[-1] == 0 and lengths[0] == 2


def test_winter_texts_are_read_in_turn():
    game = Game.from_state(
        "standard",
        {
            "name": "W1901A",
            "units": {"FRANCE": ["A BUR"]},
            "centers": {"FRANCE": ["PAR", "MAR", "BRE"]},
        },
    )
    games = game.vector_game
    says = Echo(scramble=lambda _: ["A PAR B", "F PAR B", "A PAR B", "F BRE B"])
    orders = orders_of(games, TextAdapter(says))
    assert [games.vocabulary.texts[n] for n in orders[0] if n >= 0] == ["F BRE B", "A PAR B"]


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
    with pytest.raises(UserError, match="'dumbbot' is no player"):
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
