"""Joint orders sampled from a player, many for each decision.

All random numbers of a search come from the games' own seeds. So it samples the same whatever else
is searched at the same time, in whatever order and with however many threads.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ...constants import NONE
from ...games.decisions import Decisions, order_numbers
from ...games.draws import order_noise, phase_seeds
from ...games.order_lists import matched
from ...games.vector_game import VectorGame
from ...rules.state import Salt, in_movement
from ..asking import ask_player
from ..policy.player import LIKELIEST, PolicyPlayer
from ..protocols import Explanation, Player

ROOM = 512  # copies of games on which players are asked at once
CHUNK = 64  # boards encoded at once: what a network computes of them fits into a core's cache
MOST = 4096  # samples of a policy made at once, which bounds the memory for their lists of orders
SHOWN = 64  # samples that show how often a player gives an order


class Draws(Protocol):
    """Samples joint orders of a player, always the same from the same seeds."""

    name: str
    greedy: bool  # whether `plain` gives the likeliest orders

    @property
    def player(self) -> Player:
        """Whose orders they are; `plain` is the same for all draws of one player."""

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return K joint orders of each movement decision, from seeds (D, K): (D, K, V) int32, NONE
        where the power has no unit, and (D, K) log-probabilities, 0: not known, -inf: varied."""

    def likeliest(self, games: VectorGame, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest orders as `draw` does, with K = 1, or 0 where they are not known."""

    def plain(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return the orders (S,) int32 that the player gives by itself, in any phase."""

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation: ...


class PolicyDraws:
    """Samples of a policy. A board is encoded once, however many orders are sampled for it.

    From sample to sample the temperature rises evenly from that at which the policy plays to
    `temperature` times that: a policy that is sure of itself would sample the same orders over and
    over.
    """

    def __init__(self, policy: PolicyPlayer, temperature: float = 1.0):
        self.policy, self.player, self.temperature = policy, policy, temperature
        self.name, self.greedy, self.explain = policy.name, policy.greedy, policy.explain

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        shape = seeds.shape
        rising = np.linspace(1.0, self.temperature, shape[1], dtype=np.float32)
        rising *= self.policy.temperature
        temperatures = np.tile(rising, shape[0])
        which, seeds = np.repeat(np.arange(shape[0]), shape[1]), seeds.reshape(-1)
        orders = np.empty((len(which), len(games.board.terrain)), np.int32)
        logprob = np.empty(len(which), np.float32)
        for first in range(0, len(which), MOST):
            part = slice(first, first + MOST)
            own = self.policy.legal_orders(games, decisions.take(which[part]))
            obs = self.policy.observe(games, own.game, own.power)
            noise = order_noise(own, seeds[part])
            chosen, logprob[part], _ = self.policy.agent.act(obs, own, noise, temperatures[part])
            orders[part] = own.by_province(order_numbers(own, chosen), orders.shape[1])
        return orders.reshape(*shape, -1), logprob.reshape(shape)

    def likeliest(self, games: VectorGame, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
        decisions = self.policy.legal_orders(games, decisions)
        obs = self.policy.observe(games, decisions.game, decisions.power)
        chosen, logprob, _ = self.policy.agent.act(obs, decisions, LIKELIEST)
        numbers = order_numbers(decisions, chosen)
        orders = decisions.by_province(numbers, len(games.board.terrain))
        return orders[:, None], logprob[:, None]

    def plain(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        numbers = []
        board = np.cumsum(np.diff(decisions.game, prepend=-1) != 0) - 1
        ends = np.flatnonzero(np.diff(board // CHUNK)) + 1
        for part in np.split(np.arange(decisions.count), ends):
            full = decisions.take(part)
            own = self.policy.legal_orders(games, full)
            noise = LIKELIEST
            if not self.greedy:
                noise = order_noise(own, phase_seeds(games, own.game, own.power, Salt.PLAIN)[:, 0])
            obs = self.policy.observe(games, own.game, own.power)
            temperature = np.full(own.count, self.policy.temperature)
            chosen, _, _ = self.policy.agent.act(obs, own, noise, temperature)
            numbers.append(matched(full, own, order_numbers(own, chosen)))
        return np.concatenate(numbers)


class PlayerDraws:
    """Draws of any player that draws from games' seeds, as the bots do, on copies of the games."""

    def __init__(self, player: Player):
        self.player, self.name, self.greedy = player, player.name, False
        self._spare: VectorGame | None = None

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        num_decisions, count = seeds.shape
        spare = self._spare
        if spare is None or not spare.is_like(games):
            spare = self._spare = games.spare(ROOM)
        orders = np.empty((num_decisions * count, len(games.board.terrain)), np.int32)
        seeds = seeds.reshape(-1)
        for first in range(0, len(orders), spare.num_games):
            part = np.arange(first, min(first + spare.num_games, len(orders)))
            rows = np.arange(len(part))
            mine = decisions.take(part // count)
            spare.copy_from(games, mine.game, rows)
            spare.seed_games(rows, seeds[part])
            mine = mine._replace(game=rows.astype(np.int32))
            numbers = ask_player(spare, mine, self.player)
            orders[part] = mine.by_province(numbers, orders.shape[1])
        logprob = np.zeros((num_decisions, count), np.float32)
        return orders.reshape(num_decisions, count, -1), logprob

    def likeliest(self, games: VectorGame, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
        shape = decisions.count, 0
        return np.zeros((*shape, len(games.board.terrain)), np.int32), np.zeros(shape, np.float32)

    def plain(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        return ask_player(games, decisions, self.player)

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        """Return how often each order is drawn; out of movement phases 1 for what is ordered."""
        slots = decisions.order_slot
        moving = in_movement(games.state, decisions.game).all()
        if (decisions.slot_province == NONE).any() or not moving:
            share = (decisions.order == self.plain(games, decisions)[slots]).astype(np.float32)
        else:
            seeds = phase_seeds(games, decisions.game, decisions.power, Salt.PLAIN, SHOWN)
            drawn, _ = self.draw(games, decisions, seeds)
            slot_orders = drawn[decisions.slot_decision, :, decisions.slot_province]
            share = (slot_orders[slots] == decisions.order[:, None]).mean(1, dtype=np.float32)
        return Explanation(share, np.full(decisions.count, np.nan, np.float32))


def joint_orders(
    games: VectorGame,
    rows: np.ndarray,
    seeds: np.ndarray,
    spare: VectorGame,
    act: Callable[[VectorGame, Decisions], np.ndarray],
) -> np.ndarray:
    """Return what all powers may order in `rows` (n,), from seeds (n, K): (n, K, V) int32. `act`
    gives the orders (S,) of decisions in `spare`, where the copies are."""
    source, parts = np.repeat(rows, seeds.shape[1]), []
    for first in range(0, len(source), spare.num_games):
        part = slice(first, first + spare.num_games)
        copies = np.arange(len(source[part]))
        spare.copy_from(games, source[part], copies)
        spare.seed_games(copies, seeds.ravel()[part])
        decisions, orders = spare.decisions(copies), spare.new_orders()
        if decisions.count:
            spare.write_orders(orders, decisions, act(spare, decisions))
        parts.append(orders[: len(copies)])
    return np.concatenate(parts).reshape(*seeds.shape, -1)


def vary(decisions: Decisions, rows: np.ndarray, seeds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Choose any unit of each movement decision in `rows` (n,) and any legal order of it.

    The seeds (n,) decide; returned are the slots (n,) and the order numbers (n,) int32.
    """
    first, ends = decisions.slot_start[rows], decisions.slot_start[rows + 1]
    slot = first + (seeds >> np.uint64(40)).astype(np.int64) % (ends - first)
    begin, end = decisions.order_start[slot], decisions.order_start[slot + 1]
    chosen = begin + (seeds & np.uint64(0xFFFFFF)).astype(np.int64) % (end - begin)
    return slot, decisions.order[chosen]


class VariedDraws:
    """Draws of a player, of which the last (a share, rounded down) vary the order of one unit."""

    def __init__(self, draws: Draws, share: float = 0.5):
        self.draws, self.share = draws, share
        self.name, self.greedy, self.player = draws.name, draws.greedy, draws.player
        self.likeliest, self.plain, self.explain = draws.likeliest, draws.plain, draws.explain

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        count = seeds.shape[1]
        plain = max(1, count - int(count * self.share))
        orders, logprob = self.draws.draw(games, decisions, seeds[:, :plain])
        column = np.arange(count - plain)
        varied = orders[:, column % plain]
        row = np.repeat(np.arange(decisions.count), count - plain)
        slot, order = vary(decisions, row, seeds[:, plain:].reshape(-1))
        varied[row, np.tile(column, decisions.count), decisions.slot_province[slot]] = order
        unlikely = np.full(varied.shape[:2], -np.inf, np.float32)
        return np.concatenate([orders, varied], 1), np.concatenate([logprob, unlikely], 1)
