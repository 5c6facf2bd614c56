import numpy as np
import pytest

from diplomacy_engine.learning.copy_ratings import ELO, NOW, copy_ratings


@pytest.mark.parametrize("handicap", [-1.0, 0.0, 2.0])
def test_ratings_are_found_whatever_the_handicap(handicap):
    """Copies of a learner that improves; its opponents are those of the last five, and one that
    was trained against it."""
    strength = np.cumsum([0, 1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.1])
    exploiter = 100
    others = dict(enumerate(strength[:-1])) | {exploiter: 1.2}
    duels = {}
    for newest in range(8):
        now = (strength[newest] + strength[newest + 1]) / 2 + handicap
        met = [*range(max(0, newest - 4), newest + 1), *([exploiter] if newest > 2 else [])]
        chances = {number: 1 / (1 + np.exp(others[number] - now)) for number in met}
        duels[newest] = {number: (2000.0, 2000 * chance) for number, chance in chances.items()}
    rated = copy_ratings(duels)
    expected = others | {NOW: strength[-1]}
    for number, rating in rated.items():
        assert rating == pytest.approx(ELO * expected[number], abs=25)
    assert rated[0] == 0 and rated.keys() == expected.keys()


def test_a_learner_that_does_not_improve_stays_at_zero():
    duels = {n: {k: (100.0, 60.0) for k in range(n + 1)} for n in range(6)}
    assert max(map(abs, copy_ratings(duels).values())) < 2
