"""Random numbers of a search: drawn from the games' own seeds, so that it can be repeated.

A search draws the same numbers whatever else is searched at the same time, in whatever order and
with however many threads.
"""

import numpy as np

from ..._jit import jit
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.state import decision_seed, next_random


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
        salt: what they are used for, one of `Salt`.
    """
    out = np.empty((len(rows), count), np.uint64)
    rows, powers = np.asarray(rows, np.int64), np.asarray(powers, np.int64)
    _phase_seeds(games.state, rows, powers, int(salt), first, out)
    return out


def unit_places(seeds: np.ndarray) -> np.ndarray:
    """Return a place in [0, 1) for each seed, float64."""
    return (seeds >> np.uint64(11)).astype(np.float64) * 2.0**-53


def pick_shares(shares: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return which entry of each row of shares (..., K) a place (...) in [0, 1) falls on, int64."""
    edges = np.cumsum(shares, -1)
    edges /= edges[..., -1:]
    return (place[..., None] >= edges[..., :-1]).sum(-1)


@jit
def _uniform(seeds, slot_start, order_start, out):
    for d in range(seeds.shape[0]):
        rng = seeds[d]
        for n in range(order_start[slot_start[d]], order_start[slot_start[d + 1]]):
            rng, bits = next_random(rng)
            out[n] = min(max((bits + 0.5) / 4294967296, 1e-20), 1 - 1e-7)


def order_noise(decisions: Decisions, seeds: np.ndarray) -> np.ndarray:
    """Return (N,) float32 Gumbel noise: each decision's is drawn from its own seed (D,)."""
    out = np.empty(len(decisions.order), np.float32)
    _uniform(seeds, decisions.slot_start, decisions.order_start, out)
    return -np.log(-np.log(out))
