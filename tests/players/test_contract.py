"""What holds for every player, of whatever kind, in all phases and on all maps."""

import copy
import functools
import pickle

import cloudpickle
import numpy as np
import pytest
from support.language import FakeServer, holds

from diplomacy_engine import BOTS, Game, VectorGame, evaluate_player, load_player, make_bot
from diplomacy_engine.constants import NONE, RUNNING, WINTER_ADJUSTMENTS
from diplomacy_engine.players.advice import advice, seed_player
from diplomacy_engine.players.asking import ask_player, begin_games, orders_of
from diplomacy_engine.players.loading import NEGOTIATORS
from diplomacy_engine.players.names import UNBOUND
from diplomacy_engine.players.population import FOLDERS
from diplomacy_engine.players.protocols import (
    ExplainingPlayer,
    SamplingPlayer,
    StatefulPlayer,
    WatchingPlayer,
)
from diplomacy_engine.players.search.uct import UctSettings
from diplomacy_engine.press.press import PressRules
from diplomacy_engine.rules.map import MAP_NAMES

QUICK = "draws=6 candidates=3 profiles=4"
MEMBER = "FOLDERS/small/latest-60256.npz"  # of a population; of one map alone
ASKED = ("llm:m@URL", "talker+llm:m@URL")  # of a server; on `standard` their tests ask enough
LOOKING = "support.players:looking"  # by observations of an environment
PLAYERS = (
    *BOTS,
    "MAP-pure-1",
    "greedy:MAP-pure-1",
    f"fast({QUICK}):MAP-pure-1",
    f"fast({QUICK} assume=infer:self,random,dumbbot):MAP-pure-1",
    "nash(profiles=1)+chaos",
    MEMBER,
    LOOKING,
    *ASKED,
)
PURE = ("hold", "greedy:MAP-pure-1", *ASKED, LOOKING)  # no draws of their own
MAPS = {MEMBER: ("small",)} | dict.fromkeys(ASKED, ("small", "three"))


@pytest.fixture(scope="module")
def make():
    with FakeServer(lambda body, number: holds(body)) as server:

        def load(name, map_name):
            name = name.replace("MAP", map_name).replace("URL", server.url)
            name = name.replace("FOLDERS", str(FOLDERS))
            player = load_player(name, seed=4)
            if name in ("mcts", "mcts-plain"):
                player.settings = UctSettings(leaves=24)
            return player

        yield load


@functools.cache
def positions(map_name: str) -> VectorGame:
    """Return two games in each of the five phases."""
    driven = VectorGame(map_name, 16, seed=5, max_years=12, threads=1)
    games, bots = driven.spare(10), [make_bot(name) for name in ("chaos", "dumbbot", "random")]
    found = dict.fromkeys(range(5), 0)
    for step in range(200):
        deciding = np.unique(driven.decisions().game)
        for row in np.roll(deciding, step):
            phase = int(driven.state.phase[row])
            if found[phase] < 2 and step > 5:
                target = np.array([2 * phase + found[phase]])
                games.copy_from(driven, np.array([row]), target, keep_seeds=True)
                found[phase] += 1
        driven.step(orders_of(driven, bots[step // 7 % 3]))
    assert set(found.values()) == {2}
    return games


def assert_legal(games, decisions, numbers):
    """In winter no order waives a build or leaves a removal; no province is named twice."""
    for d in range(decisions.count):
        first, end = decisions.slot_start[d : d + 2]
        winter = games.state.phase[decisions.game[d]] == WINTER_ADJUSTMENTS
        for s in range(first, end):
            legal = decisions.order[slice(*decisions.order_start[s : s + 2])]
            assert numbers[s] in legal or (winter and numbers[s] == NONE)
        given = [n for n in numbers[first:end] if n not in (NONE, games.table.waive)]
        places = games.board.location_province[games.table.location[given]]
        assert len(set(places.tolist())) == len(given)


@pytest.mark.parametrize(
    ("name", "map_name"), [(n, m) for n in PLAYERS for m in MAPS.get(n, MAP_NAMES)]
)
def test_orders(name, map_name, make):
    """They are legal, and the same whatever else is asked; no game is changed."""
    games = positions(map_name)
    decisions, before = games.decisions(), games.snapshot()
    listed = [array.copy() for array in decisions]
    player, rows = make(name, map_name), np.arange(games.num_games)
    begin_games(games, [player], rows)
    numbers = ask_player(games, decisions, player)
    assert_legal(games, decisions, numbers)
    assert all((array == same).all() for array, same in zip(decisions, listed))
    assert all((before[key] == now).all() for key, now in games.snapshot().items())
    assert (ask_player(games, decisions, make(name, map_name)) == numbers).all()
    if isinstance(player, SamplingPlayer) and not player.greedy:
        return  # one generator for all
    orders = games.new_orders()
    games.write_orders(orders, decisions, numbers)
    backwards = decisions.take(np.arange(decisions.count)[::-1])
    assert (orders_of(games, player, backwards) == orders).all()
    one = decisions.count // 2
    alone = ask_player(games, decisions.take(np.array([one])), player)
    assert (alone == numbers[slice(*decisions.slot_start[one : one + 2])]).all()
    # In other rows of more games, which two threads share.
    others, there = VectorGame(map_name, 40, seed=99, threads=2, max_years=12), 39 - rows
    others.copy_from(games, rows, there, keep_seeds=True)
    player = make(name, map_name)
    assert (orders_of(others, player, others.decisions(there))[there] == orders).all()
    if name not in PURE and map_name == "standard":  # elsewhere there may be one best order
        others.seed_games(there, np.arange(len(rows), dtype=np.uint64))
        fresh = orders_of(others, player, others.decisions(there))[there]
        assert (fresh != orders).any(), "another seed draws otherwise"


@pytest.mark.parametrize("map_name", MAP_NAMES)
@pytest.mark.parametrize(
    "name", ["lookahead", "mcts", "mcts-plain", *(n for n in PLAYERS if "pure" in n)]
)
def test_what_a_player_thinks(name, map_name, make):
    """Shares of a slot's orders add up to 1, and it orders as if it had not been asked."""
    games, player = positions(map_name), make(name, map_name)
    assert isinstance(player, ExplainingPlayer)
    for row in range(games.num_games):  # a search is asked about one game at a time
        decisions = games.decisions(np.array([row]))
        found = player.explain(games, decisions)
        sums = np.add.reduceat(found.probability, decisions.order_start[:-1])
        np.testing.assert_allclose(sums, 1, atol=1e-4)
        assert found.value.shape == (decisions.count,) and (found.probability >= 0).all()
    decisions = games.decisions()
    numbers = ask_player(games, decisions, player)
    assert (numbers == ask_player(games, decisions, make(name, map_name))).all()
    game = Game(map_name)
    shown = advice(game, player, game.powers[0])
    assert all(abs(sum(share for _, share in ranked) - 1) < 1e-4 for _, ranked in shown.slots)
    assert (shown.tried is not None) == (name == "lookahead" or name.startswith("fast"))


@pytest.mark.parametrize("name", [name for name in PLAYERS if name != MEMBER])
def test_a_game_goes_on_with_a_new_player(name, make):
    """One that is shown the past, if it wants to see it, orders as who has played all along.

    Even if the games stand in other rows; but one generator for all draws in their order.
    """
    games = VectorGame("three", 3, seed=2, threads=1, auto_reset=False)
    rows, past = np.arange(3), []
    player, fresh = make(name, "three"), make(name, "three")
    there = rows if isinstance(player, SamplingPlayer) and not player.greedy else rows[::-1]
    begin_games(games, [player], rows)
    for phase in range(7):
        past.append(games.spare(3))
        past[-1].copy_from(games, rows, there, keep_seeds=True)
        if phase < 6:
            orders_of(games, player)
            games.step(orders_of(games, make_bot("dumbbot")))
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


@pytest.mark.parametrize("kind", NEGOTIATORS)
def test_talk(kind):
    """It is the same however games are batched and shared by threads; promises bind."""
    option = "" if kind in ("silent", "peaceful", "coin") else "(profiles=2)"
    names = f"{kind}{option}+random", "coin+random"
    if kind in UNBOUND:
        names = f"{kind}{option}+dumbbot", "breaker(profiles=2)+dumbbot"
    rules = PressRules("offers", 2, kind not in UNBOUND)
    given = "standard" if kind in UNBOUND else "three", *map(load_player, names), 7
    found = [
        evaluate_player(*given, max_years=2, threads=n, batch=batch, press=rules).result()
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
    games = VectorGame("small", 6, seed=2, threads=1, auto_reset=False)
    player = make(name, "small")
    begin_games(games, [player], np.arange(6))
    games.step(orders_of(games, player))
    copies = [copy.deepcopy(player)]
    copies += [pickle.loads(kind.dumps(player)) for kind in (pickle, cloudpickle)]
    found = [orders_of(games, one) for one in (*copies, player)]
    assert all((orders == found[-1]).all() for orders in found)
