"""Observations of powers that talk before they order: the boards, messages and deals."""

from enum import IntEnum
from operator import itemgetter
from typing import Annotated, Self

import numpy as np

from .._arrays import Bools, Float32s, Int8s, Int16s, Int32s, new_arrays
from ..constants import NONE
from ..games.decisions import Decisions
from ..games.observation import BoardViews


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


class WithTalk(BoardViews):
    """BoardViews of D powers, and behind their arrays those that a class of this kind annotates."""

    def __init_subclass__(cls) -> None:
        cls._fields = (*BoardViews._fields, *cls.__annotations__)  # type: ignore[assignment]  # more
        for i, name in enumerate(cls._fields):
            setattr(cls, name, property(itemgetter(i)))

    def __new__(cls, *arrays: np.ndarray) -> Self:
        return tuple.__new__(cls, arrays)

    def _replace(self, **arrays: np.ndarray) -> Self:
        return type(self)(*(self._asdict() | arrays).values())

    @classmethod
    def of(cls, views: BoardViews, num_powers: int, **talk: np.ndarray) -> Self:
        """Where no talk is given, nobody of `num_powers` talked."""
        talk = silence(cls, len(views.row), num_powers) | talk
        return cls(*views[:5], *(talk[name] for name in cls.__annotations__))


class TalkViews(WithTalk):
    """BoardViews of D powers, and their talk in this phase; powers are numbered as on the map."""

    wish: Annotated[Int8s, "D, P", NONE]  # peace with each power: 1 wished, 0 not, NONE not asked
    talk_logprob: Annotated[Float32s, "D"]  # log-probability with which all this was drawn
    peace: Annotated[Bools, "D, P"]  # with whom it was made
    # years since each power last broke a deal with it, or NONE
    breaches: Annotated[Int32s, "D, P", NONE]
    keeps: Annotated[Int8s, "D", NONE]  # 1 it keeps its deals, 0 it need not, NONE it was not asked


class OfferViews(WithTalk):
    """BoardViews of D powers that make and answer offers; powers are numbered as on the map."""

    able: Annotated[Bools, "D, P, SLOTS"]  # what it could offer each power
    places: Annotated[Int16s, "D, P, SLOTS, PLACES", NONE]  # provinces that this is about
    choice: Annotated[Int16s, "D", NONE]  # what it offered: power * SLOTS + slot, or NONE
    heard: Annotated[Int8s, "D, P", NONE]  # template of what each power offered it, or NONE
    heard_places: Annotated[Int16s, "D, P, PLACES", NONE]  # provinces that this is about
    answer: Annotated[Int8s, "D, P", NONE]  # 1 it agreed, 0 not, NONE nothing to answer
    talk_logprob: Annotated[Float32s, "D"]  # log-probability with which all this was drawn
    peace: Annotated[Bools, "D, P"]  # with whom it was made
    dealt: Annotated[Bools, "D, P"]  # with whom there is any deal
    breaches: Annotated[Int32s, "D, P", NONE]  # these two as in TalkViews
    keeps: Annotated[Int8s, "D", NONE]


def silence(kind: type[WithTalk], count: int, powers: int) -> dict[str, np.ndarray]:
    """Return the talk of a kind of views where `count` of so many powers have said nothing."""
    talk = new_arrays(kind, D=count, P=powers, SLOTS=SLOTS, PLACES=PLACES)
    return dict(zip(kind.__annotations__, talk))


def who_can_answer(decisions: Decisions, shape: tuple[int, int]) -> np.ndarray:
    """Return which powers (E, P) bool of a movement phase have units, so that they can talk."""
    able = np.zeros(shape, bool)
    able[decisions.game, decisions.power] = True
    return able
