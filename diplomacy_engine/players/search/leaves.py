"""Boards one phase ahead, and what they are worth to a power."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ...constants import RUNNING
from ...games.decisions import Decisions
from ...games.observation import BoardViews
from ...games.vector_game import StepResult, VectorGame
from ...rules.state import in_movement
from ...scoring.rewards import reward_input
from ..asking import orders_of
from ..policy import Objective, PolicyPlayer
from ..protocols import Player
from .draws import CHUNK

ROOM = 1024  # boards tried at once


class LeafValue(Protocol):
    """Says what a board is worth to powers."""

    discount: float  # of the value of a board
    at_once: bool  # whether that is seen right after the phase, or at the power's next decision

    def paid(self, result: StepResult, victory_centers: int) -> np.ndarray:
        """Return what a step of n games has brought every power, (n, P)."""

    def values(self, boards: list) -> np.ndarray:
        """Return what boards that `look` returned are worth, in their order."""

    def look(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> object:
        """Return whatever is needed to value rows (n,) for powers (n,) later on."""


# (copies, decisions, rows, powers) -> orders (S,) of D movement decisions in copies of games:
# Of each decision's game: the row that it is a copy of (D,), and for which power it is tried (D,).
PlayOn = Callable[[VectorGame, Decisions, np.ndarray, np.ndarray], np.ndarray]


class Critic:
    """The value that a policy has learned, used as it was trained.

    It expects the reward of training from the power's own next decision on, discounted once for
    that. So a step counts with what it has paid, and a board is looked at when the power has to
    decide something there.
    """

    def __init__(self, policy: PolicyPlayer):
        self.policy, self.objective = policy, Objective.of(policy.settings)
        self.discount, self.at_once = self.objective.gamma, False

    def paid(self, result: StepResult, victory_centers: int) -> np.ndarray:
        """Return the reward of training that a step of n games has paid every power, (n, P)."""
        found = reward_input(result, victory_centers, self.objective.pays_year_limit)
        return self.objective.reward(found, 1.0)

    def look(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return the boards as powers (n,) see them in rows (n,)."""
        return self.policy.observe(games, rows, powers)

    def values(self, boards: list) -> np.ndarray:
        """Return the policy's values of boards that `look` returned, in their order."""
        obs = boards[0].join(boards)  # views of a policy that talks have more to them
        parts = np.split(np.arange(len(obs.row)), range(CHUNK, len(obs.row), CHUNK))
        return np.concatenate([self.policy.agent.values(obs.take(part)) for part in parts])


class Leaves:
    """Tries joint orders on copies of games, and values what comes of them."""

    def __init__(self, games: VectorGame, value: LeafValue, following: Player):
        """Make room for boards of `games`' map and year limit.

        Args:
            value: what boards are worth.
            following: gives all orders until the power has to decide again.
        """
        self.value, self.following = value, following
        self.spare = games.spare(ROOM)
        self.tried = 0  # leaves so far
        self._orders = self.spare.new_orders()

    def evaluate(
        self,
        games: VectorGame,
        rows: np.ndarray,
        powers: np.ndarray,
        orders: np.ndarray,
        seeds: np.ndarray,
        ahead: int = 0,
        play_on: PlayOn | None = None,
    ) -> np.ndarray:
        """Return what joint orders are worth, (n,) float64.

        Args:
            rows: (n,), of `games`, which stay as they are.
            powers: (n,), for whom.
            orders: (n, V) int32, of all powers.
            seeds: (n,) uint64, of the draws that follow.
            ahead: movement phases that are played on before a board is valued.
            play_on: gives the orders in these, if there are any.
        """
        found = np.empty(len(rows))
        for first in range(0, len(rows), ROOM):
            part = slice(first, first + ROOM)
            given = rows[part], powers[part], orders[part], seeds[part]
            found[part] = self._evaluate(games, *given, ahead, play_on)
        self.tried += len(rows)
        return found

    def _evaluate(
        self,
        games: VectorGame,
        rows: np.ndarray,
        powers: np.ndarray,
        orders: np.ndarray,
        seeds: np.ndarray,
        ahead: int,
        play_on: PlayOn | None,
    ) -> np.ndarray:
        """Return what `evaluate` does, (n,) float64, for at most ROOM rows."""
        spare, count = self.spare, len(rows)
        copies = np.arange(count)
        spare.copy_from(games, rows, copies)
        spare.seed_games(copies, seeds)
        self._orders[:count] = orders
        total, boards, at = np.zeros(count), [], []
        discount, played = np.ones(count), np.zeros(count, np.int64)
        pending, given = copies, self._orders
        while len(pending):
            result = spare.step(given, pending)
            mine = np.arange(len(pending)), powers[pending]
            paid = self.value.paid(result, spare.board.victory_centers)[mine]
            total[pending] += discount[pending] * paid
            pending = pending[(result.ended == RUNNING) & result.alive[mine]]
            decisions = spare.decisions(pending)
            deciding = np.zeros(count, bool)
            deciding[decisions.game[decisions.power == powers[decisions.game]]] = True
            discount[deciding] *= self.value.discount
            looked = (deciding | self.value.at_once) & (played >= ahead)
            now, pending = pending[looked[pending]], pending[~looked[pending]]
            if len(now):
                boards.append(self.value.look(spare, now, powers[now]))
                at.append(now)
            if not len(pending):
                break
            decisions = decisions.take(~looked[decisions.game])
            on = in_movement(spare.state, decisions.game) & (played < ahead)[decisions.game]
            given = orders_of(spare, self.following, decisions.take(~on))
            if on.any():
                asked = decisions.take(on)
                numbers = play_on(spare, asked, rows[asked.game], powers[asked.game])
                spare.write_orders(given, asked, numbers)
                played[np.unique(asked.game)] += 1
        if boards:
            at = np.concatenate(at)
            total[at] += discount[at] * self.value.values(boards)
        return total
