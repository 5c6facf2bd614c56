"""Deals that may be broken: who keeps them, who does not, and what others make of it."""

import numpy as np
import pytest

from diplomacy_engine import Game, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.press.deals import empty_deals
from diplomacy_engine.press.negotiators.negotiation import Talk, negotiate
from diplomacy_engine.press.negotiators.neighbors import Peaceful, PowerReach
from diplomacy_engine.press.negotiators.planners import Breaker, Grudge, Nash, Sanction
from diplomacy_engine.press.press import Press
from tests.support.press import FixedOrders

# ENGLAND can walk into a center of ITALY.
OPEN = "three S1901M; ENGLAND A VIE = LON; ITALY A GRE = BUD ROM; RUSSIA A MOS = MOS"
ATTACK = "A VIE - BUD"


def in_peace(player, position=OPEN):
    """Return a game in which ENGLAND and ITALY have just made a peace that need not be kept."""
    games = Game.from_position(position).vector_game
    press = Press(games, "mutual", binding=False)
    # Both wish it: ITALY by its voice, ENGLAND whatever `player` would say.
    player.wishes = lambda talk: np.ones((len(talk.game), 3), bool)
    italy = Peaceful(make_bot("hold"), "peaceful+hold")
    italy.wishes = player.wishes
    negotiate(press, games.decisions(), [player, italy], np.array([[0, 1, 1]]))
    assert press.deals.peace[0, 0, 1]
    return games, press


@pytest.mark.parametrize("kind, breaks", [(Breaker, True), (Nash, False)])
def test_a_breaker_breaks_where_it_pays(kind, breaks):
    """A breaker takes the center that its peace closes; who has given its word does not."""
    player = kind(FixedOrders(ATTACK), "talks+fixed", profiles=2)
    games, press = in_peace(player)
    honest = np.full((1, 3), not breaks)
    decisions = games.decisions()
    bound = press.bound(decisions, honest)
    assert (len(bound.order) < len(decisions.order)) == (not breaks)
    orders = orders_of(games, player, bound)
    press.correct(orders, bound, honest)
    broken = press.judge(orders, decisions)
    assert broken[0].tolist() == [[0, int(breaks), 0], [0, 0, 0], [0, 0, 0]]
    assert press.tally.words[0].tolist() == [2, 2, 2]
    assert press.tally.words_kept[0].tolist() == [2 - breaks, 2, 2]
    games.step(orders)
    assert games.state.unit_power[0, games.map.province_index["BUD"]] == (0 if breaks else NONE)
    ago = press.breaches(np.zeros(3, np.int64), np.arange(3))
    assert ago.tolist() == [[NONE] * 3, [0 if breaks else NONE, NONE, NONE], [NONE] * 3]


def test_a_breaker_keeps_what_it_gains_nothing_by():
    """Of orders that are worth the same it gives those that keep its deals."""
    player = Breaker(FixedOrders(ATTACK), "breaker+fixed", profiles=2)
    games, press = in_peace(player, OPEN.replace("A GRE", "A BUD"))  # where it would bounce
    orders = orders_of(games, player)
    assert not press.judge(orders).any()


def test_grudges_are_borne_for_some_years():
    """Who broke a deal gets none for so many years."""
    player = Grudge(make_bot("hold"), "grudge+hold", profiles=1, years=2)
    talk, _ = talk_after(player, [NONE, 0, 1])
    assert player.distrusts(talk).tolist() == [[False, True, True]]
    talk, around = talk_after(player, [NONE, 2, NONE])
    assert not player.distrusts(talk).any()
    assert player.partners(talk, around).tolist() == [[False, True, False]]
    talk, around = talk_after(player, [NONE, 1, NONE])
    assert not player.partners(talk, around).any() and not player.wishes(talk).any()
    assert not player.offers(talk).count


def talk_after(player, breaches):
    """Return what ENGLAND is asked, others having broken deals so many years ago."""
    games = Game.from_position(OPEN).vector_game
    press, zero = Press(games, "mutual", binding=False), np.zeros(1, np.int64)
    talk = Talk(games, games.decisions(), zero, zero, press.known(zero, zero))
    return talk._replace(breaches=np.array([breaches], np.int32)), PowerReach(games, zero)


def test_sanctions_cost_the_breaker():
    """A breaker's loss counts as an own gain, and orders are chosen by it."""
    player = Sanction(FixedOrders(), "sanction+fixed", profiles=1)
    player.trials.player = FixedOrders(ATTACK)
    for breaches, given, worth in (([NONE, 0, NONE], True, 3.0), ([NONE] * 3, False, 1.0)):
        talk, _ = talk_after(player, breaches)
        player.hear(talk)
        orders = orders_of(talk.games, player)
        number = talk.games.vocabulary.number[ATTACK]
        assert (number in orders) == given
        assert player.worth(talk, np.array([[1.0, -2.0, 1.0]])) == worth


def test_a_promise_for_a_unit_that_is_gone_is_not_broken():
    """Only units that are there can break a promise."""
    games = Game.from_position(OPEN).vector_game
    press = Press(games, "offers", binding=False)
    deals = empty_deals(games.board, 1)
    deals.promised[0, games.map.province_index["ROM"]] = games.vocabulary.number["A ROM H"]
    deals.promised_to[:] = 1
    deals.dealt[0, 0, 1] = deals.dealt[0, 1, 0] = True
    press.take_up(deals)
    assert not press.judge(games.new_orders()).any()
