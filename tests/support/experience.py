"""Decisions that can be told apart, of no map."""

import numpy as np

from diplomacy_engine import BoardViews, Decisions
from diplomacy_engine.learning.experience import Experience


def make_experience(ids) -> Experience:
    """Return decisions that carry their id in every array, of 1..3 slots of 1..4 orders."""
    ids = np.asarray(ids)
    slots = 1 + ids % 3
    decision = np.repeat(np.arange(len(ids)), slots)
    rank = np.concatenate([np.arange(n) for n in slots])
    orders = 1 + (ids[decision] + rank) % 4
    slot = np.repeat(np.arange(len(orders)), orders)
    column = np.concatenate([np.arange(n) for n in orders])
    decisions = Decisions(
        ids.astype(np.int32),
        (ids % 7).astype(np.int8),
        np.append(0, np.cumsum(slots)).astype(np.int32),
        (ids[decision] * 3 + rank).astype(np.int16),
        np.append(0, np.cumsum(orders)).astype(np.int32),
        (ids[decision][slot] * 10 + column).astype(np.int32),
    )
    boards, row = np.unique(ids // 2, return_inverse=True)  # two ids look at one board
    obs = BoardViews(
        (boards[:, None, None] % 100 + np.arange(6).reshape(2, 3)).astype(np.int8),
        (boards[:, None] * 2 + np.arange(2)).astype(np.int32),
        (boards[:, None] + np.arange(5)).astype(np.int16),
        row,
        (ids % 7).astype(np.int8),
    )
    return Experience(obs, decisions, (ids[decision] + 2 * rank) % orders)


def assert_same_experience(found: Experience, expected: Experience) -> None:
    def arrays(experience: Experience):
        obs = experience.obs
        return *(array[obs.row] for array in obs[:3]), obs.power, *experience.decisions

    for array, other in zip(arrays(found), arrays(expected)):
        assert array.dtype == other.dtype
        np.testing.assert_array_equal(array, other)
    np.testing.assert_array_equal(found.chosen, expected.chosen)
