"""What holds for every player, of whatever kind, in all phases and on all maps."""

import copy
import pickle
import sys

import cloudpickle
import numpy as np
import pytest
from support.language import FakeServer, holds
from support.pages import ROOT
from support.tables import slow_but

import diplomacy_engine as engine
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.matches.match import MatchReport
from diplomacy_engine.players.advice import advice, orders_by_player, orders_for
from diplomacy_engine.players.asking import orders_of, reads_history
from diplomacy_engine.players.checking import sample_positions
from diplomacy_engine.players.loading import NEGOTIATORS
from diplomacy_engine.players.names import UNBOUND, VOICES
from diplomacy_engine.players.population import FOLDERS
from diplomacy_engine.players.search.uct import UctSettings

QUICK = "draws=6 candidates=3 profiles=4"
POLICY = "MAP-pure-2"
MEMBER = "FOLDERS/small/latest-60256.npz"  # of a population; of one map alone
ASKED = "llm:m@URL"  # of a server; on `standard` its tests ask enough
PROGRAM = f"cmd:{sys.executable} {ROOT / 'examples' / 'grabber.py'}"
LOOKING = "support.players:looking"  # by observations of an environment
POLICIES = POLICY, f"greedy:{POLICY}", MEMBER
BASES = (*engine.BOTS, *POLICIES, LOOKING, ASKED, PROGRAM)
SEARCHES = f"fast({QUICK}):", f"fast({QUICK} assume=infer:self,random,dumbbot):"
# What has a player within -> what that may be.
WRAPPERS = {
    **dict.fromkeys(SEARCHES, POLICIES),
    "talker+": (ASKED,),
    **{f"{kind}(profiles=1)+" if VOICES[kind] else f"{kind}+": BASES for kind in NEGOTIATORS},
}
PLAYERS = (*BASES, *(wrapper + base for wrapper, bases in WRAPPERS.items() for base in bases))
PURE = ("hold", f"greedy:{POLICY}", ASKED, PROGRAM)  # no draws of their own
# Each base, and each wrapper, once.
FEW = *BASES, *(w + bases[n % len(bases)] for n, (w, bases) in enumerate(WRAPPERS.items(), 11))
MAPS = {MEMBER: ("small",), ASKED: ("small", "three"), PROGRAM: ("three",)}


def maps_of(name: str) -> tuple[str, ...]:
    return next((maps for base, maps in MAPS.items() if base in name), engine.MAP_NAMES)


CASES = [(name, game_map) for name in PLAYERS for game_map in maps_of(name)]
ALWAYS = [(name, maps_of(name)[0]) for name in FEW] + [(POLICY, "standard"), (POLICY, "three")]


@pytest.fixture(scope="module")
def make():
    with FakeServer(lambda body, number: holds(body)) as server:

        def load(name, map_name):
            name = name.replace("MAP", map_name).replace("URL", server.url)
            name = name.replace("FOLDERS", str(FOLDERS))
            player = engine.load_player(name)
            if name in ("mcts", "mcts-plain"):
                player.settings = UctSettings(leaves=24)
            return player

        yield load


@pytest.mark.parametrize(("name", "map_name"), slow_but(ALWAYS, CASES))
def test_orders(name, map_name, make):
    """The public check passes, and another player of that name orders alike, asked once more too;
    from another seed it may order otherwise."""
    player = make(name, map_name)
    assert reads_history(player) == any(one in name for one in ("infer:", "llm:", "cmd:"))
    engine.check_player(player, map_name)
    games = sample_positions(engine.load_map(map_name))
    rows = np.arange(games.num_games)
    orders = orders_of(games, player)
    for one in (player, make(name, map_name)):
        assert (orders_of(games, one) == orders).all()
    if name.endswith(PURE) or (map_name != "standard" and POLICY not in name):
        return  # elsewhere there may be one best order
    others = games.spare(len(rows))

    def orders_from(seed: int) -> np.ndarray:
        others.copy_from(games, rows, rows)
        others.seed_games(rows, np.arange(seed, seed + len(rows), dtype=np.uint64))
        return orders_of(others, player)

    assert any((orders_from(seed) != orders).any() for seed in range(0, 10_000, 1000)), (
        "some other seed samples otherwise: a search may often find one best order"
    )


@pytest.mark.parametrize("name", slow_but(FEW, PLAYERS))
def test_games_are_the_same_however_they_are_played(name, make):
    """In one part or in several, at once or one after the other, in threads, by the same players or
    by others, and gone on with elsewhere."""
    map_name = maps_of(name)[0]
    other = make(f"{map_name}-pure-1", map_name)

    def played(player, part, **how) -> MatchReport:
        how |= {"seed": 3, "max_years": 2, "samples": 4}
        return engine.evaluate_player(map_name, player, other, 4, part=part, **how)

    player = make(name, map_name)
    whole = played(player, (0, 1), threads=1)
    parts = [played(player, (1, 2), batch=2), played(make(name, map_name), (0, 2), threads=3)]
    assert MatchReport.join(parts).saved_games == whole.saved_games
    games = engine.VectorGame(map_name, 8, seed=2, threads=1, auto_reset=False)
    games.step(orders_of(games, player))
    copies = [copy.deepcopy(player)]
    copies += [pickle.loads(kind.dumps(player)) for kind in (pickle, cloudpickle)]
    orders = [orders_of(games, one) for one in (*copies, player)]
    assert all((found == orders[-1]).all() for found in orders)


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
    "name",
    ["lookahead", "mcts", "mcts-plain", *POLICIES[:2], *(wrapper + POLICY for wrapper in SEARCHES)],
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


@pytest.mark.parametrize("name", slow_but(FEW, PLAYERS))
def test_orders_are_a_function_of_a_game_and_what_came_before(name, make):
    """Who has played all along orders as who sees the games for the first time, and if asked twice
    the same: in games that were copied, pickled, put into other rows or read from saved ones."""
    map_name = maps_of(name)[0]
    games = engine.VectorGame(map_name, 3, 2, threads=1, auto_reset=False, keep_history=True)
    player, rows, there = make(name, map_name), np.arange(3), np.array([4, 0, 2])
    for _ in range(6):
        orders_of(games, player)
        games.step(orders_of(games, engine.make_bot("dumbbot")))
    assert (games.state.end == RUNNING).all()
    expected = orders_of(games, player)
    others = engine.VectorGame(map_name, 5, 7, threads=1, auto_reset=False, keep_history=True)
    others.step(orders_of(others, engine.make_bot("random")))  # another past, which is forgotten
    orders_of(others, player)
    others.copy_from(games, rows, there, keep_seeds=True)
    for one in (player, make(name, map_name)):
        for copied in (games, copy.copy(games), pickle.loads(pickle.dumps(games))):
            assert (orders_of(copied, one) == expected).all()
        asked = others.decisions(there)
        for _ in range(2):
            assert (orders_of(others, one, asked)[there] == expected).all()
    game = engine.Game.from_row(games, 0)
    assert orders_for(game, player) == orders_for(game.copy(), make(name, map_name))
    played = engine.Game(map_name)
    for _ in range(4):
        for power, orders in orders_for(played, engine.make_bot("dumbbot")).items():
            played.submit(power, orders)
        played.adjudicate()
    again = engine.Game.from_saved_game(played.to_saved_game())
    one, other = (orders_by_player(game, player, game.powers, 5) for game in (played, again))
    assert one == other


@pytest.mark.parametrize(  # of those who may break their word, one always
    "kind", slow_but(NEGOTIATORS.keys() - UNBOUND[1:], NEGOTIATORS)
)
def test_talk(kind):
    """It is the same however games are batched and shared by threads; promises bind."""
    option = "" if kind in ("silent", "peaceful", "coin") else "(profiles=2)"
    names = f"{kind}{option}+random", "coin+random"
    if kind in UNBOUND:
        names = f"{kind}{option}+dumbbot", "breaker(profiles=2)+dumbbot"
    rules = {"press": "offers", "press_rounds": 2, "binding": kind not in UNBOUND, "seed": 3}
    given = "standard" if kind in UNBOUND else "three", *map(engine.load_player, names), 7
    found = [
        engine.evaluate_player(*given, max_years=2, threads=n, batch=batch, **rules).result()
        for n, batch in ((1, 7), (3, 4))
    ]
    assert found[0] == found[1]
    talk = found[0]["press"]
    assert talk["offered"] > 0 and (talk["broken"] > 0) == (kind in UNBOUND)
    if kind in UNBOUND:
        assert talk["agreed"] > 0
        assert (talk["kept_by_player"][0] < 1) == (kind == "breaker")
