"""Who sits where when a game begins, and who has won when it is over."""

import types

import numpy as np
import pytest
from support.self_play import learner_powers, make_seating

from diplomacy_engine.constants import NONE, YEAR_LIMIT
from diplomacy_engine.selfplay.opponent_pool import LEARNER


def test_seats_are_uniform():
    for name, learner_seats in (("small", 1), ("three", 1), ("three", 2), ("three", 3)):
        seating = make_seating(map=name, num_envs=3000, learner_seats=learner_seats)
        for _ in range(2):
            mine = seating.seats.learns
            assert (mine == (seating.seats.member == LEARNER)).all()
            assert (mine.sum(1) == learner_seats).all()
            rows, powers = np.arange(3000)[:, None], learner_powers(seating)
            assert mine[rows, powers].all()
            share = learner_seats / mine.shape[1]
            deviation = (share * (1 - share) / 3000) ** 0.5
            assert np.abs(mine.mean(0) - share).max() < 4 * deviation + 1e-9
            expected = rows * learner_seats + np.arange(learner_seats)
            assert (seating.seats.stream[rows, powers] == expected).all()
            assert (seating.seats.stream[~mine] == NONE).all()
            before = seating.seats.member.copy()
            seating.assign_seats(np.arange(0, 3000, 2))
            assert (seating.seats.member[1::2] == before[1::2]).all()
            if learner_seats < mine.shape[1]:
                assert (seating.seats.member[::2] != before[::2]).any()
    # Which of two learner seats sits where is even too
    first = learner_powers(make_seating(map="three", num_envs=3000, learner_seats=2))[:, 0]
    assert np.bincount(first).min() > 900


def test_each_seat_draws_its_own_opponent():
    seating = make_seating(map="three", num_envs=3000)
    seating.pool.freeze(object(), 10)
    seating.pool.freeze(object(), 20)
    seating.assign_seats(np.arange(3000))
    seats = seating.seats
    others = seats.member[~seats.learns].reshape(3000, 2)
    newest = seating.pool.members[-1].number
    share = seating.args.latest_prob
    assert abs((others == newest).mean() - share) < 0.03
    assert abs((others == newest).all(1).mean() - share**2) < 0.03


def test_a_tie_of_two_powers_of_the_learner_is_no_win():
    seating = make_seating(map="three", num_envs=3, learner_seats=2)
    centers = np.zeros((3, 3), np.int8)
    mine = seating.seats.learns
    centers[0, mine[0]] = 5  # both lead: nobody does
    centers[1, mine[1]], centers[2, ~mine[2]] = (6, 5), 7
    result = types.SimpleNamespace(
        centers=centers,
        ended=np.full(3, YEAR_LIMIT, np.int8),
        winner=np.full(3, NONE, np.int8),
        alive=np.ones((3, 3), bool),
        year=np.full(3, 1905),
    )
    finished = seating._count(result, np.arange(3))
    assert finished.scores.tolist() == [0.5, 1.0, 0.5]
    assert finished.statistics["win"] == finished.victory[mine].sum() == 1
    assert finished.statistics["centers"] == 5 + 6 + 0


def test_each_power_warms_up_for_its_own_random_number_of_phases():
    warm_up = make_seating(num_envs=2000, warm_up_share=0.5, warm_up_phases=4).seats.warm_up
    share = (warm_up > 0).mean(0)
    np.testing.assert_allclose(share, 0.5, atol=0.05)
    both = (warm_up > 0).all(1).mean()
    assert both == pytest.approx(0.25, abs=0.05)  # drawn apart
    counts = np.bincount(warm_up[warm_up > 0], minlength=5)[1:]
    assert len(counts) == 4
    np.testing.assert_allclose(counts / counts.sum(), 0.25, atol=0.04)
    assert not make_seating(num_envs=50).seats.warm_up.any()


def test_the_learner_sits_more_often_where_it_wins_less():
    for weak_seats, expected in ((0.0, 0.5), (0.5, 2 / 3), (1.0, 1 / 1.05)):
        seating = make_seating(num_envs=4000, weak_seats=weak_seats)
        seating.win_share[:] = 0.0, 1.0
        seating.assign_seats(np.arange(4000))
        found = seating.seats.learns[:, 0].mean()
        assert found == pytest.approx(expected, abs=0.03)
        assert (seating.seats.learns.sum(1) == 1).all()


def test_opponents_have_temperatures_and_the_learner_has_none():
    seats = make_seating(num_envs=3000, opponent_temperature=4.0).seats
    learner = seats.learns
    assert (seats.temperature[learner] == 1).all()
    hot = np.log(seats.temperature[~learner]) / np.log(4)  # uniform: drawn on a log scale
    assert 0 <= hot.min() < 0.01 and 0.99 < hot.max() <= 1.0001
    assert hot.mean() == pytest.approx(0.5, abs=0.03)
    cold = make_seating(num_envs=3000, opponent_temperature=0.25).seats
    assert (cold.temperature[cold.learns] == 1).all()
    drawn = cold.temperature[~cold.learns]
    assert 0.25 <= drawn.min() < 0.26 and 0.98 < drawn.max() <= 1
    plain = make_seating(num_envs=50).seats
    assert (plain.temperature == 1).all()
