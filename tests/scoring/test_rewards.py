"""Rewards: hand-worked games of every column of the table, and mixes."""

import types

import numpy as np
import pytest
from support.tables import read_table

from diplomacy_engine.constants import AGREED, NONE, RUNNING, SOLO, YEAR_LIMIT
from diplomacy_engine.errors import UserError
from diplomacy_engine.scoring.mixes import make_reward_mix, make_steady_mix
from diplomacy_engine.scoring.rewards import (
    PAID_IN_FALL,
    REWARDS,
    RewardInput,
    make_reward,
    mean_ranks,
    reward_input,
)


def game(ended, centers, before=None, alive=None, eliminated=None, winner=NONE, captured=True, v=5):
    centers = np.array([centers], np.int16)
    alive = centers > 0 if alive is None else np.array([alive], bool)
    eliminated = np.zeros_like(alive) if eliminated is None else np.array([eliminated], bool)
    return RewardInput(
        np.array([ended], np.int8),
        np.array([winner], np.int8),
        np.array([captured]),
        centers,
        centers if before is None else np.array([before], np.int16),
        alive,
        eliminated,
        v,
    )


# Four powers, ten centers, six win.
SOLO_GAME = game(SOLO, [6, 3, 1, 0], [5, 3, 2, 0], winner=0, v=6)
# The second and third are level; the fourth was eliminated before.
LIMIT_GAME = game(YEAR_LIMIT, [4, 3, 3, 0], [4, 4, 2, 0], v=6)
# The fourth is eliminated while the game goes on.
ELIMINATION = game(RUNNING, [4, 3, 3, 0], [4, 3, 2, 1], eliminated=[0, 0, 0, 1], v=6)


@pytest.mark.parametrize(
    ("name", "solo", "limit", "elimination"), read_table(__file__, "end_rewards")
)
def test_end_rewards(name, solo, limit, elimination):
    reward = make_reward(name)
    for given, expected in (
        (SOLO_GAME, solo),
        (LIMIT_GAME, limit),
        (LIMIT_GAME._replace(ended=np.array([AGREED], np.int8)), limit),
        (ELIMINATION, [0, 0, 0, elimination]),
    ):
        paid = reward(given)
        assert paid.dtype == np.float32
        np.testing.assert_allclose(paid, [expected], rtol=1e-6)


def test_center_delta_is_paid_to_everyone_after_a_fall():
    delta = make_reward("center_delta")
    np.testing.assert_allclose(delta(SOLO_GAME), [[1 / 6, 0, -1 / 6, 0]], rtol=1e-6)
    np.testing.assert_allclose(delta(ELIMINATION), [[0, 0, 1 / 6, -1 / 6]], rtol=1e-6)
    assert not delta(ELIMINATION._replace(captured=np.array([False]))).any()


@pytest.mark.parametrize(("name", "paid"), read_table(__file__, "rewards_of_a_year"))
def test_rewards_of_a_year(name, paid):
    fall = game(RUNNING, [4, 4, 2, 0], [5, 3, 1, 1], eliminated=[0, 0, 0, 1], v=6)
    reward = make_reward(name)
    assert reward(fall).tolist() == [paid] and reward(fall).dtype == np.float32
    assert not reward(fall._replace(captured=np.array([False]))).any()
    homeless = game(RUNNING, [4, 0], [3, 1], alive=[1, 1])  # a unit is left
    assert reward(homeless)[0, 1] == (name in ("three_to_centers", "survival_time"))


def test_first_place_is_shared_and_the_weakest_pays_all():
    level = game(YEAR_LIMIT, [4, 1, 4, 2], v=5)
    assert make_reward("first_place")(level).tolist() == [[0.5, 0, 0.5, 0]]
    np.testing.assert_allclose(make_reward("first_score")(level), [[4 / 5, 0, 4 / 5, 0]])
    np.testing.assert_allclose(make_reward("weakest")(level), [[1 / 5] * 4])
    solo = game(SOLO, [5, 2], winner=0)
    np.testing.assert_allclose(make_reward("weakest")(solo), [[2 / 5, 2 / 5]])


def test_lead_delta_counts_from_the_strongest_other_power():
    delta = make_reward("lead_delta")
    # Leads 3, -3, -5 after 2, -2, -3; the fourth fell earlier.
    np.testing.assert_allclose(delta(SOLO_GAME), [[1 / 6, -1 / 6, -2 / 6, 0]], rtol=1e-6)
    # A draw level on top: both lead by 0. The last, eliminated now, is paid.
    fall = game(RUNNING, [4, 4, 2, 0], [5, 3, 1, 1], eliminated=[0, 0, 0, 1], v=6)
    np.testing.assert_allclose(delta(fall), [[-2 / 6, 2 / 6, 2 / 6, 0]], rtol=1e-6)
    assert not delta(fall._replace(captured=np.array([False]))).any()
    duel = game(RUNNING, [3, 4], [3, 2])
    np.testing.assert_allclose(delta(duel), [[-2 / 5, 2 / 5]], rtol=1e-6)
    assert delta(game(RUNNING, [3], [1])).tolist() == [[np.float32(2 / 5)]]


def test_a_power_eliminated_in_the_last_step_is_paid_as_eliminated():
    last = game(YEAR_LIMIT, [5, 4, 0], [4, 4, 1], eliminated=[0, 0, 1], v=6)
    assert make_reward("terminal")(last).tolist() == [[0.5, 0.5, -1]]
    assert make_reward("deepdip")(last).tolist() == [[5, 4, -6]]
    np.testing.assert_allclose(make_reward("leader")(last), [[0, -1 / 6, -5 / 6]], rtol=1e-6)


def test_ordinal_of_eliminated_powers():
    ordinal = make_reward("ordinal")
    # Five powers. The last fell first (rank 5), then two in one step (ranks 3 and 4).
    first = game(RUNNING, [3, 3, 1, 1, 0], eliminated=[0, 0, 0, 0, 1])
    assert ordinal(first).tolist() == [[0, 0, 0, 0, 0]]
    then = game(RUNNING, [4, 4, 0, 0, 0], eliminated=[0, 0, 1, 1, 0])
    np.testing.assert_allclose(ordinal(then), [[0, 0, (5 - 3.5) / 4, (5 - 3.5) / 4, 0]])
    # At the end, a power that has a unit but no center still ranks above those eliminated.
    end = game(YEAR_LIMIT, [8, 0, 0, 0, 0], alive=[1, 1, 0, 0, 0])
    np.testing.assert_allclose(ordinal(end), [[1, 3 / 4, 0, 0, 0]])


def test_a_running_game_pays_only_after_falls():
    running = game(RUNNING, [3, 2], [2, 3])
    for name in REWARDS:
        assert make_reward(name)(running).any() == (name in PAID_IN_FALL)


def test_truncation_pays_no_end_reward():
    step = types.SimpleNamespace(
        **{
            field: np.concatenate([getattr(LIMIT_GAME, field), getattr(SOLO_GAME, field)])
            for field in RewardInput._fields
            if field != "victory_centers"
        }
    )
    step.eliminated = np.array([[0, 0, 0, 1], [0, 0, 0, 0]], bool)
    paid = make_reward("deepdip")(reward_input(step, 6, pay_year_limit=False))
    assert paid.tolist() == [[0, 0, 0, -6], [12, -3, -5, 0]]
    assert make_reward("deepdip")(reward_input(step, 6)).tolist()[0] == [4, 3, 3, -6]
    assert step.ended.tolist() == [YEAR_LIMIT, SOLO]


def test_mean_ranks():
    values = np.array([[3, 1, 3, 0, 0], [0, 0, 0, 0, 0]])
    assert mean_ranks(values).tolist() == [[1.5, 3, 1.5, 4.5, 4.5], [3] * 5]


def test_own_reward(tmp_path, monkeypatch):
    (tmp_path / "own_rewards.py").write_text(
        "def half(game):\n    return game.alive * 0.5\n"
        "def bad(game):\n    return [1.0]\n"
        "def infinite(game):\n    return game.alive / 0.0\n"
    )
    (tmp_path / "broken_rewards.py").write_text("def half(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    paid = make_reward("own_rewards:half")(LIMIT_GAME)
    assert paid.tolist() == [[0.5, 0.5, 0.5, 0]] and paid.dtype == np.float32
    with pytest.raises(ValueError, match=r"must return \(1, 4\) finite numbers"):
        make_reward("own_rewards:bad")(LIMIT_GAME)
    with pytest.raises(ValueError, match="finite"), np.errstate(all="ignore"):
        make_reward("own_rewards:infinite")(LIMIT_GAME)
    for name, part in read_table(__file__, "own_rewards"):
        with pytest.raises(ValueError, match=part):
            make_reward(name)


def test_mix():
    mix = make_reward_mix("sum_of_squares=2, center_delta=1..0@0.5,terminal,score=0..-1")
    assert mix.weights(0) == {"sum_of_squares": 2, "center_delta": 1, "terminal": 1, "score": 0}
    assert mix.weights(0.25)["center_delta"] == 0.5
    assert mix.weights(0.75) == {
        "sum_of_squares": 2,
        "center_delta": 0,
        "terminal": 1,
        "score": -0.75,
    }
    assert mix.weights(2) == mix.weights(1)
    alone = {name: make_reward(name)(SOLO_GAME) for name in REWARDS}
    np.testing.assert_allclose(
        mix(SOLO_GAME, 0.25),
        2 * alone["sum_of_squares"]
        + 0.5 * alone["center_delta"]
        + alone["terminal"]
        - 0.25 * alone["score"],
        rtol=1e-6,
    )
    assert mix(SOLO_GAME).dtype == np.float32


def test_weights_that_change_are_the_trainers():
    with pytest.raises(UserError, match="weights that change during training are the trainer's"):
        make_steady_mix("terminal=1,score=1..0")
    assert make_steady_mix("terminal=1,score=0.5..0.5").weights(0) == {"terminal": 1, "score": 0.5}


@pytest.mark.parametrize("text", read_table(__file__, "bad_mix"))
def test_bad_mix(text):
    with pytest.raises(ValueError):
        make_reward_mix(text)
