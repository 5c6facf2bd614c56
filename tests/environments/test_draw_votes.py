"""Votes for a draw in the environments: spaces, masks, who votes when, what is paid."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from diplomacy_engine import UserError
from diplomacy_engine.environments.gymnasium_env import DiplomacyEnv, DiplomacyVectorEnv
from diplomacy_engine.environments.pettingzoo_env import parallel_env


def vote(space, yes: int) -> np.ndarray:
    """Return an action without orders, and a vote."""
    action = np.zeros(space.shape, np.int64)
    action[..., -1] = yes
    return action


@pytest.mark.parametrize("form", ["provinces", "deepdip"])
def test_an_agent_agrees_to_a_draw(form):
    plain = DiplomacyEnv("three", form)
    env = DiplomacyEnv("three", form, draw_votes=True, reward="draw_size")
    check_env(env, skip_render_check=True)
    assert env.action_space.nvec.tolist() == [*plain.action_space.nvec.tolist(), 2]
    assert env.observation_space == plain.observation_space
    _, info = env.reset(seed=3)
    if form == "provinces":
        mask = info["action_mask"]
        assert len(mask) == env.action_space.nvec.sum() and mask[-2:].tolist() == [1, 1]
    *_, reward, terminated, truncated, info = env.step(vote(env.action_space, 0))
    assert (reward, terminated, truncated) == (0, False, False)
    *_, reward, terminated, truncated, info = env.step(vote(env.action_space, 1))
    assert (terminated, truncated, info["agreed"]) == (True, False, True)
    assert reward == pytest.approx(1 / 3) and info["years"] == 1


def test_the_others_vote_from_a_year_on():
    env = DiplomacyVectorEnv(
        3, "small", opponents="hold", draw_votes=True, draws_after=1903, reward="draw_size"
    )
    env.reset(seed=1)
    actions = vote(env.action_space, 1)
    actions[2, -1] = 0
    for _ in range(5):  # to the movement phase of spring 1903
        _, reward, terminated, truncated, infos = env.step(actions)
        assert not terminated.any() or infos["final_info"]["years"][0] == 3
    assert terminated.tolist() == [True, True, False] and not truncated.any()
    assert reward.tolist() == [0.5, 0.5, 0]
    final = infos["final_info"]
    assert final["agreed"].tolist() == [True, True, False] and final["years"][0] == 3
    assert final["action_mask"].shape == infos["action_mask"].shape


def test_a_vote_is_of_its_phase():
    """Games in which the agent never votes when the others do go on."""
    env = DiplomacyEnv("small", opponents="hold", draw_votes=True, draws_after=1902)
    env.reset(seed=1)
    for yes in (1, 1, 0, 0, 0):
        _, _, terminated, _, _ = env.step(vote(env.action_space, yes))
        assert not terminated


def test_bad_votes():
    env = DiplomacyEnv("small", draw_votes=True)
    env.reset(seed=1)
    action = vote(env.action_space, 2)
    assert env.step(action)[4]["illegal_orders"] >= 1
    strict = DiplomacyEnv("small", "deepdip", draw_votes=True, strict=True)
    strict.reset(seed=1)
    with pytest.raises(UserError, match="the last entry of an action, is 0 or 1, not 2"):
        strict.step(action[: strict.action_space.shape[0]])
    for arguments, words in (
        ({"form": "sequential", "draw_votes": True}, "form 'sequential' has no votes"),
        ({"draws_after": "soon", "draw_votes": True}, "draws_after"),
    ):
        with pytest.raises(UserError, match=words):
            DiplomacyEnv("small", **arguments)


@pytest.mark.parametrize("press", [None, "mutual"])
def test_all_powers_agree(press):
    env = parallel_env("three", press=press, draw_votes=True, reward="draw_size", max_years=3)
    parallel_api_test(env, num_cycles=30)
    _, infos = env.reset(seed=1)

    def step(*voters: str):
        nonlocal infos
        actions = {}
        for name in env.agents:
            action = env.action_space(name).sample(infos[name]["action_mask"])
            if press:
                action["vote"] = int(name in voters)
            else:
                action[-1] = name in voters
            actions[name] = action
        given = {name: dict(a) if press else a.copy() for name, a in actions.items()}
        result = env.step(actions)
        infos = result[-1]
        for name, action in actions.items():
            assert np.array_equal(list(action), list(given[name])), "what is given stays"
        return result

    names = env.possible_agents
    for _ in range(2 if press else 1):  # wishes come first
        _, _, terminated, _, _ = step(*names[1:])
        assert not any(terminated.values())
    if press:
        while infos[names[0]]["step"] == "wishes":
            step()
    _, rewards, terminated, truncated, _ = step(*names)
    assert all(terminated.values()) and not any(truncated.values()) and not env.agents
    assert rewards == pytest.approx(dict.fromkeys(names, 1 / 3))


def test_an_eliminated_ally_has_no_vote():
    env = parallel_env("three", draw_votes=True, teams="ENGLAND+ITALY")
    env.reset(seed=1)
    state, italy = env._games.state, env.possible_agents.index("ITALY")
    state.unit_power[state.unit_power == italy] = -1
    state.unit_kind[state.unit_power == -1] = state.unit_location[state.unit_power == -1] = -1
    state.center_owner[state.center_owner == italy] = -1
    actions = {name: vote(env.action_space(name), 0) for name in env.agents}
    _, _, terminated, _, infos = env.step(actions)
    assert not any(terminated.values()) and infos["ITALY"]["eliminated"]
    assert infos["ITALY"]["action_mask"][-1].tolist() == [1, 0]
    with pytest.raises(UserError, match="ITALY cannot vote: it is eliminated"):
        env.step({name: vote(env.action_space(name), 1) for name in env.agents})
    yes = {n: vote(env.action_space(n), int(n != "ITALY")) for n in env.agents}
    assert all(env.step(yes)[2].values())


def test_bad_votes_of_powers():
    env = parallel_env("small", draw_votes=True)
    env.reset(seed=1)
    with pytest.raises(UserError, match="the vote of ENGLAND must be 0 or 1, not 2"):
        env.step({name: vote(env.action_space(name), 2) for name in env.agents})
    env = parallel_env("small", draw_votes=True, press="mutual")
    env.reset(seed=1)
    with pytest.raises(UserError, match="the action of ENGLAND has no vote"):
        env.step({name: {"orders": [0], "wish": [0, 0]} for name in env.agents})


def test_who_negotiates_agrees_to_a_draw():
    name, options = "Diplomacy-small-negotiation-v0", {"orders_by": "hold", "reward": "draw_size"}
    plain = gymnasium.make(name, **options)
    env = gymnasium.make(name, draw_votes=True, draws_after=1902, **options)
    assert env.action_space.nvec.tolist() == [*plain.action_space.nvec.tolist(), 2]
    env.reset(seed=1)
    for ends in (False, False, True):
        _, reward, terminated, truncated, _ = env.step(vote(env.action_space, 1))
        assert (terminated, truncated) == (ends, False)
    assert reward == 0.5
