"""Mixes of rewards in every environment: what a mix pays is the sum of what its parts pay."""

import gymnasium
import numpy as np
import pytest

from diplomacy_engine import UserError
from diplomacy_engine.environments.gymnasium_env import DiplomacyVectorEnv
from diplomacy_engine.environments.negotiation_env import NegotiationEnv
from diplomacy_engine.environments.pettingzoo_env import env as aec_env
from diplomacy_engine.environments.pettingzoo_env import parallel_env

TALK = {"orders_by": "random", "answers": "peaceful"}


def sampled(env, seed):
    """Yield rewards of games with actions from the space's seed; the same for any reward."""
    env.action_space.seed(seed)
    _, info = env.reset(seed=seed)
    over = False
    while not over:
        mask = info.get("action_mask")
        if isinstance(env.action_space, gymnasium.spaces.MultiDiscrete) and mask is not None:
            mask = tuple(np.split(mask, np.cumsum(env.action_space.nvec)[:-1]))
        _, reward, terminated, truncated, info = env.step(env.action_space.sample(mask))
        yield [reward]
        over = terminated or truncated


def one_agent(form):
    def play(reward):
        env = gymnasium.make(f"Diplomacy-small{form}-v0", reward=reward, opponents="random")
        for seed in range(3):
            yield from sampled(env.unwrapped, seed)

    return play


def talk(kind):
    def play(reward):
        yield from sampled(kind("small", reward=reward, max_years=6, **TALK), 5)

    return play


def many(reward):
    envs = DiplomacyVectorEnv(4, "small", reward=reward, max_years=5)
    envs.reset(seed=3)
    for _ in range(40):
        yield envs.step(np.zeros(envs.action_space.shape, int))[1]


def together(reward):
    env = parallel_env(map="three", reward=reward, max_years=5)
    for number, space in enumerate(env.action_spaces.values()):
        space.seed(number)
    _, infos = env.reset(seed=2)
    while env.agents:
        actions = {
            name: env.action_space(name).sample(infos[name]["action_mask"]) for name in env.agents
        }
        _, rewards, _, _, infos = env.step(actions)
        yield list(rewards.values())


def in_turn(reward):
    env = aec_env(map="small", reward=reward, max_years=3)
    env.reset(seed=2)
    for number, name in enumerate(env.possible_agents):
        env.action_space(name).seed(number)
    for name in env.agent_iter():
        _, paid, over, cut, info = env.last()
        yield [paid]
        env.step(None if over or cut else env.action_space(name).sample(info["action_mask"]))


PLAYS = {
    "provinces": one_agent(""),
    "sequential": one_agent("-sequential"),
    "deepdip": one_agent("-deepdip"),
    "many at once": many,
    "all powers": together,
    "in turn": in_turn,
    "negotiation": talk(NegotiationEnv),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", PLAYS)
def test_a_mix_pays_the_sum_of_its_parts(name):
    """The recipe of `small`, half of it, and a reward that is paid in every year."""
    first, second, third = (
        [np.array(paid, float) for paid in PLAYS[name](reward)]
        for reward in ("sum_of_squares", "lead_delta", "survival_time")
    )
    mixed = list(PLAYS[name]("sum_of_squares=1,lead_delta=0.5, survival_time=0.25"))
    assert len(mixed) == len(first) == len(second) == len(third)
    for paid, one, half, quarter in zip(mixed, first, second, third):
        np.testing.assert_allclose(paid, one + half / 2 + quarter / 4, atol=1e-6)
    assert any(half.any() for half in second) and any(quarter.any() for quarter in third)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("team:sum_of_squares", "'team:sum_of_squares': there is no level 'team'"),
        ("score=1,power2:score=1", "no level 'power2' of teams"),
        ("score=1..0", "weights that change during training are the trainer's"),
        ("score=1,scor=1", "unknown reward 'scor'.*did you mean 'score'"),
        ("score=1,,terminal=1", "'' is not a name"),
        ("score=much", "'score=much' is not"),
    ],
)
def test_bad_rewards_are_one_sentence(reward, message):
    for make in (
        lambda: gymnasium.make("Diplomacy-small-v0", reward=reward),
        lambda: parallel_env(map="small", reward=reward),
        lambda: NegotiationEnv("small", reward=reward),
    ):
        with pytest.raises(UserError, match=message) as error:
            make()
        assert "\n" not in str(error.value)
