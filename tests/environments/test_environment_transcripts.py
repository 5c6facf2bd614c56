"""Environments in transcripts: rewards, ends, votes, deals and errors of short games."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from support.environments import make
from support.transcripts import expressions, follow, names_of

from diplomacy_engine import Game
from diplomacy_engine.textgame.position import load_state

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PettingZoo's: names, Dict spaces


def plain(value: object) -> object:
    """Return a value without arrays, masks and what is said twice of many games."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in LEFT_OUT and k[0] != "_"}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


LEFT_OUT = "action_mask", "final_obs"


class Environment:
    """An environment in a transcript; it begins with its first `reset`, or `at` a position."""

    def __init__(self, kind: str, **settings):
        self.env, self.seen = make(kind, **settings), None

    @property
    def games(self):
        return self.env._games if hasattr(self.env, "_games") else self.env._agents.games

    @property
    def units(self) -> list[dict]:
        return [Game.from_row(self.games, e).units for e in range(self.games.num_games)]

    def reset(self, position: str = "") -> None:
        self.seen, self.infos = self.env.reset(seed=1)
        if position:
            load_state(self.games, Game.from_position(position).to_state())

    def action(self, *texts: str, agent: str = "", **parts) -> np.ndarray | dict:
        """Return the action that gives some orders, and 0 elsewhere but in `parts`."""
        space = self.env.action_space(agent) if agent else self.env.action_space
        value = {"orders": np.zeros(space.shape or (), int)}
        if isinstance(space, gymnasium.spaces.Dict):
            value = {name: np.zeros(part.shape, int) for name, part in space.items()}
        for text in texts:
            v = self.games.map.province_index[text[2:5]]
            first = self.games.table.province_first[v]
            value["orders"][v] = self.games.vocabulary.number[text] - first + 1
        for name, part in parts.items():
            place = value[name] if name in value else value["orders"][..., -1]
            place[...] = part
        return value if isinstance(space, gymnasium.spaces.Dict) else value["orders"]

    def all(self, **parts) -> dict:
        """Return an action of every agent without orders."""
        return {agent: self.action(agent=agent, **parts) for agent in self.env.agents}

    def deal(self, words: str) -> list[int]:
        """Return the action of an environment of negotiation that offers a deal."""
        mine, goal, power, theirs, its_goal = words.split()
        places, powers = self.games.map.province_index, self.games.map.power_index
        return [places[mine], places[goal], powers[power], places[theirs], places[its_goal]]

    def binding(self, value: bool) -> None:
        """Let the partner in a negotiation break deals, which bind or not."""
        self.env._partner.breaks_deals = True
        self.games.rules = replace(self.games.rules, binding=value)

    def step(self, action: object = None) -> list:
        """Return the reward, whether it ended or was cut, and the info."""
        action = self.action() if action is None else action
        self.seen, *rest, self.infos = self.env.step(action)
        return [*map(plain, rest), plain(self.infos)]


@pytest.mark.parametrize("name", names_of(__file__, "transcripts"))
def test_transcript(name):
    follow(__file__, "transcripts", name, expressions(Environment, Environment, np.full))
