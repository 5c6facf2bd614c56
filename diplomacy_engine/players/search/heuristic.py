"""What a board is worth without a network: shares of the centers that powers own and can reach."""

from typing import NamedTuple

import numpy as np

from ..._jit import jit
from ...constants import FALL_MOVEMENT, FALL_RETREATS, NONE, RUNNING, SOLO, SPRING_RETREATS
from ...games.vector_game import StepResult, VectorGame
from ...scoring.rewards import squared_shares


class Weights(NamedTuple):
    """What counts in the value of a board."""

    # Of the claims to a center before and after captures; the rest is for who has it now.
    claimed_before: float = 0.9
    claimed_after: float = 0.35
    # How much a power has to say about a center, in units that stand in it or can go there.
    standing: float = 1.5
    owning: float = 0.5


WEIGHTS = Weights()


@jit
def _value_boards(board, state, rows, first, last, weights, near, expected, out):
    """Value games rows[first:last] for every power.

    Reads   state.unit_*, state.center_owner, state.phase, state.end
    Writes  out (n, P), shares that add up to 1; near (P, V) and expected (P,), to work with
    Rule    a finished game: 1 for a solo, else squared centers over the sum of all powers' squares.
            A running one: the same of expected centers. A power's claim to a center is the number
            of its units that stand there or can move there, and more for the one that stands
            there and for its owner; the center counts for each power as its squared claim among
            all of them, and besides for the power that has it
    """
    for i in range(first, last):
        e = rows[i]
        expected[:] = 0
        if state.end[e] == SOLO:
            out[i] = 0
            out[i, state.winner[e]] = 1
            continue
        phase = state.phase[e]
        before = phase in (SPRING_RETREATS, FALL_MOVEMENT)
        share = weights.claimed_before if before else weights.claimed_after
        if state.end[e] == RUNNING and phase != FALL_RETREATS:
            near[:] = 0
            for v in range(board.terrain.shape[0]):
                p = state.unit_power[e, v]
                if p == NONE or p == board.num_powers:
                    continue
                near[p, v] += weights.standing
                kind, here = state.unit_kind[e, v], state.unit_location[e, v]
                came = NONE
                for n in range(board.neighbor_count[kind, here]):
                    q = board.location_province[board.neighbor[kind, here, n]]
                    if q != came:  # coasts of a province are next to each other
                        near[p, q] += 1
                    came = q
        else:
            share = 0.0
        for c in range(board.center_province.shape[0]):
            v = board.center_province[c]
            holder, owner = state.unit_power[e, v], state.center_owner[e, c]
            if holder == NONE or holder == board.num_powers or state.end[e] != RUNNING:
                holder = owner
            if holder != NONE:
                expected[holder] += 1 - share
            if share == 0:
                continue
            total = 0.0
            for p in range(board.num_powers):
                if near[p, v] > 0 or p == owner:
                    claim = near[p, v] + (weights.owning if p == owner else 0.0)
                    total += claim * claim
            if total > 0:
                for p in range(board.num_powers):
                    claim = near[p, v] + (weights.owning if p == owner else 0.0)
                    expected[p] += share * claim * claim / total
        total = 0.0
        for p in range(board.num_powers):
            total += expected[p] * expected[p]
        for p in range(board.num_powers):
            out[i, p] = expected[p] * expected[p] / max(total, 1e-9)


class CenterClaims:
    """The value of a board by centers: owned, stood in, and within reach. From 0 to 1.

    A finished game counts with its exact result, as `sum_of_squares` of scoring/outcomes.py.
    """

    discount = 1.0
    at_once = True

    def paid(self, result: StepResult, victory_centers: int) -> np.ndarray:
        """Return the exact result of games that have just ended, (n, P); 0 in running ones."""
        winner = result.winner[:, None] == np.arange(result.centers.shape[1])
        exact = np.where((result.ended == SOLO)[:, None], winner, squared_shares(result.centers))
        return np.where((result.ended == RUNNING)[:, None], 0.0, exact)

    def look(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        """Return what rows (n,) are worth to powers (n,); nothing is left to be done."""
        return self.shares(games, rows)[np.arange(len(rows)), powers]

    def values(self, boards: list) -> np.ndarray:
        """Return the values that `look` returned, one part after the other."""
        return np.concatenate(boards)

    def shares(self, games: VectorGame, rows: np.ndarray) -> np.ndarray:
        """Return what games are worth to every power, (n, P), which add up to 1."""
        powers, provinces = games.num_powers, len(games.board.terrain)
        rows = np.ascontiguousarray(rows, np.int64)
        out = np.empty((len(rows), powers))

        def value_slice(first: int, last: int) -> None:
            scratch = np.empty((powers, provinces)), np.empty(powers)
            games.call(
                _value_boards,
                games.board,
                games.state,
                rows,
                first,
                last,
                WEIGHTS,
                *scratch,
                out,
            )

        games.run(value_slice, len(rows))
        return out
