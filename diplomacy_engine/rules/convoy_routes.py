"""Convoy routes: over which fleets an army could go from one coast to another."""

from typing import NamedTuple

import numpy as np

from ..constants import COAST, FLEET
from .map import Map, MapError

MAX_CONVOY_SEAS = 64  # a route is a set of bits in a uint64
MAX_CONVOY_ROUTES = 1_000_000  # standard has 2,094
_CHUNK = 8192  # walks that are continued at once


class ConvoyRoutes(NamedTuple):
    """All sets of fleets that just suffice to convoy an army, sorted by origin, goal and fleets.

    Each fleet of a route touches only the one before and the one after it, only the first the
    origin, and only the last the destination; an army's own province is none of them.
    """

    origin: np.ndarray  # (routes,) int16, province
    goal: np.ndarray  # (routes,) int16, province
    fleets: np.ndarray  # (routes,) uint64, bits that are indices into `seas`
    seas: list[int]  # provinces where a fleet is on some route, ascending


def convoy_routes(game_map: Map) -> ConvoyRoutes:
    """Return the convoy routes of a map.

    MapError: there are more than MAX_CONVOY_ROUTES, as a larger map of seas could take forever, or
    they use more than MAX_CONVOY_SEAS seas.
    """
    origins, goals, route = _walks(game_map)
    # Only the way over one sea leads back to where it began, so to two coasts or to none.
    useful = goals.any(axis=1) & ((origins != goals).any(axis=1) | (_sizes(goals) > 1))
    origins, goals, route = origins[useful], goals[useful], route[useful]
    _, seas = _set_bits(np.bitwise_or.reduce(route, axis=0, keepdims=True))
    if len(seas) > MAX_CONVOY_SEAS:
        reason = f"armies can be convoyed over {len(seas)} seas; at most {MAX_CONVOY_SEAS} can be"
        raise MapError(game_map.source, [reason])
    fleets = np.zeros(len(route), np.uint64)
    for i, sea in enumerate(seas.tolist()):
        fleets |= (route[:, sea // 64] >> np.uint64(sea % 64) & np.uint64(1)) << np.uint64(i)
    # Each origin of a way with each of its goals; small integers, as there may be millions.
    order = np.argsort(fleets)
    fleets = fleets[order]
    way, origin = _set_bits(origins[order])
    goal_way, goal = _set_bits(goals[order])
    first = np.searchsorted(goal_way, np.arange(len(order) + 1))
    counts = np.diff(first)[way]
    shift = np.repeat((first[way] - np.cumsum(counts) + counts).astype(np.int32), counts)
    goal = goal.astype(np.int16)[np.arange(len(shift), dtype=np.int32) + shift]
    origin = np.repeat(origin.astype(np.int16), counts)
    provinces = len(game_map.provinces)
    pair = (origin * np.int32(provinces) + goal).astype(np.min_scalar_type(provinces**2))
    order = np.argsort(pair, kind="stable").astype(np.int32)  # for 16 bits a radix sort
    order = order[(origin != goal)[order]]
    way = np.repeat(way.astype(np.int32), counts)
    return ConvoyRoutes(origin[order], goal[order], fleets[way[order]], seas.tolist())


def _walks(game_map: Map) -> tuple[np.ndarray, ...]:
    """Walk over the seas; return the origins, the goals and the fleets of each walk, sets of
    provinces as bits of words (walks, words)."""
    board = game_map.board
    near = np.zeros((len(board.terrain), len(board.terrain)), bool)
    first = np.flatnonzero(game_map.can_convoy)
    near[first] = board.reach[FLEET, board.province_location[first]]
    shores, touching = _words(near & (board.terrain == COAST)), _words(near & game_map.can_convoy)
    single = _words(np.eye(len(near), dtype=bool))
    nothing = np.zeros((len(first), single.shape[1]), np.uint64)
    # Of each walk: its last fleet; its origins and fleets; what the fleets before the last touch,
    # of places of fleets and of coasts.
    pending = [(first, shores[first], single[first], nothing, nothing)]
    walked, walks = 0, []
    while pending:
        last, origins, route, passed, landed = pending.pop()
        walked += int(_sizes(origins).sum())
        if walked > MAX_CONVOY_ROUTES:
            reason = f"it has more than {MAX_CONVOY_ROUTES:,} convoy routes"
            raise MapError(game_map.source, [reason])
        walks.append((origins, shores[last] & ~(landed | route), route))
        walk, sea = _set_bits(touching[last] & ~(passed | route))
        longer = origins[walk] & ~(shores[sea] | single[sea])
        served = longer.any(axis=1)
        walk, sea, longer = walk[served], sea[served], longer[served]
        passed = passed[walk] | touching[last[walk]]
        landed = landed[walk] | shores[last[walk]]
        arrays = (sea, longer, route[walk] | single[sea], passed, landed)
        for i in range(0, len(sea), _CHUNK):
            pending.append(tuple(array[i : i + _CHUNK] for array in arrays))
    return tuple(np.concatenate(arrays) for arrays in zip(*walks))


def _words(flags: np.ndarray) -> np.ndarray:
    """Pack flags (n, provinces) into the bits of uint64 words (n, words)."""
    packed = np.packbits(flags, axis=1, bitorder="little")
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view("<u8")


def _set_bits(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return row and province of each set bit of words (n, words), in order."""
    rows, places = np.nonzero(words.view(np.uint8))  # most bytes are zero
    byte, bits = np.nonzero(
        np.unpackbits(words.view(np.uint8)[rows, places, None], axis=1, bitorder="little")
    )
    return rows[byte], places[byte] * 8 + bits


def _sizes(words: np.ndarray) -> np.ndarray:
    return np.bitwise_count(words).sum(axis=1)
