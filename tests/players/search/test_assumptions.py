"""Opponents are found out by the orders that they give."""

import numpy as np
import pytest

from diplomacy_engine import VectorGame, load_player, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.games.draws import phase_seeds
from diplomacy_engine.players.asking import ask_players, orders_of
from diplomacy_engine.players.search.assumptions import Assumptions
from diplomacy_engine.players.search.draws import PlayerDraws
from diplomacy_engine.press.negotiators.negotiation import negotiate
from diplomacy_engine.press.press import Press

BOTS = ("random", "hold", "dumbbot", "dumbbot-paquette")


def assumptions(*names: str, **options) -> Assumptions:
    return Assumptions({name: PlayerDraws(make_bot(name)) for name in names}, **options)


@pytest.mark.parametrize("name", ["small", "three", "standard"])
@pytest.mark.parametrize("truth", BOTS)
def test_a_bot_is_found_out_within_a_year(name, truth):
    games = VectorGame(name, 20, seed=5, threads=1, auto_reset=False, keep_history=True)
    assumed, rows = assumptions(*BOTS), np.arange(20)
    assert (assumed.probabilities(games, rows) == 1 / len(BOTS)).all()
    first = games.state.year[0]
    while (games.state.year == first).any():
        games.step(orders_of(games, make_bot(truth)))
    shares = assumed.probabilities(games, rows)[:, :, BOTS.index(truth)]
    like = {"dumbbot", "dumbbot-paquette"} if truth.startswith("dumb") else {truth}
    both = assumed.probabilities(games, rows)[:, :, [BOTS.index(bot) for bot in like]].sum(2)
    if name != "standard":  # one or two units tell less than three or four
        assert both.mean() > 0.6 and shares.mean() > 0.4
    else:
        assert both.mean() > 0.85 and shares.mean() > 0.5


def test_every_power_is_found_out_by_itself():
    games = VectorGame("three", 10, seed=2, threads=1, auto_reset=False, keep_history=True)
    assumed, rows = assumptions("hold", "dumbbot"), np.arange(10)
    for _ in range(6):
        orders = orders_of(games, make_bot("dumbbot"))
        asked = games.decisions()
        first = asked.take(asked.power == 0)
        if first.count:
            games.write_orders(orders, first, make_bot("hold").act(games, first))
        games.step(orders)
    shares = assumed.probabilities(games, rows)
    assert (shares[:, 0, 0] > 0.9).all() and (shares[:, 1:, 1] > 0.9).all()
    games.reset(rows[:5])
    assert (assumed.probabilities(games, rows[:5]) == 0.5).all()
    assert (assumed.probabilities(games, rows[5:])[:, 0, 0] > 0.9).all()


def test_hypotheses_see_the_years_that_are_left():
    limits = set()

    class Watched:
        name = "watched"

        def act(self, games, decisions):
            limits.add(games.max_years)
            return make_bot("hold").act(games, decisions)

    games = VectorGame("small", 2, max_years=5, threads=1, auto_reset=False, keep_history=True)
    bots = {"watched": PlayerDraws(Watched()), "hold": PlayerDraws(make_bot("hold"))}
    assumed = Assumptions(bots)
    for _ in range(2):
        games.step(orders_of(games, make_bot("hold")))
    assumed.probabilities(games, np.arange(2))
    assert limits == {5}


def test_what_is_not_in_the_history_is_not_judged():
    """A phase of which the orders are not known, since the one after it is missing."""
    games = VectorGame("three", 4, seed=2, threads=1, auto_reset=False, keep_history=True)
    assumed, rows, history = assumptions("hold", "dumbbot"), np.arange(4), games.history
    games.step(orders_of(games, make_bot("dumbbot")))
    games.history = None
    while games.state.year[0] == games.board.first_year:
        games.step(orders_of(games, make_bot("dumbbot")))
    for games.history in (None, history):
        assert (assumed.probabilities(games, rows) == 0.5).all()


def test_profiles_are_drawn_as_likely_as_the_players_are():
    games = VectorGame("three", 2, seed=1, threads=1, auto_reset=False, keep_history=True)
    asked = games.decisions()
    seeds = phase_seeds(games, asked.game, asked.power, 7, 400)
    bots = {name: PlayerDraws(make_bot(name)) for name in ("hold", "dumbbot")}
    both, one = Assumptions(bots), Assumptions({"hold": bots["hold"]})
    drawn, holding = both.draw(games, asked, seeds), one.draw(games, asked, seeds)
    assert np.array_equal(holding, bots["hold"].draw(games, asked, seeds)[0])
    shares = (drawn == holding).all(2).mean(1)
    assert np.abs(shares - 0.5).max() < 0.1
    own = (drawn != NONE).any(1)
    assert np.array_equal(own, (holding != NONE).any(1))
    for _ in range(6):
        games.step(orders_of(games, make_bot("dumbbot")))
    asked = games.decisions()
    seeds = phase_seeds(games, asked.game, asked.power, 7, 400)
    shares = (both._pick_hypotheses(games, asked.game, asked.power, seeds) == 0).mean(1)
    assert 0 < shares.max() < 0.06


def test_a_pool_never_learns():
    games = VectorGame("small", 4, seed=2, threads=1, auto_reset=False, keep_history=True)
    assumed, rows = assumptions("hold", "dumbbot", learns=False), np.arange(4)
    for _ in range(3):
        games.step(orders_of(games, make_bot("dumbbot")))
    assert (assumed.probabilities(games, rows) == 0.5).all()


def test_deals_that_are_tried_on_copies_leave_what_was_learned():
    """`nash` asks its player about copies of the games, which are not the games that it plays."""
    games = VectorGame("three", 2, seed=1, threads=1, auto_reset=False, keep_history=True)
    search = "fast(draws=6 candidates=3 profiles=4 assume=infer:self,dumbbot):three-pure-1"
    player, bot = load_player(f"nash(profiles=2)+{search}"), make_bot("dumbbot")
    press, seats = Press(games, "offers"), np.tile([0, 1, 1], (2, 1))
    for _ in range(7):
        decisions = games.decisions()
        negotiate(press, decisions, [player, bot], seats)
        decider = seats[decisions.game, decisions.power]
        games.step(ask_players(games, decisions, [player, bot], decider))
    shares = player.player.assumed.probabilities(games, np.arange(2))
    assert (shares[:, 1:, 1].max(1) > 0.9).all(), "they are taken for dumbbot"
