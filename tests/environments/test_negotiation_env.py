"""The thesis' negotiation environment: its spaces, its reward, offers made by hand."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from diplomacy_engine import UserError
from diplomacy_engine.environments import NEGOTIATION_IDS
from diplomacy_engine.environments.negotiation_env import NegotiationEnv


@pytest.mark.parametrize("name", NEGOTIATION_IDS)
def test_check_env(name):
    """Gymnasium finds nothing wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name, orders_by="random", answers="peaceful").unwrapped)


def test_the_spaces_are_those_of_the_thesis():
    """225 numbers are seen of 75 provinces; an offer is five numbers."""
    env = NegotiationEnv("standard", orders_by="random", answers="silent")
    assert env.observation_space.nvec.tolist() == [8, 2, 8] * 75
    assert env.action_space.nvec.tolist() == [75, 75, 7, 75, 75]
    seen, _ = env.reset(seed=1)
    provinces = env.game.map.province_index
    par = seen.reshape(-1, 3)[provinces["PAR"]].tolist()
    assert par == [
        1 + env.game.map.power_index["FRANCE"],
        1,
        1 + env.game.map.power_index["FRANCE"],
    ]
    assert seen.reshape(-1, 3)[provinces["BEL"]].tolist() == [0, 1, 0]
    assert seen.reshape(-1, 3)[provinces["BUR"]].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "words, valid",
    [
        ("PAR BUR ENGLAND LON NTH", True),
        ("PAR PAR ENGLAND LON LON", True),  # both hold
        ("PAR BUR FRANCE BRE MAO", False),  # to oneself
        ("PAR MUN ENGLAND LON NTH", False),  # too far
        ("LON NTH ENGLAND LON NTH", False),  # not its unit
        ("PAR BUR ENGLAND BER KIE", False),  # somebody else's
        ("PAR BUR ENGLAND YOR LON", False),  # nobody's
    ],
)
def test_offers_by_hand(words, valid):
    """A valid offer brings 5, another -5; the game goes on to the next movement phase."""
    env = NegotiationEnv("standard", power="FRANCE", orders_by="hold", answers="silent")
    env.reset(seed=1)
    mine, goal, power, theirs, its_goal = words.split()
    places = env.game.map.province_index
    action = [places[mine], places[goal], env.game.map.power_index[power]]
    action += [places[theirs], places[its_goal]]
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, info["valid"], info["agreed"]) == (5.0 if valid else -5.0, valid, False)
    assert env.game.phase == "F1901M" and not (terminated or truncated)


def test_a_deal_binds():
    """A partner that would get a center agrees, and both move although everybody else holds."""
    env = NegotiationEnv("small", power="RUSSIA", orders_by="hold", answers="dealer")
    env.reset(seed=1)
    places = env.game.map.province_index
    words = ("MOS", "UKR", "LON", "PAR")
    mine, goal, theirs, its_goal = (places[code] for code in words)
    _, reward, _, _, info = env.step([mine, goal, 0, theirs, its_goal])
    assert reward == 5.0 and info["agreed"]
    assert env.game.units == {"ENGLAND": ["A PAR"], "RUSSIA": ["A UKR"]}


def test_games_end_and_repeat():
    """The same seed gives the same game; its end comes at the year limit, and then no step."""
    found = []
    for _ in range(2):
        env = NegotiationEnv(
            "small", orders_by="random", answers="peaceful", max_years=2, reward="center_delta"
        )
        env.reset(seed=5)
        env.action_space.seed(5)
        steps, over = [], False
        while not over:
            seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            steps.append((seen.tolist(), reward))
            over = terminated or truncated
        found.append(steps)
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(env.action_space.sample())
    assert found[0] == found[1] and len(found[0]) <= 4


def test_bad_arguments():
    """Each is named."""
    for arguments, words in (
        ({"reward": "vald"}, "did you mean 'valid'"),
        ({"power": "FRANZ"}, "FRANZ"),
        ({"answers": "deler"}, "did you mean 'dealer'"),
    ):
        with pytest.raises(UserError, match=words):
            NegotiationEnv("standard", **arguments)
    env = NegotiationEnv("small", orders_by="hold", answers="silent")
    env.reset(seed=1)
    with pytest.raises(UserError):
        env.step([0, 0, 0, 0])
    with pytest.raises(UserError, match="not in the action space"):
        env.step(np.array([0, 0, 9, 0, 0]))
