"""Asking players: nobody sees or changes what another orders, and what is returned is checked."""

import numpy as np
import pytest

from diplomacy_engine import UserError, VectorGame, make_bot
from diplomacy_engine.constants import NONE, WINTER_ADJUSTMENTS
from diplomacy_engine.players.asking import ask_player, ask_players, orders_of
from diplomacy_engine.players.search.uct import UctSettings


def arrays_within(value, seen=None) -> list[np.ndarray]:
    """Return every array of integers that can be reached from a value."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return []
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        return [value.copy()] if value.dtype.kind in "iu" else []
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (tuple, list)):
        parts = list(value)
    else:
        parts = list(vars(value).values()) if hasattr(value, "__dict__") else []
    return [found for part in parts for found in arrays_within(part, seen)]


def tells(arrays: list[np.ndarray], orders: np.ndarray, in_turn: np.ndarray) -> bool:
    """Return whether an array holds orders (E, V), by province or slot after slot `in_turn`."""
    given, sequence = orders[orders != NONE], in_turn.astype(np.int64).tobytes()
    for array in arrays:
        if array.size == orders.size and (array.ravel()[orders.ravel() != NONE] == given).all():
            return True
        if array.astype(np.int64).tobytes().find(sequence) >= 0:
            return True
    return False


class Spy:
    """Holds, and keeps all that it could see."""

    name = "spy"

    def __init__(self):
        self.seen = []

    def act(self, games, decisions):
        self.seen += arrays_within((games, decisions))
        return make_bot("hold").act(games, decisions)


class Gossip:
    """Moves at random, and leaves its orders where others can find them."""

    name = "gossip"

    def act(self, games, decisions):
        games.told = make_bot("random").act(games, decisions)
        return games.told


@pytest.mark.parametrize("name", ["random", "dumbbot", "brane", "lookahead", "mcts", "gossip"])
def test_a_player_sees_nothing_of_what_others_order_in_the_same_phase(name):
    games = VectorGame("three", 4, seed=2, auto_reset=False, threads=1)
    spy, other = Spy(), Gossip() if name == "gossip" else make_bot(name)
    if name == "mcts":
        other.settings = UctSettings(leaves=24)
    for _ in range(2):
        decisions = games.decisions()
        spy.seen.clear()
        orders = ask_players(games, decisions, [other, spy], decisions.power == 2)
        asked = decisions.take(decisions.power != 2)
        theirs, in_turn = orders_of(games, other, asked), other.act(games, asked)
        assert (orders[theirs != NONE] == theirs[theirs != NONE]).all()
        assert len(spy.seen) > 20
        assert tells(spy.seen, theirs, in_turn) == (name == "gossip")
        games.step(orders)


def test_a_player_cannot_order_for_others():
    """Numbers stand for the player's own slots; a winter order of another's list is none."""
    games = VectorGame("standard", 1, seed=1, auto_reset=False)
    state, game_map = games.state, games.map
    state.unit_power[:] = NONE
    state.phase[:] = WINTER_ADJUSTMENTS
    decisions = games.decisions()
    assert decisions.count == 7
    austria = decisions.take(decisions.power == 0)
    french = game_map.board.location_province
    build = next(n for n, text in enumerate(games.vocabulary.texts) if text == "A PAR B")
    orders = games.new_orders()
    games.write_orders(orders, austria, np.full(3, build, np.int32))
    assert (orders == NONE).all()
    games.write_orders(orders, decisions.take(decisions.power == 2), np.full(3, build, np.int32))
    assert (orders != NONE).sum() == 1 and orders[0, french[games.table.location[build]]] == build


@pytest.mark.parametrize(
    "bad", [None, 3, [1, 2], np.zeros(3, np.int32), np.zeros((1, 2), np.int32), np.ones(2)]
)
def test_what_a_player_returns_is_checked(bad):
    class Odd:
        name = "odd"

        def act(self, games, decisions):
            return bad

    games = VectorGame("small", 1, auto_reset=False)
    decisions = games.decisions()
    with pytest.raises(UserError, match="player odd must return an order number for each of"):
        ask_player(games, decisions, Odd())


def test_numbers_beyond_the_vocabulary_are_no_orders():
    games = VectorGame("small", 2, seed=1, auto_reset=False)
    for number in (-(2**31), -5, NONE, 2**31 - 1, len(games.vocabulary)):
        for winter in (False, True):
            games.reset()
            if winter:
                games.state.unit_power[:] = NONE
                games.state.phase[:] = WINTER_ADJUSTMENTS
            decisions = games.decisions()
            orders = games.new_orders()
            numbers = np.full(len(decisions.slot_province), number, np.int64).astype(np.int32)
            games.write_orders(orders, decisions, numbers)
            units = (games.state.unit_power != NONE).sum()
            games.step(orders)
            assert (games.state.unit_power != NONE).sum() == units
