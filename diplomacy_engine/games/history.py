"""What came before in games, for players whose orders depend on it."""

from typing import TYPE_CHECKING

import numpy as np

from ..constants import RUNNING, Phase
from ..rules.state import GameState, in_movement

if TYPE_CHECKING:
    from .vector_game import VectorGame


class History:
    """The movement phases that E games have had, each as it stood before its orders.

    Attributes:
        games: these positions; that of the i-th phase of game e is in row i * E + e.
        count: (E,) int64, how many of each game there are.
    """

    def __init__(self, games: "VectorGame"):
        self.games = games.spare(games.num_games)
        self.count = np.zeros(games.num_games, np.int64)

    def rows_of(self, game: int) -> np.ndarray:
        return np.arange(self.count[game]) * len(self.count) + game

    def add(self, games: "VectorGame", rows: np.ndarray) -> None:
        """Add the positions of those of `rows` that are in a movement phase."""
        self.games.max_years = games.max_years
        moving = rows[in_movement(games.state, rows) & (games.state.end[rows] == RUNNING)]
        self._make_room(1 + self.count[moving].max(initial=0))
        into = self.count[moving] * len(self.count) + moving
        self.games.copy_from(games, moving, into, keep_seeds=True)
        self.count[moving] += 1

    def copy_from(self, other: "History | None", rows: np.ndarray, into: np.ndarray) -> None:
        """Give games `into` (n,) what games `rows` (n,) of another history have had."""
        for row, game in zip(rows.tolist(), into.tolist()):
            past = np.zeros(0, np.int64) if other is None else other.rows_of(row)
            self._make_room(len(past))
            self.count[game] = len(past)
            if len(past):
                self.games.copy_from(other.games, past, self.rows_of(game), keep_seeds=True)

    def _make_room(self, phases: int) -> None:
        if phases * len(self.count) > self.games.num_games:
            before, every = self.games, np.arange(self.games.num_games)
            self.games = before.spare(2 * phases * len(self.count))
            self.games.copy_from(before, every, every, keep_seeds=True)

    def phases(
        self, games: "VectorGame", rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the M movement phases that `rows` (n,) of `games` have had, each row's in order.

        These are the place in `rows` (M,), the row of `self.games` (M,), and the orders that were
        given, (M, V) order numbers by province. A phase is left out if the one after it is missing,
        from which its orders are read.
        """
        count, size = self.count[rows], len(self.count)
        place = np.repeat(np.arange(len(rows)), count)
        number = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        past = number * size + rows[place]
        after = np.where(number < count[place] - 1, past + size, 0)
        orders, last = self.games.state.last_order[after], _last_movement(self.games.state)[after]
        newest = number == count[place] - 1
        orders[newest] = games.state.last_order[rows[place[newest]]]
        last[newest] = _last_movement(games.state)[rows[place[newest]]]
        known = last == _last_movement(self.games.state)[past] + 1
        return place[known], past[known], orders[known]


def _last_movement(state: GameState) -> np.ndarray:
    """Return the number (E,) of the movement phase that was played last, two a year."""
    in_fall = state.phase >= Phase.FALL_MOVEMENT
    return 2 * state.year.astype(np.int64) + in_fall - in_movement(state)
