"""Players that talk, asked about one game."""

from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.players.negotiation import Silent
from diplomacy_engine.press.game import Game


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
