"""What holds for every player, of whatever kind, in all phases and on all maps."""

import copy
import pickle

import cloudpickle
import numpy as np
import pytest
from support.language import FakeServer, holds
from support.tables import slow_but

import diplomacy_engine as engine
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.players.advice import advice, seed_player
from diplomacy_engine.players.asking import begin_games, orders_of
from diplomacy_engine.players.checking import sample_positions
from diplomacy_engine.players.loading import NEGOTIATORS
from diplomacy_engine.players.names import UNBOUND
from diplomacy_engine.players.population import FOLDERS
from diplomacy_engine.players.protocols import SamplingPlayer, StatefulPlayer, WatchingPlayer
from diplomacy_engine.players.search.uct import UctSettings
from diplomacy_engine.press.press import PressRules

QUICK = "draws=6 candidates=3 profiles=4"
MEMBER = "FOLDERS/small/latest-60256.npz"  # of a population; of one map alone
ASKED = ("llm:m@URL", "talker+llm:m@URL")  # of a server; on `standard` their tests ask enough
LOOKING = "support.players:looking"  # by observations of an environment
PLAYERS = (
    *engine.BOTS,
    "MAP-pure-2",
    "greedy:MAP-pure-2",
    f"fast({QUICK}):MAP-pure-2",
    f"fast({QUICK} assume=infer:self,random,dumbbot):MAP-pure-2",
    "nash(profiles=1)+chaos",
    MEMBER,
    LOOKING,
    *ASKED,
)
PURE = ("hold", "greedy:MAP-pure-2", *ASKED, LOOKING)  # no draws of their own
MAPS = {MEMBER: ("small",)} | dict.fromkeys(ASKED, ("small", "three"))
CASES = [(name, game_map) for name in PLAYERS for game_map in MAPS.get(name, engine.MAP_NAMES)]
ALWAYS = [case for case in CASES if case[0] not in ASKED or case[1] == "small"]


@pytest.fixture(scope="module")
def make():
    with FakeServer(lambda body, number: holds(body)) as server:

        def load(name, map_name):
            name = name.replace("MAP", map_name).replace("URL", server.url)
            name = name.replace("FOLDERS", str(FOLDERS))
            player = engine.load_player(name, seed=4)
            if name in ("mcts", "mcts-plain"):
                player.settings = UctSettings(leaves=24)
            return player

        yield load


@pytest.mark.parametrize(("name", "map_name"), slow_but(ALWAYS, CASES))
def test_orders(name, map_name, make):
    """The public check passes, and another player of that name orders alike."""
    player = make(name, map_name)
    engine.check_player(player, map_name)
    games = sample_positions(engine.load_map(map_name))
    rows = np.arange(games.num_games)
    decisions = games.decisions()
    begin_games(games, [player], rows)
    seed_player(player, 4)
    orders = orders_of(games, player)
    same_name = make(name, map_name)
    seed_player(same_name, 4)
    assert (orders_of(games, same_name, decisions) == orders).all()
    if name in PURE or isinstance(player, SamplingPlayer) or map_name != "standard":
        return  # elsewhere there may be one best order
    others = games.spare(len(rows))
    others.copy_from(games, rows, rows)
    others.seed_games(rows, np.arange(len(rows), dtype=np.uint64))
    begin_games(others, [player], rows)
    assert (orders_of(others, player) != orders).any(), "another seed samples otherwise"


class Faulty:
    """A player that breaks one rule of the contract, by its name."""

    def __init__(self, name):
        self.name, self.bot, self.calls = name, engine.make_bot("hold"), 0

    def act(self, games, decisions):
        numbers = self.bot.act(games, decisions)
        self.calls += 1
        match self.name:
            case "float":
                return numbers.astype(float)
            case "illegal":
                numbers[0] = games.table.waive
            case "games":
                games.state.turn[0] += 1
            case "decisions":
                decisions.power[0] += 1
            case "order":
                numbers[:] = decisions.order[decisions.order_start[:-1]]
                numbers[: len(numbers) // 2] = self.bot.act(games, decisions)[: len(numbers) // 2]
            case "row":
                first = int(decisions.order_start[0]) + decisions.game[0] % 2
                numbers[0] = decisions.order[first]
        return numbers

    def explain(self, games, decisions):
        share = 0.5 if self.name == "explain" else 1.0
        counts = np.diff(decisions.order_start)
        probability = np.repeat(share / counts, counts).astype(np.float32)
        return engine.Explanation(probability, np.zeros(decisions.count, np.float32))


@pytest.mark.parametrize(
    "name", ["float", "illegal", "games", "decisions", "order", "row", "explain"]
)
def test_a_player_that_breaks_the_contract_is_told_so(name):
    engine.check_player(Faulty("faultless"), "three")
    with pytest.raises(engine.UserError, match=name if name != "float" else "must return"):
        engine.check_player(Faulty(name), "three")


def test_what_is_no_player():
    with pytest.raises(engine.UserError, match="object"):
        engine.check_player(object())


@pytest.mark.parametrize("map_name", engine.MAP_NAMES)
@pytest.mark.parametrize(
    "name", ["lookahead", "mcts", "mcts-plain", *(n for n in PLAYERS if "pure" in n)]
)
def test_what_a_player_thinks(name, map_name, make):
    """Shares of a slot's orders add up to 1, less those that are not shown, and it orders as if it
    had not been asked."""
    games, player = sample_positions(engine.load_map(map_name)), make(name, map_name)
    assert isinstance(player, engine.ExplainingPlayer)
    for row in range(games.num_games):
        player.explain(games, games.decisions(np.array([row])))
    decisions = games.decisions()
    numbers = engine.ask_player(games, decisions, player)
    assert (numbers == engine.ask_player(games, decisions, make(name, map_name))).all()
    game = engine.Game(map_name)
    shown = advice(game, player, game.powers[0])
    assert all(0 < sum(share for _, share in ranked) < 1.0001 for _, ranked in shown.slots)
    assert (shown.tried is not None) == (name == "lookahead" or name.startswith("fast"))


@pytest.mark.parametrize("name", [name for name in PLAYERS if name != MEMBER])
def test_a_game_goes_on_with_a_new_player(name, make):
    """One that is shown the past, if it wants to see it, orders as who has played all along.

    Even if the games stand in other rows; but one generator for all draws in their order.
    """
    games = engine.VectorGame("three", 3, seed=2, threads=1, auto_reset=False)
    rows, past = np.arange(3), []
    player, fresh = make(name, "three"), make(name, "three")
    there = rows if isinstance(player, SamplingPlayer) and not player.greedy else rows[::-1]
    begin_games(games, [player], rows)
    for phase in range(7):
        past.append(games.spare(3))
        past[-1].copy_from(games, rows, there, keep_seeds=True)
        if phase < 6:
            orders_of(games, player)
            games.step(orders_of(games, engine.make_bot("dumbbot")))
    assert (games.state.end == RUNNING).all()
    begin_games(past[0], [fresh], rows)
    for before in past[:-1] if isinstance(fresh, WatchingPlayer) else ():
        fresh.watch(before, rows)
    for one in (player, fresh):
        seed_player(one, 7)
    assert (orders_of(games, player) == orders_of(past[-1], fresh)[there]).all()
    if isinstance(player, StatefulPlayer):  # it forgets the past, too
        begin_games(games, [player], rows)
        forgetful = make(name, "three")
        begin_games(games, [forgetful], rows)
        for one in (player, forgetful):
            seed_player(one, 7)
        assert (orders_of(games, player) == orders_of(games, forgetful)).all()


@pytest.mark.parametrize(  # of those who may break their word, one always
    "kind", slow_but(NEGOTIATORS.keys() - UNBOUND[1:], NEGOTIATORS)
)
def test_talk(kind):
    """It is the same however games are batched and shared by threads; promises bind."""
    option = "" if kind in ("silent", "peaceful", "coin") else "(profiles=2)"
    names = f"{kind}{option}+random", "coin+random"
    if kind in UNBOUND:
        names = f"{kind}{option}+dumbbot", "breaker(profiles=2)+dumbbot"
    rules = PressRules("offers", 2, kind not in UNBOUND)
    given = "standard" if kind in UNBOUND else "three", *map(engine.load_player, names), 7
    found = [
        engine.evaluate_player(*given, max_years=2, threads=n, batch=batch, press=rules).result()
        for n, batch in ((1, 7), (3, 4))
    ]
    assert found[0] == found[1]
    talk = found[0]["press"]
    assert talk["offered"] > 0 and (talk["broken"] > 0) == (kind in UNBOUND)
    if kind in UNBOUND:
        assert talk["agreed"] > 0
        assert (talk["kept_by_player"][0] < 1) == (kind == "breaker")


@pytest.mark.parametrize("name", PLAYERS)
def test_copies_order_the_same(name, make):
    """Pickled after a phase, or deeply copied; what the copies are asked changes nobody else."""
    games = engine.VectorGame("small", 6, seed=2, threads=1, auto_reset=False)
    player = make(name, "small")
    begin_games(games, [player], np.arange(6))
    games.step(orders_of(games, player))
    copies = [copy.deepcopy(player)]
    copies += [pickle.loads(kind.dumps(player)) for kind in (pickle, cloudpickle)]
    found = [orders_of(games, one) for one in (*copies, player)]
    assert all((orders == found[-1]).all() for orders in found)
