"""What all players that search have in common."""

import numpy as np

from ..._suggest import player_name
from ...constants import NONE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.state import in_movement
from ..asking import reads_history
from ..bots.dumbbot import Dumbbot
from ..protocols import Explanation
from .draws import Draws
from .leaves import LeafValue, Leaves

MOST = 128  # decisions searched at once, which bounds the memory


class SearchPlayer:
    """Searches for its movement orders; all others are drawn from `own`."""

    def __init__(self, own: Draws, value: LeafValue, name: str):
        self.own, self.value, self.name = own, value, name
        self._leaves: Leaves | None = None

    __repr__ = player_name

    @property
    def greedy(self) -> bool:
        return self.own.greedy

    @property
    def reads_history(self) -> bool:
        return reads_history(self.own.player)

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        numbers = np.full(len(decisions.slot_province), NONE, np.int32)
        moving = in_movement(games.state, decisions.game)
        for searched, give in ((False, self.own.plain), (True, self._searched)):
            rows = np.flatnonzero(moving == searched)
            if len(rows):
                slots = (moving == searched)[decisions.slot_decision]
                numbers[slots] = give(games, decisions.take(rows))
        return numbers

    def _searched(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        parts = range(0, decisions.count, MOST)
        rows = [np.arange(first, min(first + MOST, decisions.count)) for first in parts]
        orders = np.concatenate([self.choose(games, decisions.take(part)) for part in rows])
        return orders[decisions.slot_decision, decisions.slot_province]

    def choose(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        raise NotImplementedError

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        return self.own.explain(games, decisions)

    def leaves(self, games: VectorGame) -> Leaves:
        leaves = self._leaves
        if leaves is None or not leaves.spare.is_like(games):
            leaves = self._leaves = Leaves(games, self.value, Dumbbot())
        return leaves
