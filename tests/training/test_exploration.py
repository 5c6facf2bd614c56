"""Settings that members of a population vary."""

from types import SimpleNamespace

import numpy as np

from diplomacy_engine.scoring import make_reward_mix
from diplomacy_engine.training.exploration import VARIED, explored

FIRST = {
    "learning_rate": 1e-3,
    "gae_lambda": 0.8,
    "gamma": 1.0,
    "weak_seats": 0.95,
    "update_epochs": 3,
    "reward_mix": "sum_of_squares=1..0@0.5,team:score",
}


def test_settings_change_by_a_factor():
    first, rng = SimpleNamespace(**FIRST), np.random.default_rng(1)
    for _ in range(20):
        found = explored(FIRST, first, rng, anew=0)
        assert found.keys() == FIRST.keys() <= set(VARIED)
        assert found["learning_rate"] in (8e-4, 1.2e-3) and found["gae_lambda"] in (0.84, 0.76)
        # What is missing to 1 is varied, and no share is above 1.
        assert found["gamma"] == 1 and found["weak_seats"] in (0.76, 1) and found["update_epochs"]
        squares, score = found["reward_mix"].split(",")
        assert squares in ("sum_of_squares=0.8..0@0.5", "sum_of_squares=1.2..0@0.5")
        assert score in ("team:score=0.8", "team:score=1.2")


def test_settings_are_drawn_around_the_first():
    first, rng = SimpleNamespace(**FIRST), np.random.default_rng(2)
    other = FIRST | {"learning_rate": 5.0, "reward_mix": "score=7"}
    drawn = [explored(other, first, rng, anew=1) for _ in range(200)]
    rates = np.array([found["learning_rate"] for found in drawn])
    assert rates.min() > 3e-4 and rates.max() < 3.1e-3 and np.median(rates / 1e-3) > 0.8
    lambdas = np.array([found["gae_lambda"] for found in drawn])
    assert lambdas.min() > 0.39 and lambdas.max() < 0.94
    assert {found["update_epochs"] for found in drawn} >= {1, 2, 5, 8}
    mixes = [found["reward_mix"].replace("team:", "") for found in drawn]
    weights = [make_reward_mix(mix).weights(0)["sum_of_squares"] for mix in mixes]
    assert 0.3 < min(weights) < 0.5 and 2 < max(weights) < 3.1
