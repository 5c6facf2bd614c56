"""Joint orders drawn from a player, many for each decision."""

from typing import Protocol

import numpy as np

from ...constants import NONE
from ...games.decisions import Decisions, order_numbers
from ...games.vector_game import VectorGame
from ..asking import ask_player
from ..policy import PolicyPlayer
from ..protocols import Player
from .noise import order_noise


class Draws(Protocol):
    """Draws joint orders of movement decisions, and plays whatever else is to be ordered."""

    name: str

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return K joint orders of each decision.

        Args:
            games: stay as they are.
            decisions: D of them, in a movement phase.
            seeds: (D, K) uint64, which decide the draws.

        Returns:
            (D, K, V) int32 order numbers by province, NONE where the power has no unit; (D, K)
            float32 log-probabilities, 0 where they are not known.
        """


def by_province(games: VectorGame, decisions: Decisions, numbers: np.ndarray) -> np.ndarray:
    """Return movement orders (S,) of decisions as (D, V) int32 by province, NONE elsewhere."""
    orders = np.full((decisions.count, len(games.board.terrain)), NONE, np.int32)
    row = np.repeat(np.arange(decisions.count), np.diff(decisions.slot_start))
    orders[row, decisions.slot_province] = numbers
    return orders


class PolicyDraws:
    """Draws of a policy. A board is encoded once, however many orders are drawn for it."""

    def __init__(self, policy: PolicyPlayer, temperature: float = 1.0):
        self.policy, self.temperature, self.name = policy, temperature, policy.name

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Draws`."""
        count = seeds.shape[1]
        repeated = decisions.take(np.repeat(np.arange(decisions.count), count))
        obs = self.policy.observe(games, repeated.game, repeated.power)
        heat = np.full(repeated.count, self.temperature, np.float32)
        noise = order_noise(repeated, seeds.reshape(-1))
        chosen, logprob, _ = self.policy.agent.act(obs, repeated, temperature=heat, noise=noise)
        orders = by_province(games, repeated, order_numbers(repeated, chosen))
        return orders.reshape(decisions.count, count, -1), logprob.reshape(-1, count)

    def likeliest(self, games: VectorGame, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest orders of each slot in turn, (D, 1, V), and (D, 1) as `draw`."""
        obs = self.policy.observe(games, decisions.game, decisions.power)
        chosen, logprob, _ = self.policy.agent.act(obs, decisions, greedy=True)
        return by_province(games, decisions, order_numbers(decisions, chosen))[:, None], logprob[
            :, None
        ]


class PlayerDraws:
    """Draws of any player that draws from the games' seeds, as the bots do, on copies of the games."""

    def __init__(self, player: Player, spare: VectorGame):
        self.player, self.spare, self.name = player, spare, player.name

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Draws`."""
        spare, (asked, count) = self.spare, seeds.shape
        found = np.empty((asked * count, len(games.board.terrain)), np.int32)
        seeds = seeds.reshape(-1)
        for first in range(0, len(found), spare.num_games):
            part = np.arange(first, min(first + spare.num_games, len(found)))
            rows = np.arange(len(part))
            mine = decisions.take(part // count)
            spare.copy_from(games, mine.game, rows)
            spare.seed_games(rows, seeds[part])
            mine = mine._replace(game=rows.astype(np.int32))
            found[part] = by_province(spare, mine, ask_player(spare, mine, self.player))
        return found.reshape(asked, count, -1), np.zeros((asked, count), np.float32)
