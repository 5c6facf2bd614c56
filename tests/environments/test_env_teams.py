"""Teams in the environments: an eliminated member is paid what becomes of its team."""

import numpy as np
import pytest

from diplomacy_engine.environments.gymnasium_env import DiplomacyEnv
from diplomacy_engine.environments.pettingzoo_env import parallel_env
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.position import load_state

# ENGLAND has no center left: its army goes in winter.
POSITION = "three W1905A; ENGLAND A LON =; ITALY A ROM = ROM SPA; RUSSIA A MOS = MOS"
TEAMS = {
    "map": "three",
    "teams": "ENGLAND+ITALY",
    "max_years": 6,
    "reward": "team:sum_of_squares=1,power:terminal=1",
}


def test_all_powers_at_once():
    env = parallel_env(**TEAMS)
    env.reset(seed=1)
    load_state(env._games, Game.from_position(POSITION).to_state())
    nothing = {name: np.zeros(len(space.nvec), int) for name, space in env.action_spaces.items()}
    _, rewards, terminated, truncated, infos = env.step(nothing)
    assert rewards == {"ENGLAND": -1, "ITALY": 0, "RUSSIA": 0}  # of its own
    assert not any(terminated.values()) and not any(truncated.values())
    assert [infos[name]["eliminated"] for name in env.agents] == [True, False, False]
    assert all(mask[1:].sum() == 0 for mask in infos["ENGLAND"]["action_mask"])
    env.step(nothing)
    _, rewards, terminated, truncated, _ = env.step(nothing)
    assert rewards == pytest.approx({"ENGLAND": 0.8, "ITALY": 0.8 + 0.5, "RUSSIA": 0.2 + 0.5})
    assert truncated == dict.fromkeys(rewards, True) and not any(terminated.values())
    assert not env.agents


@pytest.mark.parametrize(("power", "reward"), [("ENGLAND", -0.2), ("RUSSIA", 0.7)])
def test_one_power_against_others(power, reward):
    env = DiplomacyEnv(power=power, opponents="hold", **TEAMS)
    env.reset(seed=1)
    load_state(env._agents.games, Game.from_position(POSITION).to_state())
    total, over = 0.0, False
    while not over:
        _, paid, terminated, truncated, info = env.step(np.zeros(env.action_space.shape, int))
        total, over = total + paid, terminated or truncated
    assert total == pytest.approx(reward)
    assert truncated and not terminated
    assert info["eliminated"] == (power == "ENGLAND")
    assert info["win"] == (power == "ENGLAND") and not info["solo"]


def test_a_team_that_alone_lives_ends_the_game():
    env = DiplomacyEnv(power="ITALY", opponents="hold", **TEAMS)
    env.reset(seed=1)
    position = "three W1905A; ENGLAND A LON = LON; ITALY A ROM = ROM; RUSSIA A MOS ="
    load_state(env._agents.games, Game.from_position(position).to_state())
    _, paid, terminated, _, info = env.step(np.zeros(env.action_space.shape, int))
    assert terminated and info["win"] and info["solo"]
    assert paid == pytest.approx(1.5)  # the team's victory, and a draw with its partner


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"teams": "ENGLAND+FRANCE"}, "is not a power of ENGLAND, ITALY, RUSSIA"),
        ({"teams": 3}, "teams: "),
        ({"teams": "", "team_victory": 5}, "needs teams of several powers"),
        ({"reward": "team3:score"}, "no level 'team3'"),
    ],
)
def test_bad_teams_are_one_sentence(settings, message):
    for make in (DiplomacyEnv, parallel_env):
        with pytest.raises(UserError, match=message):
            make(**TEAMS | settings)
