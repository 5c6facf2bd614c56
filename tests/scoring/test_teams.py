"""Rewards of teams: hand-worked games, and that teams of one power change nothing."""

import numpy as np
import pytest

from diplomacy_engine.constants import NONE, RUNNING, SOLO, YEAR_LIMIT
from diplomacy_engine.scoring.rewards import REWARDS, RewardInput, make_reward
from diplomacy_engine.scoring.teams import pay_teams, team_input

# Three powers; the first and the last are a team. Five games: it goes on; a solo of the team, of
# the other; the year limit; one of the team is eliminated while the other lives on.
STEP = RewardInput(
    ended=np.array([RUNNING, SOLO, SOLO, YEAR_LIMIT, RUNNING], np.int8),
    winner=np.array([NONE, 2, 1, NONE, NONE], np.int8),
    captured=np.array([True, True, True, True, True]),
    centers=np.array([[1, 4, 2], [1, 2, 8], [3, 8, 0], [3, 6, 3], [0, 5, 2]], np.int16),
    centers_before=np.array([[2, 3, 2], [2, 3, 6], [3, 7, 1], [3, 6, 3], [1, 4, 2]], np.int16),
    alive=np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 1, 1], [0, 1, 1]], bool),
    eliminated=np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]], bool),
    victory_centers=8,
)
TEAM = np.tile([0, 1, 0], (5, 1))


def test_a_team_is_treated_as_one_power():
    found = team_input(STEP, TEAM)
    assert found.centers.tolist() == [[3, 4], [9, 2], [3, 8], [6, 6], [2, 5]]
    assert found.centers_before.tolist() == [[4, 3], [8, 3], [4, 7], [6, 6], [3, 4]]
    assert found.winner.tolist() == [NONE, 0, 1, NONE, NONE]
    assert found.alive.all() and not found.eliminated.any()


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        ("sum_of_squares", [[0, 0], [1, 0], [0, 1], [0.5, 0.5], [0, 0]]),
        ("terminal", [[0, 0], [1, -1], [-1, 1], [0.5, 0.5], [0, 0]]),
        ("center_delta", [[-1, 1], [1, -1], [-1, 1], [0, 0], [-1, 1]]),
    ],
)
def test_members_are_paid_what_their_team_earns(reward, expected):
    paid = pay_teams(make_reward(reward), STEP, TEAM)
    scale = 8 if reward == "center_delta" else 1
    assert np.allclose(paid[:, [0, 1]] * scale, expected)
    assert (paid[:, 0] == paid[:, 2]).all()


def test_a_team_is_out_when_its_last_member_is():
    gone = STEP._replace(
        alive=np.array([[0, 1, 0]] * 5, bool), eliminated=np.array([[0, 0, 1]] * 5, bool)
    )
    found = team_input(gone, TEAM)
    assert found.eliminated.tolist() == [[True, False]] * 5
    long_gone = gone._replace(eliminated=np.zeros((5, 3), bool))
    assert not team_input(long_gone, TEAM).eliminated.any()


@pytest.mark.parametrize("reward", REWARDS)
def test_teams_of_one_power_change_nothing(reward):
    alone = np.tile(np.arange(3), (5, 1))
    expected = make_reward(reward)(STEP)
    assert pay_teams(make_reward(reward), STEP, alone).tobytes() == expected.tobytes()
    through = make_reward(reward)(team_input(STEP, alone))
    assert through.tobytes() == expected.tobytes()
