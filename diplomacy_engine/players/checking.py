"""`check_player`: whether a player keeps the contract that matches and environments rely on."""

import copy
import functools

import numpy as np

from ..constants import NONE, WINTER_ADJUSTMENTS, Phase
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..rules.map import Map, load_map
from .asking import ask_player, orders_of, reads_history
from .bots import make_bot
from .protocols import ExplainingPlayer, Player

GAMES_PER_PHASE = 2


def check_player(player: Player, game_map: Map | str = "small") -> None:
    """Check that a player keeps the contract of `protocols.Player`.

    The player orders in ten positions, two of each of the five phases. Checked are: the shape and
    type of what `act` returns; that every order is legal and no province is ordered twice; that
    neither the games nor the arrays of `decisions` are changed; that a decision's orders do not
    depend on the other decisions of the call, on earlier calls, on the row of its game, or, unless
    it reads it, on history; and that the probabilities of `explain`, if any, add up to 1.

    Args:
        player: has `name` and `act`, and may have the methods of the other protocols.
        game_map: a map, or the name of one.

    Raises:
        UserError: the contract is broken; the message has the player's name and the rule.
    """
    name = getattr(player, "name", None)
    if not isinstance(name, str) or not callable(getattr(player, "act", None)):
        raise UserError(f"{type(player).__name__} is not a player: it needs `name` and `act`")
    source = sample_positions(load_map(game_map) if isinstance(game_map, str) else game_map)
    games = copy.copy(source)  # a faulty player may change them
    decisions, before = games.decisions(), games.snapshot()
    listed = [array.copy() for array in decisions]
    numbers = ask_player(games, decisions, player)
    _check_legal(games, decisions, numbers, name)
    _require(all(map(np.array_equal, decisions, listed)), name, "changes the arrays of `decisions`")
    same = all(np.array_equal(before[key], array) for key, array in games.snapshot().items())
    _require(same, name, "changes the games that it is asked about")
    _check_independent(games, decisions, numbers, player)
    if not reads_history(player):
        games.history = None
        same = np.array_equal(ask_player(games, decisions, player), numbers)
        _require(same, name, "orders otherwise without history, which it says it does not read")
    if isinstance(player, ExplainingPlayer):
        _check_explanation(games, player)


@functools.cache
def sample_positions(game_map: Map) -> VectorGame:
    """Return games of a map, two in each of the five phases, from games among bots."""
    source, games = (
        VectorGame(game_map, count, 5, max_years=12, threads=1, keep_history=True)
        for count in (16, 5 * GAMES_PER_PHASE)
    )
    bots = [make_bot(name) for name in ("chaos", "dumbbot", "random")]
    count = np.zeros(5, np.int64)
    for step in range(1000):
        for row in np.roll(np.unique(source.decisions().game), step):
            phase = int(source.state.phase[row])
            if count[phase] < GAMES_PER_PHASE and step > 5:
                target = np.array([GAMES_PER_PHASE * phase + count[phase]])
                games.copy_from(source, np.array([row]), target, keep_seeds=True)
                count[phase] += 1
        if (count == GAMES_PER_PHASE).all():
            break
        source.step(orders_of(source, bots[step // 7 % 3]))
    return games


def _require(holds: bool, name: str, fault: str) -> None:
    if not holds:
        raise UserError(f"player {name:.60} {fault}")


def _check_legal(games: VectorGame, decisions: Decisions, numbers: np.ndarray, name: str) -> None:
    for d in range(decisions.count):
        first, end = decisions.slot_start[d : d + 2]
        game = decisions.game[d]
        phase = Phase(int(games.state.phase[game])).name.lower().replace("_", " ")
        power = games.map.powers[decisions.power[d]]
        winter = games.state.phase[game] == WINTER_ADJUSTMENTS
        for s in range(first, end):
            legal = decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
            is_legal = numbers[s] in legal or (winter and numbers[s] == NONE)
            fault = f"gives {power} the order number {numbers[s]} in {phase}, which its slot lacks"
            _require(is_legal, name, fault)
        ordered = [n for n in numbers[first:end] if n not in (NONE, games.table.waive)]
        provinces = games.board.location_province[games.table.location[ordered]]
        twice = len(set(provinces.tolist())) < len(ordered)
        _require(not twice, name, f"orders a province of {power} twice in {phase}")


def _check_independent(
    games: VectorGame, decisions: Decisions, numbers: np.ndarray, player: Player
) -> None:
    name, rows = player.name, np.arange(games.num_games)
    orders = games.new_orders()
    games.write_orders(orders, decisions, numbers)
    backwards = decisions.take(np.arange(decisions.count)[::-1])
    same = (orders_of(games, player, backwards) == orders).all()
    _require(same, name, "orders otherwise if the decisions come in another order")
    one = decisions.count // 2
    alone = ask_player(games, decisions.take(np.array([one])), player)
    same = np.array_equal(alone, numbers[slice(*decisions.slot_start[one : one + 2])])
    _require(same, name, "orders otherwise if it is asked about one decision alone")
    others, there = VectorGame(games.map, 40, 99, 12, 2, keep_history=True), 39 - rows
    others.copy_from(games, rows, there, keep_seeds=True)
    same = (orders_of(others, player, others.decisions(there))[there] == orders).all()
    _require(same, name, "orders otherwise if a game stands in another row")


def _check_explanation(games: VectorGame, player: ExplainingPlayer) -> None:
    for row in range(games.num_games):  # a search is asked about one game at a time
        decisions = games.decisions(np.array([row]))
        explanation = player.explain(games, decisions)
        sums = np.add.reduceat(explanation.probability, decisions.order_start[:-1])
        fault = "gives a slot's orders probabilities that do not add up to 1"
        positive = bool((explanation.probability >= 0).all())
        _require(positive and np.allclose(sums, 1, atol=1e-4), player.name, fault)
        fault = "gives another number of values than decisions"
        _require(explanation.value.shape == (decisions.count,), player.name, fault)
