"""Who sits where when a game begins."""

import numpy as np
import pytest
from support.self_play import learner_powers, make_args, make_run

from diplomacy_engine import UserError, load_map
from diplomacy_engine.constants import NONE
from diplomacy_engine.learning.checks import check_args
from ppo_selfplay_diplomacy import LEARNER, Run


def learns(run: Run) -> np.ndarray:
    return run.seats.stream != NONE


@pytest.mark.parametrize(("name", "count"), [("small", 1), ("three", 1), ("three", 2)])
def test_seats_are_uniform(name, count):
    run, rows = make_run(map=name, num_envs=3000, learner_seats=count), np.arange(3000)[:, None]
    for _ in range(2):
        mine, powers = learns(run), learner_powers(run)
        assert (mine == (run.seats.member == LEARNER)).all()
        assert (mine.sum(1) == count).all() and mine[rows, powers].all()
        share = count / mine.shape[1]
        assert np.abs(mine.mean(0) - share).max() < 4 * (share * (1 - share) / 3000) ** 0.5
        # Which of two seats is the first is drawn, too.
        assert np.bincount(powers[:, 0]).min() > 900
        assert (run.seats.stream[rows, powers] == rows * count + np.arange(count)).all()
        before = run.seats.member.copy()
        run.seat(np.arange(0, 3000, 2))
        assert (run.seats.member[1::2] == before[1::2]).all()
        assert (run.seats.member[::2] != before[::2]).any()


def test_the_learner_has_a_seat_more_in_a_share_of_the_games():
    run = make_run(map="three", num_envs=3000, learner_seats=1.8)
    seats = learns(run).sum(1)
    assert set(seats) == {1, 2} and seats.mean() == pytest.approx(1.8, abs=0.03)
    streams = run.seats.stream[learns(run)]
    assert len(set(streams)) == seats.sum() and streams.max() < len(run.buffer.count)


def test_the_most_decisions_of_an_update_are_of_whole_seats():
    args = make_args(num_envs=1, learner_seats=1.8, num_steps=2, num_minibatches=4)
    with pytest.raises(UserError, match="at most 4 decisions"):
        check_args(args, load_map("small"))


@pytest.mark.parametrize(("weak_seats", "share"), [(0.0, 0.5), (0.5, 2 / 3), (1.0, 1 / 1.05)])
def test_the_learner_sits_more_often_where_it_wins_less(weak_seats, share):
    run = make_run(num_envs=4000, weak_seats=weak_seats)
    run.results.win_share[:] = 0.0, 1.0
    run.seat(np.arange(4000))
    assert learns(run)[:, 0].mean() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("hottest", [4.0, 0.25])
def test_opponents_have_temperatures_and_the_learner_has_none(hottest):
    run = make_run(num_envs=3000, opponent_temperature=hottest)
    seats, learner = run.seats, learns(run)
    assert (seats.temperature[learner] == 1).all()
    drawn = np.log(seats.temperature[~learner]) / np.log(hottest)  # uniform: on a log scale
    assert 0 <= drawn.min() < 0.01 and 0.99 < drawn.max() <= 1.0001
    assert drawn.mean() == pytest.approx(0.5, abs=0.03)
    assert (make_run(num_envs=50).seats.temperature == 1).all()
