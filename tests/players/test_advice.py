"""Players asked about one game: what they order, as texts, and what they know of its deals."""

import pytest

from diplomacy_engine import Game, UserError, make_bot, orders_for
from diplomacy_engine.players.advice import has_decision, orders_by_player
from diplomacy_engine.press.negotiators.negotiation import Silent


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


class Listening(Silent):
    """Keeps what it is told of the deals."""

    def hear(self, talk):
        self.heard = talk


def test_whether_there_is_something_to_order():
    position = "small W1901A; ENGLAND = LON PAR; RUSSIA A MOS = MOS"
    winter = Game.from_position(position).to_state()
    assert [has_decision(winter, power) for power in ("ENGLAND", "RUSSIA")] == [True, False]
    for others in ({"builds": None}, {"builds": {}}, {"name": "S1901R", "retreats": None}):
        assert not has_decision(winter | others, "ENGLAND"), "a file of another program"
    assert has_decision(winter | {"name": "S1901M"}, "RUSSIA")


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


@pytest.mark.parametrize(
    ("bounces", "support", "repeats"),
    [(2, (), False), (1, (), True), (2, ("A GAS S A PAR - BUR",), True)],
)
def test_what_bounced_twice_is_not_ordered_again_without_more_support(bounces, support, repeats):
    units = {"FRANCE": ["A GAS", "A PAR"], "GERMANY": ["A MUN"]}
    centers = {"FRANCE": ["MAR", "PAR"], "GERMANY": ["MUN"]}
    game = Game.from_state("standard", {"name": "S1901M", "units": units, "centers": centers})
    for _ in range(bounces):
        game.submit("FRANCE", ["A PAR - BUR"])
        game.submit("GERMANY", ["A MUN - BUR"])
        game.adjudicate()
    found = orders_by_player(game, Wants("A PAR - BUR", *support), ["FRANCE"], 1, False)["FRANCE"]
    assert len(found) == 2 and set(support) <= set(found)
    assert ("A PAR - BUR" in found) == repeats


def test_a_unit_that_stands_there_anew_may_be_attacked_again():
    units = {"FRANCE": ["A PAR"], "GERMANY": ["A BUR"]}
    centers = {"FRANCE": ["PAR"], "GERMANY": ["MUN"]}
    game = Game.from_state("standard", {"name": "S1901M", "units": units, "centers": centers})
    for _ in range(2):
        game.submit("FRANCE", ["A PAR - BUR"])
        game.adjudicate()
    found = [orders_by_player(game, Wants("A PAR - BUR"), ["FRANCE"], 1, False)]
    game.submit("GERMANY", ["A BUR - RUH"])
    game.adjudicate()
    found.append(orders_by_player(game, Wants("A PAR - BUR"), ["FRANCE"], 1, False))
    assert ["A PAR - BUR" in one["FRANCE"] for one in found] == [False, True]


def test_orders_for_one_game_keep_its_deals():
    game = Game("standard", press="offers")
    game.accept("GERMANY", game.offer("FRANCE", "GERMANY", we_keep_out=["BUR"]))
    found = orders_for(game, Wants("A PAR - BUR"), ["FRANCE"])["FRANCE"]
    assert len(found) == 3 and "A PAR - BUR" not in found
    game.submit("FRANCE", found)
