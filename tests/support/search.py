"""What searches are tested with: a value that can be counted by hand, and draws of every order."""

import itertools

import numpy as np

from diplomacy_engine import Decisions, VectorGame
from diplomacy_engine.constants import NONE
from diplomacy_engine.rules.state import in_movement


class OwnCenters:
    """A board is worth the centers that a power owns, or in a movement phase stands on."""

    discount, at_once = 1.0, False

    def paid(self, result, victory_centers):
        over = (result.ended != 0)[:, None]
        return np.where(over, result.centers, 0).astype(np.float32)

    def look(self, games, rows, powers):
        state, board = games.state, games.board
        there = state.unit_power[rows][:, board.center_province]
        moving = in_movement(state, rows)[:, None]
        owner = np.where((there != NONE) & moving, there, state.center_owner[rows])
        return (owner == powers[:, None]).sum(1)

    def values(self, boards):
        return np.concatenate(boards).astype(float)


class AllOrders:
    """Draws every joint order of a decision in turn, each as likely as any other."""

    name, greedy, player = "all", False, None

    def draw(self, games: VectorGame, decisions: Decisions, seeds: np.ndarray):
        count, shape = seeds.shape[1], (decisions.count, seeds.shape[1], len(games.board.terrain))
        drawn = np.empty(shape, np.int32)
        for d in range(decisions.count):
            slots = range(*decisions.slot_start[d : d + 2])
            lists = [decisions.order[slice(*decisions.order_start[s : s + 2])] for s in slots]
            every = itertools.cycle(itertools.product(*lists))
            for k, numbers in zip(range(count), every):
                drawn[d, k] = decisions.take(np.array([d])).by_province(numbers, shape[2])[0]
        return drawn, np.zeros(shape[:2], np.float32)

    def likeliest(self, games, decisions):
        shape = decisions.count, 0
        return np.zeros((*shape, len(games.board.terrain)), np.int32), np.zeros(shape, np.float32)

    def plain(self, games, decisions):
        return decisions.order[decisions.order_start[:-1]]


def joint_orders(decisions: Decisions, d: int = 0) -> int:
    """Return how many joint orders a decision has."""
    slots = slice(*decisions.slot_start[d : d + 2])
    return int(np.prod(np.diff(decisions.order_start)[slots], dtype=np.int64))


def searcher(name: str = "searcher", *assumed: str, **changes):
    """Return a player that searches among dumbbot's orders for the most centers."""
    from diplomacy_engine import make_bot
    from diplomacy_engine.players.search.assumptions import Assumptions
    from diplomacy_engine.players.search.best_response import FAST, BestResponse
    from diplomacy_engine.players.search.draws import PlayerDraws

    bots = {bot: PlayerDraws(make_bot(bot)) for bot in assumed or ("dumbbot",)}
    settings = FAST._replace(**changes)
    return BestResponse(bots.get("dumbbot"), OwnCenters(), name, Assumptions(bots), settings)
