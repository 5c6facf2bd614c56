"""The DeepDip thesis' formulation of the game (Cruz 2019), for its experiments on a modern stack.

    observation  three numbers for each of the V provinces: whether it is a supply center, its
                 owner, and the power of the unit there (0 none, 1 the agent, then the others)
    action       one of 1 + 2 V numbers for each province: 0 hold, 1 + r move to province r,
                 1 + V + r support one's own unit of province r in whatever it does

Orders for provinces without a unit of the agent's are ignored, invalid ones hold. There is no mask.
Retreats and adjustments are `dumbbot-deepdip`'s, as the thesis' agent was built on that bot.
"""

from typing import ClassVar

import numpy as np
from gymnasium import spaces

from ..constants import NONE
from .agent_games import AgentBoards
from .forms import ProvinceForm, illegal_order, unit_text
from .kernels import deepdip_observation, take_deepdip_actions


class DeepDipForm(ProvinceForm):
    agent_games: ClassVar = {"gap": 0, "movement_only": True}
    has_masks = False

    def __init__(self, agents: AgentBoards):
        super().__init__(agents)
        powers, provinces = self._games.num_powers, len(self._games.board.terrain)
        units = len(self._games.map.unit_powers) + 1
        self.observation_space = spaces.MultiDiscrete([2, powers + 1, units] * provinces)
        self.action_space = spaces.MultiDiscrete([1 + 2 * provinces] * provinces)

    def observe(self, rows: np.ndarray) -> np.ndarray:
        """(rows, 3 V) int64."""
        games = self._games
        out = np.empty((len(rows), 3 * len(games.board.terrain)), np.int64)
        games.call(deepdip_observation, games.board, games.state, rows, self._agents.agent, out)
        return out

    def masks(self) -> None:
        pass

    def take(self, actions: np.ndarray, strict: bool) -> tuple[np.ndarray, np.ndarray]:
        agents, games = self._agents, self._games
        bad = games.call(
            take_deepdip_actions,
            games.board,
            games.table,
            actions,
            agents.mask,
            agents.queue,
            agents.queued,
            agents.orders,
            self._illegal,
        )
        if strict and bad != NONE:
            row, v = divmod(bad, actions.shape[1])
            order = self._words(int(actions[row, v]))
            raise illegal_order(games, row, unit_text(games, row, v), order)
        return agents.every_row, self._illegal

    def _words(self, action: int) -> str:
        names = self._games.map.provinces
        what, r = divmod(action - 1, len(names))
        if what not in (0, 1):
            return f"action {action}, not in 0..{2 * len(names)},"
        return f"action {action} ({('move to', 'support of')[what]} {names[r]})"
