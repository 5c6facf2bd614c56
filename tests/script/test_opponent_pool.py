"""The opponent pool: who is in it, who is drawn how often, and when a copy is frozen."""

import copy

import numpy as np
import pytest
from support.positions import ready, some_batch
from support.self_play import make_agent, make_pool
from support.training import differences
from torch import nn

from diplomacy_engine.learning.ranks import Ranks
from ppo_selfplay_diplomacy import LEARNER, OpponentPool, update


def test_the_pool_keeps_the_newest():
    pool = make_pool(pool_size=3, pool_interval=100)
    assert [pool.frozen_at[number] for number in pool.copies] == [0]
    for step in (100, 200, 300, 400):
        assert not pool.is_due(step - 1) and pool.is_due(step)
        pool.freeze(nn.Identity(), step)
    assert [pool.frozen_at[number] for number in pool.copies] == [200, 300, 400]
    assert len(set(pool.copies)) == 3 and LEARNER not in pool.copies


def shares(pool: OpponentPool, count: int = 20_000) -> dict[int, float]:
    drawn = pool.sample(np.random.default_rng(3), (count,))
    return {int(n): float((drawn == n).mean()) for n in np.unique(drawn)}


@pytest.mark.parametrize("latest", [0.5, 0.2, 1.0, 0.0])
def test_share_of_the_newest_copy(latest):
    pool, share = make_pool(5, latest_prob=latest), max(latest, 1 / 5)
    np.testing.assert_allclose(pool.weights(), [(1 - share) / 4] * 4 + [share])
    found = shares(pool)
    for number, expected in zip(range(1, 6), pool.weights()):
        deviation = 4 * (expected * (1 - expected) / 20_000) ** 0.5
        assert abs(found.get(number, 0.0) - expected) <= deviation
    pool = make_pool(1, latest_prob=latest)
    assert shares(pool) == {1: 1.0}


def test_other_ways_to_draw():
    pool = make_pool(3, pool_sampling="recency")
    np.testing.assert_allclose(pool.weights(), np.array([0.64, 0.8, 1]) / 2.44)
    pool = make_pool(3, pool_sampling="pfsp")
    np.testing.assert_allclose(pool.weights(), [1 / 3] * 3)
    # Ten wins against the first, ten losses against the second, ten draws against the third
    pool.record(np.full(3, 10.0), np.array([10.0, 0.0, 5.0]))
    easy, hard, even = pool.weights()
    assert hard > even > easy > 0
    assert hard / even == pytest.approx((11 / 12) ** 2 / 0.25, rel=0.02)
    assert abs(shares(pool)[2] - hard) < 0.02


def test_a_copy_does_not_change_when_the_learner_learns():
    agent = make_agent(hidden=8, num_layers=1)
    pool = make_pool(1, agent)
    before = copy.deepcopy(agent.state_dict())
    update(ready(agent, 0.05), some_batch(agent), 0.0, Ranks())
    pool.freeze(agent, 50)
    learned, old, new = (dict(of.state_dict()) for of in (agent, *pool.agents.values()))
    assert differences(old, dict(before)) == [] != differences(old, learned)
    assert differences(new, learned) == []
    frozen = [*pool.agents[1].parameters(), *pool.agents[2].parameters()]
    assert not any(parameter.requires_grad for parameter in frozen)
