"""Decisions as a network saw and took them, and minibatches of them."""

import numpy as np
import pytest
from support.experience import assert_same_experience, make_experience

from diplomacy_engine.learning.experience import Batch, Experience


def test_experience_take_and_join():
    whole = make_experience(np.arange(20))
    parts = [whole.take(np.arange(0, 7)), whole.take(np.arange(7, 20))]
    assert_same_experience(Experience.join(parts), whole)
    rows = np.array([13, 2, 2, 19, 0])
    assert_same_experience(whole.take(rows), make_experience(rows))
    assert len(whole.take(rows).obs.board) == 4  # of the boards 6, 1, 9 and 0, each once


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
