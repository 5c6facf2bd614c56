"""Random numbers of a search: drawn from the games' own seeds, so that it can be repeated.

A search draws the same numbers whatever else is searched at the same time, in whatever order and
with however many threads.
"""

import numpy as np

from ..._jit import jit
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.state import decision_seed, next_random

CANDIDATES, PROFILES, FOLLOWING, CHOICE, PLAIN = 201, 202, 203, 204, 205  # uses, for decision_seed


@jit
def _phase_seeds(state, rows, powers, salt, first, out):
    for i in range(rows.shape[0]):
        rng = decision_seed(state, rows[i], powers[i], salt)
        for k in range(first + out.shape[1]):
            rng, high = next_random(rng)
            mixed, low = next_random(rng ^ np.uint64(high))
            if k >= first:
                out[i, k - first] = mixed ^ np.uint64(low)


def phase_seeds(
    games: VectorGame, rows: np.ndarray, powers: np.ndarray, salt: int, count: int, first: int = 0
) -> np.ndarray:
    """Return (n, count) uint64 seeds, numbers `first` and on, of powers' draws in this phase.

    Args:
        rows, powers: (n,) integers.
        salt: says what they are used for, one number a use.
    """
    out = np.empty((len(rows), count), np.uint64)
    _phase_seeds(
        games.state, np.asarray(rows, np.int64), np.asarray(powers, np.int64), salt, first, out
    )
    return out


@jit
def _uniform(seeds, slot_start, order_start, out):
    for d in range(seeds.shape[0]):
        rng = seeds[d]
        for n in range(order_start[slot_start[d]], order_start[slot_start[d + 1]]):
            rng, bits = next_random(rng)
            out[n] = min(max((bits + 0.5) / 4294967296, 1e-20), 1 - 1e-7)


def order_noise(decisions: Decisions, seeds: np.ndarray) -> np.ndarray:
    """Return (N,) float32 in (0, 1), uniform: each decision's are drawn from its own seed (D,)."""
    out = np.empty(len(decisions.order), np.float32)
    _uniform(seeds, decisions.slot_start, decisions.order_start, out)
    return out
