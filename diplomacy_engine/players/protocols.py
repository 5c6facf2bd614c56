"""What a player is: the functions that matches, environments and pages call."""

from collections.abc import Collection
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from .._suggest import array_shapes
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame


class Player(Protocol):
    """Gives orders for pending decisions of many games."""

    name: str

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return an order number for each slot of `decisions`, (S,) int32.

        A number that is not in its slot's list counts as no order: a unit holds, a dislodged one
        disbands, a build is waived, a removal is left to civil disorder. NONE is such a number.

        Whatever it draws is a function of the game's seed, its turn and the power (games/draws.py),
        so that a second call returns the same. What it knows of earlier phases it reads from
        `games.history`, so that it may go on with any game, in any row; that is None where nobody
        keeps it, such as in a search. It sees nothing of what others order in this phase.
        The arrays of `decisions` are reused after the call; copy what you keep.
        """


@runtime_checkable
class CountingPlayer(Player, Protocol):
    """A player that counts what it asked of something else, such as a language model."""

    keep: Collection[int]  # seeds of the games of which it keeps its thoughts

    def counts(self) -> dict: ...

    def thoughts(self, game_seed: int, phase: str, power: str) -> dict:
        """Return what led to a decision of a game that it keeps; nothing if it was not asked."""


class Explanation(NamedTuple):
    """Why a player would order what it does; N and D as in Decisions.

    A slot's probabilities add up to 1. They hold after the likeliest order of each earlier slot of
    the same decision, one slot after the other: the path that greedy play takes. In winter, what an
    earlier slot took has probability 0.
    """

    probability: np.ndarray  # (N,) float32, of each legal order of its slot, 0..1
    value: np.ndarray  # (D,) float32, discounted training reward that the deciding power expects

    __repr__ = array_shapes


@runtime_checkable
class ExplainingPlayer(Player, Protocol):
    """A player that can also say what it thinks; `isinstance` tells whether one can."""

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        """Return the probability of every legal order of `decisions`, and the values.

        Draws nothing and changes nothing, so that it can be asked at any time.
        """


class Reasons(NamedTuple):
    """What a player that searches has tried for one movement decision; K candidates, R profiles."""

    candidates: np.ndarray  # (K, V) int32, its joint orders by province; the first is the player's
    # own without a search
    value: np.ndarray  # (K,) float64, mean of what each was worth; NaN if it was not tried
    error: np.ndarray  # (K,) float64, standard error of that; NaN where it is not known
    share: np.ndarray  # (K,) float64, probability that each is played
    expected: np.ndarray  # (R, V) int32, orders of the others that it reckons with
    beliefs: dict[str, np.ndarray]  # whom it takes each power for: player -> (P,) probability


@runtime_checkable
class ReasoningPlayer(ExplainingPlayer, Protocol):
    """A player that can say what it has tried; `isinstance` tells whether one can."""

    def reasons(self, games: VectorGame, decisions: Decisions) -> list[Reasons]:
        """Return the reasons for each of `decisions`, of a movement phase. Changes nothing."""
