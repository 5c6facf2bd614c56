"""Joint orders in which one unit does something else than the player would have it do."""

import numpy as np

from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ..protocols import Explanation
from .draws import Draws


def vary(decisions: Decisions, rows: np.ndarray, seeds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Choose any unit of each decision in `rows` and any legal order of that unit.

    Args:
        decisions: of movement phases.
        rows: (n,) integers.
        seeds: (n,) uint64, which decide the choice.

    Returns:
        (n,) the slots and (n,) int32 the order numbers.
    """
    first, ends = decisions.slot_start[rows], decisions.slot_start[rows + 1]
    slot = first + (seeds >> np.uint64(40)).astype(np.int64) % (ends - first)
    begin, end = decisions.order_start[slot], decisions.order_start[slot + 1]
    chosen = begin + (seeds & np.uint64(0xFFFFFF)).astype(np.int64) % (end - begin)
    return slot, decisions.order[chosen]


class VariedDraws:
    """Draws of a player, of which some have another order for one unit.

    Args:
        draws: of the player.
        share: of those with another order, 0 to 1, rounded down.
    """

    def __init__(self, draws: Draws, share: float = 0.5):
        self.draws, self.share = draws, share
        self.name, self.greedy, self.player = draws.name, draws.greedy, draws.player

    def draw(
        self, games: VectorGame, decisions: Decisions, seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return joint orders; varied ones come last, with a log-probability of -inf."""
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

    def likeliest(self, games: VectorGame, decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest orders of the player, without variation."""
        return self.draws.likeliest(games, decisions)

    def plain(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return the orders (S,) of the player, without variation."""
        return self.draws.plain(games, decisions)

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        """Return the probabilities and values of the player, without variation."""
        return self.draws.explain(games, decisions)
