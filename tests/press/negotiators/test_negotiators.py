"""Negotiators: what they offer and agree to, by name, in matches and on the command line."""

import json

import numpy as np
import pytest
from support.tables import read_table

from diplomacy_engine import Game, UserError, VectorGame, evaluate_player, load_player, make_bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.constants import NONE
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.loading import NEGOTIATORS
from diplomacy_engine.players.search.leaves import CenterClaims
from diplomacy_engine.press.deals import make_offers
from diplomacy_engine.press.negotiators.negotiation import Negotiator, Talk, negotiate
from diplomacy_engine.press.negotiators.neighbors import Peaceful, PowerReach
from diplomacy_engine.press.negotiators.planners import Dealer, LikelyOptions, Nash
from diplomacy_engine.press.press import Press
from diplomacy_engine.rules.game_rules import PROTOCOLS
from tests.support.press import ATTACK, FixedOrders, asked_by, breaks

ATTACKS = ["A GRE - SER", "A VIE - BUD"]


def table(position: str, protocol: str = "offers") -> tuple[VectorGame, Press]:
    """Return a position and its press."""
    games = Game.from_position(position).vector_game
    return games, Press(games, protocol)


def talk(press: Press, *powers: int) -> Talk:
    """Return that these powers of the one game are asked."""
    game, power = np.zeros(len(powers), np.int64), np.array(powers)
    return Talk(press.games, press.games.decisions(), game, power, press.known(game, power))


def offered(games, offers) -> list[set[str]]:
    """Return the promised orders of each offer."""
    return [
        {
            games.vocabulary.texts[n]
            for n in offers.order[offers.clause_start[o] : offers.clause_start[o + 1]]
            if n != NONE
        }
        for o in range(offers.count)
    ]


def test_nash_finds_the_swap_of_supports():
    """Where each can take a center with the other's help alone, that is offered and agreed to."""
    games, press = table(ATTACK)
    nash = Nash(FixedOrders(*ATTACKS), "nash+fixed", profiles=2)
    offers = nash.offers(talk(press, 0, 1))
    swap = {*ATTACKS, "A ALB S A GRE - SER", "A GAL S A VIE - BUD"}
    assert offered(games, offers) == [swap, swap]
    assert nash.answers(talk(press, 1), offers.take([0])).tolist() == [True]
    negotiate(press, games.decisions(), [nash], np.zeros((1, 3), np.int64))
    assert press.deals.dealt[0, 0, 1] and press.tally.agreed[0] >= 1
    orders = games.new_orders()
    press.correct(orders)
    games.step(orders)
    units = games.state.unit_power[0]
    provinces = games.map.province_index
    assert (units[provinces["SER"]], units[provinces["BUD"]]) == (0, 1)


def test_both_pick_the_best_of_their_two_offers():
    """With propose-choose each makes an offer to each other, and both pick the same one."""
    games, press = table(ATTACK, "propose-choose")
    nash = Nash(FixedOrders(*ATTACKS), "nash+fixed", profiles=2)
    offers = nash.proposals(talk(press, 0, 1))
    swap = {*ATTACKS, "A ALB S A GRE - SER", "A GAL S A VIE - BUD"}
    mutual = [swap == texts for texts in offered(games, offers)]
    assert sum(mutual) == 2 and len(set(zip(offers.sender, offers.receiver))) == offers.count
    both = nash.choices(talk(press, 0, 0, 1, 1), offers.take(np.tile(np.flatnonzero(mutual), 2)))
    assert both.tolist() == [True, False, True, False]  # alike, so the first sender's
    negotiate(press, games.decisions(), [nash], np.zeros((1, 3), np.int64))
    assert press.deals.dealt[0, 0, 1] and press.tally.agreed[0] == press.deals.dealt.sum() // 2


class OwnOffer(Peaceful):
    """Wants peace with everybody, but by its own offer alone."""

    def wishes(self, talk):
        return np.arange(talk.games.num_powers) != talk.power[:, None]

    def choices(self, talk, offers):
        return super().choices(talk, offers) & (offers.sender == talk.power)


@pytest.mark.parametrize("who, deals", [([0, 0, 0], 0), ([0, 1, 1], 3), ([1, 0, 1], 2)])
def test_a_pair_that_picks_differently_has_no_deal(who, deals):
    """Where each insists on its own offer there is no deal; of equal ones the first is picked."""
    games, press = table(ATTACK, "propose-choose")
    stubborn, easy = OwnOffer(make_bot("hold"), "own"), OwnOffer(make_bot("hold"), "any")
    easy.choices = lambda talk, offers: Peaceful.choices(easy, talk, offers)
    negotiate(press, games.decisions(), [stubborn, easy], np.array([who]))
    assert press.tally.offered[0] == 6 and press.tally.agreed[0] == deals


def test_no_deal_where_one_side_loses():
    """Who takes an open center of a neighbor wishes no peace with it; the neighbor does."""
    games, press = table(
        "three S1901M; ENGLAND A VIE = LON; ITALY A GRE = BUD ROM; RUSSIA A MOS = MOS", "mutual"
    )
    nash = Nash(FixedOrders("A VIE - BUD"), "nash+fixed", profiles=2)
    wish = nash.wishes(talk(press, 0, 1))
    assert not wish[0].any() and wish[1].tolist() == [True, False, False]
    negotiate(press, games.decisions(), [nash], np.zeros((1, 3), np.int64))
    assert not press.deals.dealt.any()


def test_the_product_of_gains_is_that_of_single_games():
    """The best offer is that of trying each template alone, in games of their own."""
    seen = 0
    games = VectorGame("three", 1, seed=5, auto_reset=False)
    bot = make_bot("chaos")
    nash, copy = Nash(bot, "nash+chaos", profiles=3), games.spare(1)
    while seen < 3:
        decisions = games.decisions()
        press = Press(games, "offers")
        units = np.bincount(games.state.unit_power[0] + 1, minlength=4)[1:]
        if press.talking()[0] and (units > 0).all() and units.max() <= 3:
            asked = talk(press, 0)
            around = PowerReach(games, asked.game)
            profiles = nash.trials.draw(games, asked.game)[0].copy()
            best, found = 0.0, None
            for q in np.flatnonzero(around.near()[0, 0]):
                options = LikelyOptions(asked, 0, around, profiles)
                for clauses in nash.templates(options, 0, int(q)):
                    gain = single_gains(games, copy, clauses, int(q), profiles)
                    if gain is not None and min(gain[0], gain[q]) > 1e-6:
                        product = gain[0] * gain[q]
                        if product > best + 1e-12:
                            best, found = product, (int(q), clauses)
            offers = nash.offers(asked)
            assert offers.count == (found is not None)
            if found is not None:
                wanted = make_offers([(0, 0, *found)])
                assert all(map(np.array_equal, wanted, offers))
                seen += 1
        games.step(orders_of(games, bot, decisions))
        if games.state.end[0] or units.max() > 3:
            games.reset()


def single_gains(games, copy, clauses, q, profiles):
    """Return the gains (P,) of a deal of power 0, in plain play; None if it is impossible."""
    offers = make_offers([(0, 0, q, clauses)])
    if Press(games, "offers").settle(offers, np.ones(1, bool))[0] != 0:
        return None
    asked, gains = asked_by(games, offers, 0), []
    promised = {one.province: one.order for one in asked if one.kind == 0}
    for profile in profiles:
        values = []
        for bound in (False, True):
            copy.copy_from(games, [0], [0])
            orders = copy.new_orders()
            orders[0] = profile
            for v in np.flatnonzero(games.state.unit_power[0] != NONE) if bound else ():
                power = games.state.unit_power[0, v]
                if any(breaks(games, power, v, profile[v], one) for one in asked):
                    orders[0, v] = promised.get(int(v), NONE)
            copy.step(orders)
            values.append(CenterClaims().shares(copy, np.zeros(1, np.int64))[0])
        gains.append(values[1] - values[0])
    return np.mean(gains, 0)


def test_peaceful_spares_all_but_the_weakest():
    """It attacks the neighbor with fewest centers for each own unit in reach."""
    _, press = table(
        "three S1901M; ENGLAND A VIE = LON; ITALY A TRI = ROM; RUSSIA A BUD = MOS BUD", "mutual"
    )
    player = Peaceful(make_bot("hold"), "peaceful+hold")
    assert player.wishes(talk(press, 0)).tolist() == [[False, False, True]]
    offers = player.offers(talk(press, 0))
    assert offers.receiver.tolist() == [2]
    assert player.answers(talk(press, 0, 0), make_offers(
        [(0, 1, 0, [(3, 2, -1, -1)]), (0, 2, 0, [(3, 2, -1, -1)])]
    )).tolist() == [False, True]  # fmt: skip


def test_dealers_count_centers():
    """A dealer agrees to more centers, and to as many from a power with two centers less."""
    games, press = table(ATTACK)
    dealer = Dealer(FixedOrders(*ATTACKS), "dealer+fixed", profiles=1)
    offers = dealer.offers(talk(press, 0))
    assert offers.count == 1
    assert "A ALB S A GRE - SER" in offered(games, offers)[0]
    same = np.zeros(2)
    assert dealer.agrees(talk(press, 2, 0), np.array([0, 2]), same).tolist() == [True, False]
    assert dealer.agrees(talk(press, 0, 0), np.array([2, 2]), np.array([1.0, -1.0])).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("name", ["silent", "coin"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_silent_players_play_as_without_press(protocol, name):
    """With nobody who talks, or nobody to talk to, press changes nothing at all."""
    plain = evaluate_player("three", make_bot("random"), make_bot("chaos"), 6, max_years=4).result()
    talked = evaluate_player(
        "three",
        load_player(f"{name}+random"),
        make_bot("chaos"),
        6,
        max_years=4,
        press=protocol,
        press_rounds=1,
    ).result()
    assert talked["overall"] == plain["overall"] and talked["by_power"] == plain["by_power"]
    assert talked["press"]["agreed"] == talked["press"]["broken"] == 0
    assert (talked["press"]["offered"] > 0) == (name != "silent")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_saved_matches_keep_the_talk(protocol):
    """Each phase of a saved game has the deals that bound its orders."""
    player = load_player("coin+chaos")
    report = evaluate_player(
        "three", player, player, 6, max_years=5, samples=6, press=protocol, press_rounds=1
    )
    result, saved_games = report.result(), report.saved_games
    assert result["press"]["agreed"] > 0
    deals = 0
    for saved in saved_games:
        assert "NO_PRESS" not in saved["rules"]
        for phase in saved["phases"][:-1]:
            alone = saved | {"phases": [phase | {"orders": {}}]}
            game = Game.from_saved_game(alone, press=protocol)
            for power, orders in phase["orders"].items():
                deals += len(game.deals(power))
                game.submit(power, orders)
    assert deals > 0


def test_names():
    """A negotiator stands before any player's name."""
    for kind in NEGOTIATORS:
        player = load_player(f"{kind}+random")
        assert isinstance(player, Negotiator) and player.name == f"{kind}+random"
    assert load_player("nash(profiles=3)+random").trials.profiles == 3
    assert not isinstance(make_bot("random"), Negotiator)
    for name, words in read_table(__file__, "wrong_names_of_negotiators"):
        with pytest.raises(UserError, match=words):
            load_player(name)


def test_the_command_line(tmp_path, capsys):
    """`evaluate --press` prints and writes the talk, and whether deals were kept."""
    short = ["--map", "three", "--games", "3", "--max-years", "2", "--threads", "1"]
    who = ["--player", "breaker+random", "--against", "coin+random"]
    games, file = tmp_path / "games.jsonl", tmp_path / "result.json"
    words = [*who, *short, "--press", "mutual", "--binding", "no", "--save-games", str(games)]
    assert main(["evaluate", *words, "--json", str(file)]) == 0
    said = capsys.readouterr().out
    assert "press mutual, per game:" in said and "of the promises were kept" in said
    press = json.loads(file.read_text())["press"]
    assert press["agreed"] > 0 and press["kept_by_player"][1] == 1
    assert json.loads(games.read_text().splitlines()[0])["binding"] is False
    for extra, words in read_table(__file__, "flags_of_talk_refused"):
        assert main(["evaluate", *who, *short, *extra]) != 0
        assert words in capsys.readouterr().err
