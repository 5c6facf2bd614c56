"""Random draws: each is a function of a game's seed, its turn, the power and its use (`Salt`), and
so the same in any order, batch, thread or process."""

import numpy as np

from .._jit import jit, jit_allocating
from ..rules.state import Salt, decision_seed, next_random
from .decisions import Decisions
from .vector_game import VectorGame


@jit
def _phase_seeds(state, rows, powers, salt, first, out):
    """Write seeds `first` and on of powers (n,) in games `rows` (n,) to out (n, count)."""
    for i in range(rows.shape[0]):
        rng = decision_seed(state, rows[i], powers[i], salt)
        for k in range(first + out.shape[1]):
            rng, high = next_random(rng)
            mixed, low = next_random(rng ^ np.uint64(high))
            if k >= first:
                out[i, k - first] = mixed ^ np.uint64(low)


def phase_seeds(
    games: VectorGame,
    rows: np.ndarray,
    powers: np.ndarray | int,
    salt: int,
    count: int = 1,
    first: int = 0,
) -> np.ndarray:
    """Return (n, count) uint64 seeds, numbers `first` and on, of powers' draws in this phase of
    games `rows` (n,). `salt` is what they are used for, one of `Salt`."""
    out = np.empty((len(rows), count), np.uint64)
    rows, powers = np.asarray(rows, np.int64), np.asarray(powers, np.int64)
    powers = np.ascontiguousarray(np.broadcast_to(powers, rows.shape))
    games.call(_phase_seeds, games.state, np.ascontiguousarray(rows), powers, int(salt), first, out)
    return out


def uniform(
    games: VectorGame,
    rows: np.ndarray,
    powers: np.ndarray,
    salt: int,
    count: int = 1,
    first: int = 0,
) -> np.ndarray:
    """Return (n, count) float64 draws in (0, 1), independent ones, from `phase_seeds`."""
    seeds = phase_seeds(games, rows, powers, salt, count, first)
    return _independent(seeds.ravel()).reshape(seeds.shape)


@jit_allocating
def _independent(seeds):
    out = np.empty(seeds.shape[0])
    for i in range(seeds.shape[0]):
        _, bits = next_random(seeds[i])
        out[i] = (bits + 0.5) / 4294967296
    return out


def unit_places(seeds: np.ndarray) -> np.ndarray:
    """Return where seeds of `phase_seeds` lie in [0, 1); those of one phase lie evenly."""
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
    """Return (N,) float32 Gumbel noise, each decision's from its own seed (D,): the highest of
    scores plus noise is a softmax draw."""
    out = np.empty(len(decisions.order), np.float32)
    _uniform(seeds, decisions.slot_start, decisions.order_start, out)
    for _ in range(2):
        np.negative(np.log(out, out=out), out=out)
    return out


def sample_noise(games: VectorGame, decisions: Decisions) -> np.ndarray:
    """Return the (N,) Gumbel noise by which policies sample orders of pending decisions."""
    seeds = phase_seeds(games, decisions.game, decisions.power, Salt.POLICY)
    return order_noise(decisions, seeds[:, 0])
