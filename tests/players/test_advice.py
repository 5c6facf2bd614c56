"""Players asked about one game: what they order, as texts, and what they know of its deals."""

from support.transcripts import expressions, follow

from diplomacy_engine import Game, make_bot, orders_for
from diplomacy_engine.players.advice import has_decision, orders_by_player
from diplomacy_engine.press.negotiators.negotiation import Silent


class Listening(Silent):
    """Keeps what it is told of the deals."""

    def hear(self, talk):
        self.heard = talk


def test_who_listens_knows_its_deals_when_it_orders():
    game, player = Game("standard", press="offers"), Listening(make_bot("dumbbot"), "listening")
    game.accept("ENGLAND", game.offer("FRANCE", "ENGLAND", peace=True))
    game.accept("ITALY", game.offer("AUSTRIA", "ITALY", peace=True))
    orders_by_player(game, player, ["FRANCE"], 1)
    powers = game.map.power_index
    assert player.heard.power.tolist() == [powers["FRANCE"]]
    assert player.heard.known.peace[0, powers["FRANCE"], powers["ENGLAND"]]
    assert not player.heard.known.peace[0, powers["AUSTRIA"], powers["ITALY"]]  # not its own
    game.adjudicate()
    del player.heard
    orders_by_player(Game("standard"), player, ["FRANCE"], 1)  # where nobody talks
    assert not hasattr(player, "heard")


class Wants:
    """Orders what it wants where it may, else the first order of a list."""

    def __init__(self, *texts):
        self.texts, self.name = texts, "wants"

    def act(self, games, decisions):
        wanted = [games.vocabulary.texts.index(text) for text in self.texts]
        firsts = decisions.order[decisions.order_start[:-1]].copy()
        for s in range(len(firsts)):
            listed = decisions.order[slice(*decisions.order_start[s : s + 2])]
            firsts[s] = next((number for number in wanted if number in listed), firsts[s])
        return firsts


def test_orders_for_one_game():
    functions = Game, Wants, has_decision, make_bot, orders_by_player, orders_for
    follow(__file__, "transcripts", "advice", expressions(Game, *functions))
