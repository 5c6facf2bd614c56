"""Joint orders drawn from a player, many for each decision."""

from typing import Protocol

import numpy as np

from ...constants import NONE
from ...games.decisions import Decisions, order_numbers
from ...games.vector_game import VectorGame
from ...rules.state import Salt, in_movement
from ..asking import ask_player
from ..policy import PolicyPlayer
from ..protocols import Explanation, Player
from .noise import order_noise, phase_seeds

ROOM = 512  # copies of games on which players are asked at once
CHUNK = 64  # boards encoded at once: what a network computes of them fits into a core's cache
MOST = 4096  # draws of a policy made at once, which bounds the memory for their lists of orders
SHOWN = 64  # draws that show how often a player gives an order


class Draws(Protocol):
    """Draws joint orders of a player, always the same from the same seeds."""

    name: str
    greedy: bool  # whether its one plain draw is the likeliest
    player: Player  # whose orders they are; `plain` is the same for all draws of one player

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

    def likeliest(self, games: VectorGame, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest orders as `draw` does, with K = 1, or 0 where they are not known."""

    def plain(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return the orders (S,) int32 that the player gives by itself, in any phase."""

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        """Return the probability of every legal order, and the values; see `ExplainingPlayer`."""


class PolicyDraws:
    """Draws of a policy. A board is encoded once, however many orders are drawn for it.

    Args:
        policy: that draws.
        temperature: of the last of several draws. That of the first is 1, and of those between them
            it rises evenly: a policy that is sure of itself would draw one thing over and over.
    """

    def __init__(self, policy: PolicyPlayer, temperature: float = 1.0):
        self.policy, self.player, self.temperature = policy, policy, temperature
        self.name, self.greedy = policy.name, policy.greedy

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return K joint orders of each decision and their log-probabilities; see `Draws`."""
        shape = seeds.shape
        heat = np.tile(np.linspace(1.0, self.temperature, shape[1], dtype=np.float32), shape[0])
        which, seeds = np.repeat(np.arange(shape[0]), shape[1]), seeds.reshape(-1)
        orders = np.empty((len(which), len(games.board.terrain)), np.int32)
        logprob = np.empty(len(which), np.float32)
        for first in range(0, len(which), MOST):
            part = slice(first, first + MOST)
            asked = decisions.take(which[part])
            obs = self.policy.observe(games, asked.game, asked.power)
            noise = order_noise(asked, seeds[part])
            chosen, logprob[part], _ = self.policy.agent.act(
                obs, asked, temperature=heat[part], noise=noise
            )
            orders[part] = asked.by_province(order_numbers(asked, chosen), orders.shape[1])
        return orders.reshape(*shape, -1), logprob.reshape(shape)

    def likeliest(self, games: VectorGame, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest order of each slot in turn (D, 1, V), and log-probabilities."""
        obs = self.policy.observe(games, decisions.game, decisions.power)
        chosen, logprob, _ = self.policy.agent.act(obs, decisions, greedy=True)
        numbers = order_numbers(decisions, chosen)
        orders = decisions.by_province(numbers, len(games.board.terrain))
        return orders[:, None], logprob[:, None]

    def plain(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return orders (S,) drawn from the games' seeds, or the likeliest of a greedy policy."""
        numbers = []
        board = np.cumsum(np.diff(decisions.game, prepend=-1) != 0) - 1
        ends = np.flatnonzero(np.diff(board // CHUNK)) + 1
        for part in np.split(np.arange(decisions.count), ends):
            asked = decisions.take(part)
            seeds = phase_seeds(games, asked.game, asked.power, Salt.PLAIN, 1)[:, 0]
            noise = order_noise(asked, seeds)
            obs = self.policy.observe(games, asked.game, asked.power)
            chosen, _, _ = self.policy.agent.act(obs, asked, greedy=self.greedy, noise=noise)
            numbers.append(order_numbers(asked, chosen))
        return np.concatenate(numbers)

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        """Return the policy's probability of every legal order, and its values."""
        return self.policy.explain(games, decisions)


class PlayerDraws:
    """Draws of any player that draws from games' seeds, as the bots do, on copies of the games."""

    def __init__(self, player: Player):
        self.player, self.name, self.greedy = player, player.name, False
        self._spare: VectorGame | None = None

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what the player orders (D, K, V) in copies that have these seeds; see `Draws`."""
        asked, count = seeds.shape
        spare = self._spare
        if spare is None or not spare.is_like(games):
            spare = self._spare = games.spare(ROOM)
        found = np.empty((asked * count, len(games.board.terrain)), np.int32)
        seeds = seeds.reshape(-1)
        for first in range(0, len(found), spare.num_games):
            part = np.arange(first, min(first + spare.num_games, len(found)))
            rows = np.arange(len(part))
            mine = decisions.take(part // count)
            spare.copy_from(games, mine.game, rows)
            spare.seed_games(rows, seeds[part])
            mine = mine._replace(game=rows.astype(np.int32))
            numbers = ask_player(spare, mine, self.player)
            found[part] = mine.by_province(numbers, found.shape[1])
        return found.reshape(asked, count, -1), np.zeros((asked, count), np.float32)

    def likeliest(self, games: VectorGame, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
        """Return none, since they are not known: (D, 0, V) and (D, 0)."""
        shape = decisions.count, 0
        return np.zeros((*shape, len(games.board.terrain)), np.int32), np.zeros(shape, np.float32)

    def plain(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return what the player orders in the games themselves, (S,)."""
        return ask_player(games, decisions, self.player)

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        """Return how often each order is drawn; out of movement phases 1 for what is ordered."""
        slots = np.repeat(np.arange(len(decisions.slot_province)), np.diff(decisions.order_start))
        moving = in_movement(games.state, decisions.game).all()
        if (decisions.slot_province == NONE).any() or not moving:
            share = (decisions.order == self.plain(games, decisions)[slots]).astype(np.float32)
        else:
            seeds = phase_seeds(games, decisions.game, decisions.power, Salt.PLAIN, SHOWN)
            drawn, _ = self.draw(games, decisions, seeds)
            decision = decisions.slot_decision
            given = drawn[decision, :, decisions.slot_province]
            share = (given[slots] == decisions.order[:, None]).mean(1, dtype=np.float32)
        return Explanation(share, np.full(decisions.count, np.nan, np.float32))
