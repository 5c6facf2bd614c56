"""Minibatches of decisions, as a network saw and took them."""

import numpy as np
import pytest
from support.experience import make_experience

from diplomacy_engine.learning.experience import Batch


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 30])
def test_parts_of_a_batch_share_no_board(parts):
    experience = make_experience(np.random.default_rng(parts).permutation(21))
    batch = Batch(experience, *np.zeros((4, 21), np.float32))
    for rng in (np.random.default_rng(1), np.random.default_rng(2)):
        rows = batch.split(parts, rng)
        assert sorted(np.concatenate(rows)) == list(range(21))
        boards = [set(experience.obs.row[part]) for part in rows]
        assert all((np.diff(experience.obs.row[part]) >= 0).all() for part in rows)
        assert sum(map(len, boards)) == 11 and len(boards) == parts
        sizes = list(map(len, boards))
        assert max(sizes) - min(sizes) <= 1
    if parts > 1:
        other = batch.split(parts, np.random.default_rng(1))
        assert any(set(one) != set(two) for one, two in zip(rows, other))
