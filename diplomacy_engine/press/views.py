"""What powers see that talk before they order: the boards, and what came of their wishes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..constants import NONE
from ..games.decisions import Decisions
from ..games.observation import BoardViews


class TalkViews(NamedTuple):
    """BoardViews of D powers, and their talk in this phase; powers are numbered as on the map."""

    board: np.ndarray  # these five as in BoardViews
    last_order: np.ndarray
    scalars: np.ndarray
    row: np.ndarray
    power: np.ndarray
    wish: np.ndarray  # (D, P) int8, peace with each power: 1 wished, 0 not, NONE not asked
    wish_logprob: np.ndarray  # (D,) float32, log-probability with which these wishes were drawn
    peace: np.ndarray  # (D, P) bool, with whom it was made

    @classmethod
    def of(
        cls,
        views: BoardViews,
        wish: np.ndarray | None = None,
        wish_logprob: np.ndarray | None = None,
        peace: np.ndarray | None = None,
        num_powers: int = 0,
    ) -> "TalkViews":
        """Return views with this talk; where none is given, nobody of `num_powers` was asked."""
        shape = len(views.row), num_powers
        return cls(
            *views[:5],
            np.full(shape, NONE, np.int8) if wish is None else wish,
            np.zeros(shape[0], np.float32) if wish_logprob is None else wish_logprob,
            np.zeros(shape, bool) if peace is None else peace,
        )

    def take(self, rows: np.ndarray) -> "TalkViews":
        """Return the views of the given rows, in that order, and only the boards they need."""
        return TalkViews(*BoardViews(*self[:5]).take(rows), *(array[rows] for array in self[5:]))

    @staticmethod
    def join(parts: "Sequence[TalkViews]") -> "TalkViews":
        """Return all views of `parts`, one part after the other."""
        boards = BoardViews.join([BoardViews(*part[:5]) for part in parts])
        return TalkViews(*boards, *map(np.concatenate, zip(*(part[5:] for part in parts))))


def who_can_answer(decisions: Decisions, shape: tuple[int, int]) -> np.ndarray:
    """Return which powers (E, P) bool of a movement phase have units, so that they can talk."""
    able = np.zeros(shape, bool)
    able[decisions.game, decisions.power] = True
    return able
