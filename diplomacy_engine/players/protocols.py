"""The interface of players: the methods that matches, environments and pages call."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from .._suggest import array_shapes
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame


class Player(Protocol):
    """Gives orders for pending decisions of many games.

    A player that never looks at `games.history` may have `reads_history`, False.
    """

    name: str

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return an order number for each slot of `decisions`, (S,) int32.

        A number that is not in its slot's list counts as no order: a unit holds, a dislodged one
        disbands, a build is waived, a removal is left to civil disorder. NONE is such a number.

        Random draws are a function of the game's seed, its turn and the power (games/draws.py), so
        that a second call returns the same. Earlier phases are in `games.history`, so that a player
        goes on with any game in any row; it is None where nobody keeps it, for example in a search,
        and in matches and environments of players whose `reads_history` is False.
        A player does not see the others' orders of this phase.
        The arrays of `decisions` are reused after the call; copy them to keep them.
        """


class PlayerGroup(Protocol):
    """Players that are asked together."""

    def act(
        self, games: VectorGame, decisions: Decisions, players: Sequence[Player], at: np.ndarray, /
    ) -> np.ndarray:
        """Return order numbers (S,) int32; `players[at[d]]`, of this group, decides d."""


@runtime_checkable
class CountingPlayer(Player, Protocol):
    """A player that counts its requests, for example to a language model."""

    keep: Collection[int]  # seeds of the games of which it keeps its thoughts

    def counts(self) -> dict: ...

    def thoughts(self, game_seed: int, phase: str, power: str) -> dict:
        """Return the thoughts behind a decision of a kept game; nothing if there was no request."""


@runtime_checkable
class CheckedPlayer(Player, Protocol):
    """A player whose orders may be wrong, for example a program's; they are counted."""

    faults: Counter[str]
    example: str  # of a wrong order


class Explanation(NamedTuple):
    """A player's probabilities of orders, and its values; N and D as in Decisions.

    A slot's probabilities add up to 1. They are conditional on the likeliest order of each earlier
    slot of the same decision, as in greedy play. In winter the order of an earlier slot has
    probability 0.
    """

    probability: np.ndarray  # (N,) float32, of each legal order of its slot, 0..1
    value: np.ndarray  # (D,) float32, discounted training reward that the deciding power expects

    def __repr__(self) -> str:
        return array_shapes(self)


@runtime_checkable
class ExplainingPlayer(Player, Protocol):
    """A player with explanations; use `isinstance` to find out."""

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        """Return the probability of every legal order of `decisions`, and the values.

        Draws nothing and changes nothing, so that it can be asked at any time.
        """


class Reasons(NamedTuple):
    """The candidates of a search for one movement decision; K candidates, R profiles."""

    candidates: np.ndarray  # (K, V) int32, its joint orders by province; the first is the player's
    # own without a search
    value: np.ndarray  # (K,) float64, mean value of each; NaN if it was not tried
    error: np.ndarray  # (K,) float64, standard error of the mean; NaN if unknown
    share: np.ndarray  # (K,) float64, probability that each is played
    expected: np.ndarray  # (R, V) int32, expected orders of the others
    beliefs: dict[str, np.ndarray]  # player -> (P,) probability that it plays each power


@runtime_checkable
class ReasoningPlayer(ExplainingPlayer, Protocol):
    """A player that returns the candidates of its search; use `isinstance` to find out."""

    def reasons(self, games: VectorGame, decisions: Decisions) -> list[Reasons]:
        """Return the reasons for each of `decisions`, of a movement phase. Changes nothing."""
