"""What powers see that talk before they order: the boards, and what was said and agreed upon."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from ...constants import NONE
from ...games.decisions import Decisions
from ...games.observation import BoardViews


class Template(IntEnum):
    PEACE = 0
    ZONE = 1  # both keep out of a center
    ASK = 2  # the receiver supports a move of the sender
    HELP = 3  # the sender supports a move of the receiver
    SWAP = 4  # both


TEMPLATES = tuple(template.name.lower() for template in Template)
# A power has so many SLOTS for offers to each other one.
TEMPLATE_OF = np.repeat(list(Template), (1, 2, 2, 2, 1))  # (SLOTS,)
SLOTS = len(TEMPLATE_OF)
# The provinces that a deal is about: from where and to where the sender's unit moves, from where
# the receiver's supports it, and the same of the receiver's move; of a zone its center as both
# goals. NONE where there is nothing.
PLACES = 6


def _take(views: Any, rows: np.ndarray) -> Any:
    boards = BoardViews(*views[:5]).take(rows)
    return type(views)(*boards, *(array[rows] for array in views[5:]))


def _part(views: Any, first: int, last: int) -> Any:
    return _take(views, np.arange(first, last))


def _join(parts: Sequence[Any]) -> Any:
    boards = BoardViews.join([BoardViews(*part[:5]) for part in parts])
    return type(parts[0])(*boards, *map(np.concatenate, zip(*(part[5:] for part in parts))))


class TalkViews(NamedTuple):
    """BoardViews of D powers, and their talk in this phase; powers are numbered as on the map."""

    board: np.ndarray  # these five as in BoardViews
    last_order: np.ndarray
    scalars: np.ndarray
    row: np.ndarray
    power: np.ndarray
    wish: np.ndarray  # (D, P) int8, peace with each power: 1 wished, 0 not, NONE not asked
    talk_logprob: np.ndarray  # (D,) float32, log-probability with which these wishes were drawn
    peace: np.ndarray  # (D, P) bool, with whom it was made

    @classmethod
    def of(
        cls,
        views: BoardViews,
        wish: np.ndarray | None = None,
        talk_logprob: np.ndarray | None = None,
        peace: np.ndarray | None = None,
        num_powers: int = 0,
    ) -> "TalkViews":
        """Where no talk is given, nobody of `num_powers` was asked."""
        shape = len(views.row), num_powers
        return cls(
            *views[:5],
            np.full(shape, NONE, np.int8) if wish is None else wish,
            np.zeros(shape[0], np.float32) if talk_logprob is None else talk_logprob,
            np.zeros(shape, bool) if peace is None else peace,
        )

    take, part, join = _take, _part, staticmethod(_join)


class OfferViews(NamedTuple):
    """BoardViews of D powers that make and answer offers; powers are numbered as on the map."""

    board: np.ndarray  # these five as in BoardViews
    last_order: np.ndarray
    scalars: np.ndarray
    row: np.ndarray
    power: np.ndarray
    able: np.ndarray  # (D, P, SLOTS) bool, what it could offer each power
    places: np.ndarray  # (D, P, SLOTS, PLACES) int16, provinces that this is about
    choice: np.ndarray  # (D,) int16, what it offered: power * SLOTS + slot, or NONE
    heard: np.ndarray  # (D, P) int8, template of what each power offered it, or NONE
    heard_places: np.ndarray  # (D, P, PLACES) int16, provinces that this is about
    answer: np.ndarray  # (D, P) int8, 1 it agreed, 0 not, NONE nothing to answer
    talk_logprob: np.ndarray  # (D,) float32, log-probability of this offer and these answers
    peace: np.ndarray  # (D, P) bool, with whom it was made
    dealt: np.ndarray  # (D, P) bool, with whom there is any deal

    @classmethod
    def of(cls, views: BoardViews, num_powers: int, **talk: np.ndarray) -> "OfferViews":
        """Where no talk is given, nobody of `num_powers` talked."""
        return cls(*views[:5], **silence(len(views.row), num_powers) | talk)

    take, part, join = _take, _part, staticmethod(_join)


def silence(count: int, powers: int) -> dict[str, np.ndarray]:
    return {
        "able": np.zeros((count, powers, SLOTS), bool),
        "places": np.full((count, powers, SLOTS, PLACES), NONE, np.int16),
        "choice": np.full(count, NONE, np.int16),
        "heard": np.full((count, powers), NONE, np.int8),
        "heard_places": np.full((count, powers, PLACES), NONE, np.int16),
        "answer": np.full((count, powers), NONE, np.int8),
        "talk_logprob": np.zeros(count, np.float32),
        "peace": np.zeros((count, powers), bool),
        "dealt": np.zeros((count, powers), bool),
    }


def who_can_answer(decisions: Decisions, shape: tuple[int, int]) -> np.ndarray:
    """Return which powers (E, P) bool of a movement phase have units, so that they can talk."""
    able = np.zeros(shape, bool)
    able[decisions.game, decisions.power] = True
    return able
