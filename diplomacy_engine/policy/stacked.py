"""Inputs and draws of several equal-shaped networks at once, each with boards of its own.

What inputs.py and order_logits.py do for one network, laid out for K whose weights stand one behind
the other: each has M boards, and a board one power that looks at it. A network with fewer decisions
than M has copies of its first board in their place, of which nothing is read.
"""

from collections.abc import Sequence

import numpy as np

from ..constants import NONE
from ..games.decisions import Decisions
from ..games.observation import BoardViews
from .inputs import ROWS, NetworkInputs, OrderRows, _index, _stand
from .order_logits import _draw, sum_rows


class StackedBoards:
    """The boards of K networks.

    Args:
        inputs: of the map.
        views: (D,), of network after network.
        counts: (K,) integers, how many of them each network has, at least one; D in all.
    """

    def __init__(self, inputs: NetworkInputs, views: BoardViews, counts: np.ndarray):
        self.inputs, self.counts = inputs, np.asarray(counts)
        self.starts = np.cumsum([0, *self.counts])
        networks, most = len(self.counts), int(self.counts.max())
        place = np.arange(most)
        known = place < self.counts[:, None]  # (K, M)
        picked = np.where(known, self.starts[:-1, None] + place, self.starts[:-1, None]).ravel()
        board = views.row[picked]
        *boards, power = (*(array[board] for array in views[:3]), views.power[picked])
        self.shape = networks, boards[0].shape[1], most  # K, V, M
        self.views = BoardViews(*boards, np.arange(len(picked)), power)
        self.at = np.flatnonzero(known.ravel())  # (D,) which of the K M boards a decision sees

    @property
    def power(self) -> np.ndarray:
        """Who looks at each board, (K, M)."""
        return self.views.power.reshape(len(self.counts), -1)

    def globals(self) -> np.ndarray:
        """Return `global_features` (K, M, features) float32."""
        found = self.inputs.globals(self.views)
        return found.reshape(len(self.counts), -1, found.shape[1])

    def feature_sums(self, tables: np.ndarray) -> np.ndarray:
        """Return the sums (K, V, M, H) of the features' rows in the networks' tables (K, F, H)."""
        networks, provinces, most = self.shape
        length = tables.shape[1]
        rows = self.inputs.features(self.views).reshape(provinces, networks, most, -1)
        own = (np.arange(networks, dtype=np.int32) * length)[:, None, None]
        rows = np.where(rows == NONE, np.int32(NONE), rows + own).swapaxes(0, 1)
        rows = np.ascontiguousarray(rows).reshape(networks * provinces * most, -1)
        sums = sum_rows(rows, tables.reshape(networks * length, -1))
        return sums.reshape(networks, provinces, most, -1)

    def draw(
        self,
        decisions: Decisions,
        board_table: np.ndarray,
        kind_tables: np.ndarray,
        contexts: np.ndarray,
        weights: np.ndarray,
        earlier: Sequence[np.ndarray],
        autoregressive: bool,
        noise: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Choose orders as `draw_orders` does.

        Args:
            decisions: D of them, in the order of the views.
            board_table: (K V M NUM_BOARD, H); kind_tables: (K, NUM_KINDS, H).
            contexts: (K, M, H); weights: (K, H); earlier: (K, H, H) and (K, H).
            noise: of each network, one number for each order of its decisions; or empty.

        Returns:
            (S,) int64, positions of the chosen orders in the slots' lists.
        """
        rows = self._order_rows(decisions)
        slots, orders = len(decisions.slot_province), len(decisions.order)
        chosen, given = np.empty(slots, np.int64), np.empty(slots, np.int32)
        probability, scratch = np.empty(orders, np.float32), np.empty((3, weights.shape[1]), "f4")
        logprob, warmth = np.empty(decisions.count, "f4"), np.ones(decisions.count, "f4")
        # Noise is found by an order's place among all; a network that draws none has an empty one.
        if sum(map(len, noise)) == orders:
            noise = [np.concatenate(noise)] * len(noise)
        for number, (first, last) in enumerate(zip(self.starts[:-1], self.starts[1:])):
            own = decisions._replace(slot_start=decisions.slot_start[first : last + 1])
            _draw(
                self.inputs.columns,
                own,
                rows.rows,
                board_table,
                kind_tables[number],
                contexts[number],
                weights[number],
                earlier[0][number],
                earlier[1][number],
                autoregressive,
                noise[number],
                warmth[first:last],
                scratch,
                probability,
                rows.blocked,
                given,
                chosen,
                logprob[first:last],
            )
        return chosen

    def _order_rows(self, decisions: Decisions) -> OrderRows:
        """Return `order_rows` for a table of boards that is laid out (K, V, M)."""
        _, provinces, most = self.shape
        views, inputs, count = self.views, self.inputs, decisions.count
        standing = np.empty((count, provinces), np.int32)
        scratch = np.zeros((2, provinces), np.int32)
        _stand(inputs.reach, views.board, self.at, views.power[self.at], standing, *scratch)
        rows = np.empty((len(decisions.order), ROWS), np.int32)
        blocked, nothing = np.empty(len(decisions.order), bool), np.empty(0, np.int32)
        first = self.at // most * provinces * most + self.at % most
        _index(inputs.columns, decisions, first, most, standing, nothing, False, rows, blocked)
        return OrderRows(rows, blocked)
