"""The DeepDip thesis' formulation of the game (Cruz 2019), for its experiments on a modern stack.

    observation  three numbers for each of the R provinces: whether it is a supply center, its
                 owner, and the power of the unit there (0 none, 1 the agent, then the others)
    action       one of 1 + 2 R numbers for each province: 0 hold, 1 + r move to province r,
                 1 + R + r support one's own unit of province r in whatever it does

Orders for provinces without a unit of the agent's are ignored, invalid ones hold. There is no mask.
Retreats and adjustments are DumbBot's.
"""

from typing import ClassVar

import numpy as np
from gymnasium import spaces

from ._jit import jit
from .agent_games import AgentGames
from .constants import MOVE, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from .env_forms import ProvinceForm, illegal_order, unit_text


@jit
def deepdip_observation(board, state, rows, agent, out):
    """Write the observations of games `rows`: out (R, 3 V) int64."""
    powers = board.num_powers
    for i in range(rows.shape[0]):
        e = rows[i]
        me = agent[e]
        for v in range(board.terrain.shape[0]):
            center, owner = board.province_center[v], NONE
            if center != NONE:
                owner = state.center_owner[e, center]
            unit = state.unit_power[e, v]
            out[i, 3 * v] = center != NONE
            out[i, 3 * v + 1] = 0 if owner == NONE else 1 + (owner - me) % powers
            out[i, 3 * v + 2] = 0 if unit == NONE else 1 + (unit - me) % powers


@jit
def _legal_order(board, table, mask, e, v, kind, other, target):
    """Return the first legal order of the unit in v of that kind, or NONE.

    `target` is the province moved to or supported (to hold), or else the location that the unit of
    province `other` is supported to.
    """
    for number in range(table.province_first[v], table.province_first[v + 1]):
        if table.kind[number] != kind or not mask[e, number]:
            continue
        there = table.target[number]
        if kind != SUPPORT_MOVE:
            if board.location_province[there] == target:
                return number
        elif there == target and board.location_province[table.other_location[number]] == other:
            return number
    return NONE


@jit
def take_deepdip_actions(board, table, actions, mask, queue, queued, strict, orders, illegal):
    """Write the orders of actions, and count the invalid ones, which hold.

    Reads   actions (E, V) int64; mask (E, A), queue (E, V), queued (E,): the agents' units
    Writes  orders (E, V); illegal (E,). A strict call with an invalid action leaves some orders
            written, to be written again by the next call
    Returns the first invalid action, as e * V + v, or NONE
    """
    provinces = actions.shape[1]
    first_bad = NONE
    for e in range(actions.shape[0]):
        illegal[e] = 0
        for supports in range(2):  # a support waits for what it supports
            for s in range(queued[e]):
                v = queue[e, s]
                action = actions[e, v]
                if (action > provinces) != supports:
                    continue
                number = table.province_first[v]
                while not mask[e, number]:
                    number += 1  # the first legal order is the hold
                if supports:
                    q = action - 1 - provinces
                    number = NONE
                    if q < provinces and _is_mine(queue, queued, e, q):
                        if orders[e, q] != NONE and table.kind[orders[e, q]] == MOVE:
                            goal = table.target[orders[e, q]]
                            number = _legal_order(board, table, mask, e, v, SUPPORT_MOVE, q, goal)
                        else:
                            number = _legal_order(board, table, mask, e, v, SUPPORT_HOLD, NONE, q)
                elif action != 0:
                    number = NONE
                    if action > 0:
                        number = _legal_order(board, table, mask, e, v, MOVE, NONE, action - 1)
                orders[e, v] = number
                if number == NONE:
                    illegal[e] += 1
                    if first_bad == NONE:
                        first_bad = e * provinces + v
    return first_bad


@jit
def _is_mine(queue, queued, e, v):
    for s in range(queued[e]):
        if queue[e, s] == v:
            return True
    return False


class DeepDipForm(ProvinceForm):
    """The spaces and actions of the thesis."""

    settings: ClassVar = {"gap": 0, "movement_only": True}
    has_masks = False

    def __init__(self, agents: AgentGames):
        super().__init__(agents)
        powers, provinces = self._games.num_powers, len(self._games.board.terrain)
        self.observation_space = spaces.MultiDiscrete([2, powers + 1, powers + 1] * provinces)
        self.action_space = spaces.MultiDiscrete([1 + 2 * provinces] * provinces)

    def observe(self, rows: np.ndarray) -> np.ndarray:
        """Return what the agents of `rows` see, (rows, 3 V) int64."""
        games = self._games
        out = np.empty((len(rows), 3 * len(games.board.terrain)), np.int64)
        games.call(deepdip_observation, games.board, games.state, rows, self._agents.agent, out)
        return out

    def masks(self) -> None:
        """Return nothing: the thesis had no masks."""

    def take(self, actions: np.ndarray, strict: bool) -> tuple[np.ndarray, np.ndarray]:
        """Write the orders of actions (E, V) int64; see ProvinceForm.take."""
        agents, games = self._agents, self._games
        bad = games.call(
            take_deepdip_actions,
            games.board,
            games.table,
            actions,
            agents.mask,
            agents.queue,
            agents.queued,
            strict,
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
            return f"action {action}, which is none of 0..{2 * len(names)},"
        return f"action {action} ({('move to', 'support of')[what]} {names[r]})"
