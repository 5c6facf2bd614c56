"""The environment of the thesis' later code: its spaces, its four kinds of deals, its reward."""

import gymnasium
import numpy as np
import pytest

from diplomacy_engine import UserError, make_bot
from diplomacy_engine.environments.deals_env import DealsEnv
from diplomacy_engine.games.position import load_state
from diplomacy_engine.players.negotiation import Silent
from diplomacy_engine.players.negotiators.planners import Dealer

STATE = {
    "name": "S1901M",
    "units": {"FRANCE": ["A BUR", "F ENG"], "GERMANY": ["A MUN", "A RUH"], "ENGLAND": ["A PIC"]},
    "centers": {"FRANCE": ["PAR", "BRE", "MAR"], "GERMANY": ["MUN"], "ENGLAND": ["LON"]},
}


class Partner(Silent):
    """Always gives one answer, and keeps what it was offered: (power, orders)."""

    def __init__(self, answer):
        super().__init__(make_bot("hold"), "partner")
        self.answer, self.got = answer, []

    def answers(self, talk, offers):
        texts = talk.games.vocabulary.texts
        orders = [texts[number] for number in offers.order if number >= 0]
        self.got.append((talk.games.map.powers[offers.receiver[0]], *orders))
        return np.full(offers.count, self.answer)


def environment(answer=True, phase="S1901M", **settings):
    """Return an environment in STATE, as FRANCE, and its partner."""
    env = DealsEnv("standard", power="FRANCE", orders_by="hold", **settings)
    env.reset(seed=1)
    load_state(env._games, STATE | {"name": phase})
    if answer is not None:
        env._partner = Partner(answer)
    return env, env._partner


def test_the_spaces_are_those_of_the_code():
    """Two numbers of each province and the own power are seen; deals are nine numbers."""
    env, _ = environment()
    assert env.observation_space.nvec.tolist() == [8, 2] * 75 + [7]
    assert env.action_space.nvec.tolist() == [2, 18, 2, 6, 2, 18, 2, 18, 10]
    seen = env._observation()
    places, france = env.game.map.province_index, env.game.map.power_index["FRANCE"]
    pairs = seen[:-1].reshape(-1, 2)
    assert seen[-1] == france and env.observation_space.contains(seen)
    assert pairs[places["PAR"]].tolist() == [1 + france, 1]  # its center
    assert pairs[places["BUR"]].tolist() == [1 + france, 0]  # its unit
    assert pairs[places["BEL"]].tolist() == [0, 1]
    small = DealsEnv("small", orders_by="random", answers="silent")
    assert small.action_space.nvec.tolist() == [2, 5, 2, 1, 2, 5, 2, 5, 10]


@pytest.mark.parametrize(
    "action, offers",
    [
        ([0, 0, 0, 0, 0, 0, 0, 0, 0], []),
        # Burgundy is the first unit; it and any neighbor.
        ([1, 0, 0, 0, 0, 0, 0, 0, 0], [
            ("GERMANY", "A BUR S A MUN", "A MUN S A BUR"),
            ("GERMANY", "A BUR S A RUH", "A RUH S A BUR"),
            ("ENGLAND", "A BUR S A PIC", "A PIC S A BUR"),
        ]),
        ([1, 17, 0, 0, 0, 0, 0, 0, 0], []),  # the last one is a fleet, next to an army in Picardy
        ([0, 0, 1, 0, 0, 0, 0, 0, 0], [("ENGLAND",)]),  # peace; who else lives
        ([0, 0, 1, 5, 0, 0, 0, 0, 0], [("GERMANY",)]),
        ([0, 0, 0, 0, 1, 1, 0, 0, 0], [("ENGLAND", "F ENG - BEL", "A PIC S F ENG - BEL"),
            ("GERMANY", "F ENG - BEL", "A RUH S F ENG - BEL"),
            ("ENGLAND", "F ENG - BRE", "A PIC S F ENG - BRE")]),
        ([0, 0, 0, 0, 0, 0, 1, 1, 0], [("ENGLAND", "F ENG S A PIC - BEL", "A PIC - BEL"),
            ("GERMANY", "F ENG S A RUH - BEL", "A RUH - BEL"),
            ("ENGLAND", "F ENG S A PIC - BRE", "A PIC - BRE")]),
    ],
)  # fmt: skip
def test_each_kind_of_deal(action, offers):
    """Each makes one of the offers that the board allows, or none."""
    found = set()
    for seed in range(20):
        env, partner = environment()
        env._np_random = np.random.default_rng(seed)
        _, reward, _, _, info = env.step(action)
        assert info["offered"] == info["agreed"] == bool(offers) and reward == 10 * bool(offers)
        found |= set(partner.got)
    assert found == set(offers)


def test_several_at_once_and_centers():
    """A step can make four offers; a declined one pays nothing, a center 100."""
    env, partner = environment()
    _, reward, _, _, info = env.step([1, 0, 1, 0, 1, 1, 1, 1, 0])
    assert info["offered"] == 4 and len(partner.got) == 4 and reward == 10 * info["agreed"]
    env, _ = environment(answer=False)
    _, reward, _, _, info = env.step([0, 0, 1, 0, 1, 1, 0, 0, 0])
    assert info == {"offered": 2, "agreed": 0, "power": 2} and reward == 0
    for seed in range(20):  # until the draw is Belgium, which the fleet then takes
        env, partner = environment(phase="F1901M")
        env._np_random = np.random.default_rng(seed)
        _, reward, _, _, info = env.step([0, 0, 0, 0, 1, 1, 0, 0, 0])
        if partner.got[0][1] == "F ENG - BEL":
            break
    assert reward == 110 and "BEL" in env.game.centers["FRANCE"]


def test_deals_for_later():
    """A dealer agrees to them if the sender has two centers less; they hold once due."""
    env, _ = environment(answer=None, answers="dealer")
    assert isinstance(env._partner, Dealer)
    _, _, _, _, info = env.step([0, 0, 1, 1, 0, 0, 0, 0, 2])
    assert (info["offered"], info["agreed"]) == (1, 0)  # FRANCE has more than GERMANY
    env, _ = environment(answer=None, answers="dealer")
    env._power = env.game.map.power_index["GERMANY"]
    _, _, _, _, info = env.step([0, 0, 1, 1, 0, 0, 0, 0, 2])
    assert (info["offered"], info["agreed"]) == (1, 1)
    peace = []
    for _ in range(3):
        env.step([0] * 9)
        peace.append(int(env._press.tally.agreed[0]))
    assert peace == [0, 1, 1]
    assert not env._kept


def test_rewards_and_their_names():
    with pytest.raises(UserError, match="did you mean 'deals'"):
        DealsEnv("small", reward="deal")
    env = DealsEnv("small", reward="center_delta", orders_by="random", answers="coin", max_years=2)
    env.reset(seed=4)
    with pytest.raises(UserError, match="not in the action space"):
        env.step(np.full(9, 3))
    for _ in range(4):
        *_, truncated, _ = env.step(env.action_space.sample())
    assert truncated
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0] * 9)
