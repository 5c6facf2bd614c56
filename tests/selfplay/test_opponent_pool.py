"""The opponent pool: who is in it, who is drawn how often, and when a copy is frozen."""

import numpy as np
import pytest
from support.self_play import make_pool

from diplomacy_engine.selfplay.opponent_pool import LEARNER, OpponentPool


def test_the_pool_keeps_the_newest():
    pool = make_pool(pool_size=3, pool_interval=100)
    assert [member.frozen_at for member in pool.members] == [0]
    for step in (100, 200, 300, 400):
        assert not pool.is_due(step - 1) and pool.is_due(step)
        pool.freeze(object(), step)
    assert [member.frozen_at for member in pool.members] == [200, 300, 400]
    assert len({member.number for member in pool.members}) == 3


def shares(pool: OpponentPool, count: int = 20_000) -> dict[int, float]:
    drawn = pool.draw(np.random.default_rng(3), (count,))
    return {int(n): float((drawn == n).mean()) for n in np.unique(drawn)}


@pytest.mark.parametrize("latest", [0.5, 0.2, 1.0, 0.0])
def test_share_of_the_newest_copy(latest):
    pool = make_pool(5, latest_prob=latest)
    np.testing.assert_allclose(pool.weights(), [(1 - latest) / 4] * 4 + [latest])
    found = shares(pool)
    for number, expected in zip(range(1, 6), pool.weights()):
        deviation = 4 * (expected * (1 - expected) / 20_000) ** 0.5
        assert abs(found.get(number, 0.0) - expected) <= deviation
    pool = make_pool(1, latest_prob=latest)
    assert shares(pool) == {1: 1.0}


def test_other_ways_to_draw():
    np.testing.assert_allclose(make_pool(4, pool_sampling="uniform").weights(), [0.25] * 4)
    pool = make_pool(3, pool_sampling="recency", recency_decay=0.5)
    np.testing.assert_allclose(pool.weights(), [1 / 7, 2 / 7, 4 / 7])
    pool = make_pool(3, pool_sampling="pfsp")
    np.testing.assert_allclose(pool.weights(), [1 / 3] * 3)
    # Ten wins against the first, ten losses against the second, ten draws against the third
    for number, score in ((1, 1.0), (2, 0.0), (3, 0.5)):
        pool.record(np.tile([LEARNER, number], (10, 1)), np.full(10, score))
    easy, hard, even = pool.weights()
    assert hard > even > easy > 0
    assert hard / even == pytest.approx((11 / 12) ** 2 / 0.25, rel=0.02)
    assert abs(shares(pool)[2] - hard) < 0.02


def test_a_game_counts_once_for_each_member_in_it():
    pool = make_pool(3)
    pool.record(np.array([[1, LEARNER, 1], [LEARNER, 1, 3]]), np.array([1.0, 0.5]))
    assert [(m.games, m.score) for m in pool.members] == [(2.0, 1.5), (0.0, 0.0), (1.0, 0.5)]


def test_bots_in_the_pool():
    pool = make_pool(2, pool_bots=("hold", "chaos"), pool_bot_prob=0.3, latest_prob=0.5)
    found = shares(pool)
    assert len(found) == 4
    bots = [number for number in found if pool.all[number].frozen_at is None]
    assert sorted(pool.all[number].player.name for number in bots) == ["chaos", "hold"]
    assert sorted(bots) == [1, 2] and all(found[number] > 0.13 for number in bots)
    assert abs(sum(found[number] for number in bots) - 0.3) < 0.015
    assert LEARNER not in found
    for probability, count in ((0.0, 2), (1.0, 2)):
        pool = make_pool(2, pool_bots=("hold", "chaos"), pool_bot_prob=probability)
        found = shares(pool)
        scripted = {n for n in found if pool.all[n].frozen_at is None}
        assert len(found) == count and len(scripted) == (2 if probability else 0)


def test_a_stage_is_replaced_after_its_interval():
    pool = make_pool(
        pool_schedule="staged", staged_interval=100, staged_threshold=0.7, staged_games=4
    )
    assert not pool.is_due(99) and pool.is_due(100)
    pool.freeze(object(), 100)
    assert [member.frozen_at for member in pool.members] == [100]
    assert not pool.is_due(199) and pool.is_due(200)


def test_a_stage_is_replaced_once_it_is_beaten():
    pool = make_pool(
        pool_schedule="staged", staged_interval=10_000, staged_threshold=0.7, staged_games=4
    )
    newest = pool.members[-1].number
    game = np.array([[LEARNER, newest]])
    for score in (0.0, 1.0, 0.5, 1.0):  # a mean of 0.625
        pool.record(game, np.array([score]))
        assert not pool.is_due(10)
    pool.record(game, np.array([0.5]))  # the last four: 0.75
    assert pool.is_due(10)
    pool.freeze(object(), 10)
    assert not pool.is_due(11), "a new stage starts its own count"
    for _ in range(9):  # games still running against the stage before do not count
        pool.record(game, np.array([1.0]))
    assert not pool.is_due(12)
    for _ in range(4):
        pool.record(np.array([[LEARNER, pool.members[-1].number]]), np.array([1.0]))
    assert pool.is_due(12)
