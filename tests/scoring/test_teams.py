"""Rewards of teams: hand-worked games, levels, and that teams of one power change nothing."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.tables import read_table

from diplomacy_engine import REWARDS, RewardInput, UserError, load_map, make_reward, make_reward_mix
from diplomacy_engine.constants import NONE, RUNNING, SOLO, TEAM, YEAR_LIMIT
from diplomacy_engine.rules.teams import read_teams
from diplomacy_engine.scoring.mixes import code_of
from diplomacy_engine.scoring.rewards import try_reward
from diplomacy_engine.scoring.teams import levels_of, node_input, pay_teams

POWERS = ["ENGLAND", "ITALY", "RUSSIA"]
# The first and the last power are a team. Six games: it goes on; a solo of the team, of the other;
# the year limit; one of the team is eliminated while the other lives on; the team wins as a team.
STEP = RewardInput(
    ended=np.array([RUNNING, SOLO, SOLO, YEAR_LIMIT, RUNNING, TEAM], np.int8),
    winner=np.array([NONE, 2, 1, NONE, NONE, 0], np.int8),
    captured=np.ones(6, bool),
    centers=np.array([[1, 4, 2], [1, 2, 8], [3, 8, 0], [3, 6, 3], [0, 5, 2], [5, 0, 4]], np.int16),
    centers_before=np.array(
        [[2, 3, 2], [2, 3, 6], [3, 7, 1], [3, 6, 3], [1, 4, 2], [5, 1, 3]], np.int16
    ),
    alive=np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]], bool),
    eliminated=np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0]], bool),
    victory_centers=8,
)
TEAMS = read_teams("ENGLAND+RUSSIA", POWERS)
MAP = SimpleNamespace(powers=POWERS, teams=TEAMS)
LEVELS = levels_of(POWERS, TEAMS)


def test_a_team_is_treated_as_one_power():
    found = node_input(STEP, np.arange(3), TEAMS.of_power)
    assert found.centers.tolist() == [[3, 4], [9, 2], [3, 8], [6, 6], [2, 5], [9, 0]]
    assert found.centers_before.tolist() == [[4, 3], [8, 3], [4, 7], [6, 6], [3, 4], [8, 1]]
    assert found.winner.tolist() == [NONE, 0, 1, NONE, NONE, 0]
    assert found.ended.tolist() == [RUNNING, SOLO, SOLO, YEAR_LIMIT, RUNNING, SOLO]
    assert found.alive[:5].all() and not found.eliminated[:5].any()
    assert found.alive[5].tolist() == [True, False]


def test_a_teams_victory_is_a_draw_among_its_members():
    found = node_input(STEP, np.array([0, 2]), np.array([0, 1]))
    assert found.ended.tolist() == [RUNNING, SOLO, SOLO, YEAR_LIMIT, RUNNING, TEAM]
    assert found.winner.tolist() == [NONE, 1, NONE, NONE, NONE, NONE]
    lost = node_input(STEP, np.array([1]), np.array([0]))
    assert lost.ended.tolist() == [RUNNING, SOLO, SOLO, YEAR_LIMIT, RUNNING, SOLO]
    assert lost.winner.tolist() == [NONE, NONE, 0, NONE, NONE, NONE]


@pytest.mark.parametrize(("reward", "expected"), read_table(__file__, "what_a_team_earns"))
def test_members_are_paid_what_their_team_earns(reward, expected):
    paid = pay_teams(make_reward(reward), STEP, LEVELS["team"])
    np.testing.assert_allclose(paid[:, [0, 1]], expected, atol=1e-6)
    assert (paid[:, 0] == paid[:, 2]).all()


def test_within_a_team_its_powers_are_rivals():
    paid = pay_teams(make_reward("sum_of_squares"), STEP, LEVELS["power"])
    team = [[0, 0], [0, 1], [0, 0], [0.5, 0.5], [0, 0], [25 / 41, 16 / 41]]
    np.testing.assert_allclose(paid[:, [0, 2]], team, atol=1e-6)
    assert paid[:, 1].tolist() == [0, 0, 1, 1, 0, 0]  # alone with itself
    deltas = pay_teams(make_reward("center_delta"), STEP, LEVELS["power"])
    assert np.array_equal(deltas, make_reward("center_delta")(STEP))  # no comparison in it


def test_a_mix_adds_up_the_levels():
    mix = make_reward_mix("team:sum_of_squares=1,power:center_delta=0.2..0", MAP)
    of_team = pay_teams(make_reward("sum_of_squares"), STEP, LEVELS["team"])
    own = make_reward("center_delta")(STEP)
    np.testing.assert_allclose(mix(STEP), of_team + 0.2 * own, atol=1e-6)
    np.testing.assert_array_equal(mix(STEP, 1.0), of_team)
    np.testing.assert_array_equal(make_reward_mix("sum_of_squares", MAP)(STEP), of_team)


def test_a_team_may_have_a_victory_count_of_its_own():
    level = levels_of(POWERS, TEAMS._replace(victory_centers=6))["team"]
    assert pay_teams(make_reward("deepdip"), STEP, level)[1].tolist() == [15, -4, 15]


def test_a_nested_team_is_one_member_of_its_own():
    powers = ["A", "B", "C", "D"]
    teams = read_teams("(A+B)+C", powers)
    game_map = SimpleNamespace(powers=powers, teams=teams)
    assert teams.levels == ("team", "team2", "power")
    centers = np.array([[1, 2, 3, 6]], np.int16)
    limit = RewardInput(
        np.array([YEAR_LIMIT], np.int8),
        np.array([NONE], np.int8),
        np.array([True]),
        centers,
        centers,
        np.ones((1, 4), bool),
        np.zeros((1, 4), bool),
        8,
    )
    paid = {
        level: make_reward_mix(f"{level}:sum_of_squares", game_map)(limit)[0].tolist()
        for level in (*teams.levels, "b+a", "A+B+C")
    }
    assert paid["team"] == [0.5, 0.5, 0.5, 0.5]
    assert paid["team2"] == [0.5, 0.5, 0.5, 1.0]
    np.testing.assert_allclose(paid["power"], [0.2, 0.8, 1, 1], atol=1e-6)
    np.testing.assert_allclose(paid["b+a"], [0.2, 0.8, 0, 0], atol=1e-6)
    assert paid["A+B+C"] == [0.5, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("reward", REWARDS)
def test_teams_of_one_power_change_nothing(reward):
    step = RewardInput(*(part[:5] for part in STEP[:-1]), STEP.victory_centers)
    expected = make_reward(reward)(step)
    alone = load_map("three").with_teams("ENGLAND,ITALY,RUSSIA")
    assert not alone.teams.text
    assert make_reward_mix(reward, alone)(step).tobytes() == expected.tobytes()
    through = make_reward(reward)(node_input(step, np.arange(3), np.arange(3)))
    assert through.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("text", "reason"), read_table(__file__, "levels_and_rewards_that_are_not_there")
)
def test_levels_and_rewards_that_are_not_there(text, reason):
    with pytest.raises(UserError, match=reason):
        make_reward_mix(text, MAP)


@pytest.mark.parametrize(
    ("text", "own"), read_table(__file__, "a_level_is_no_code_of_somebodys_own")
)
def test_a_level_is_no_code_of_somebodys_own(text, own):
    assert bool(code_of(text)) == own


def test_a_level_needs_teams():
    for game_map in (load_map("three"), None):
        with pytest.raises(UserError, match="no level 'team' of teams; there are: power"):
            make_reward_mix("team:score", game_map)
        step = make_reward("score")(STEP)  # every power is a level of its own
        assert np.array_equal(make_reward_mix("power:score", game_map)(STEP), step)


def test_a_reward_of_another_shape_per_team_is_one_sentence(tmp_path, monkeypatch):
    code = "import numpy\ndef f(game):\n    return numpy.zeros((len(game.ended), 3))\n"
    (tmp_path / "three_columns.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    mix = make_reward_mix("three_columns:f", MAP)
    with pytest.raises(UserError, match=r"must return \(3, 2\) finite numbers, not \(3, 3\)"):
        try_reward(mix, 3, 8)
