"""A PettingZoo environment: all powers at once, one phase a step; with press two of movement.

    from diplomacy_engine.environments import parallel_env

    env = parallel_env(map="three")

docs/environments.md has an example. `env` makes the same for PettingZoo's AEC interface, by
PettingZoo's own converter.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec

from .._suggest import quoted
from ..constants import NONE, RUNNING, YEAR_LIMIT
from ..errors import UserError
from ..games.game import Game
from ..games.vector_game import VectorGame
from ..matches.forks import random_beginnings
from ..press.press import Press
from ..scoring.rewards import reward_input
from ..scoring.teams import alive_with_team
from .agent_games import seeds_of
from .forms import (
    illegal_order,
    observation_space,
    province_action,
    province_space,
    unit_text,
    whole_numbers,
    with_vote,
)
from .kernels import mask_decisions, take_province_actions
from .rendering import RENDER_FPS, RENDER_MODES, check_render_mode, render_game
from .settings import EnvSettings


class DiplomacyParallelEnv(ParallelEnv):
    """All powers of one game; agents are named after them.

    An action has one entry for each province, as in the Gymnasium form `provinces`; where a power
    has nothing to order, only 0 is legal. `infos[agent]["action_mask"]` is a tuple of int8 arrays,
    one for each province, as `action_space(agent).sample(mask)` takes it. With teams, an agent
    stays until its team is out, and `infos[agent]["eliminated"]` says whether it is itself.

    With press `mutual` actions and masks are dictionaries of `orders`, as above, and `wish`, with
    whom the power wishes peace; `infos[agent]["step"]` names which of the two is asked for, and
    observations have `peace` (P,), `closed` (P, V) and `bound` (V,), see docs/environments.md.

    With draw_votes the last entry of an action is the power's vote for a draw, and with press
    `vote` is one more key; it means nothing at the step of wishes. Only 0 is legal for a power
    that is eliminated.

    Args:
        map: a map's name or file.
        render_mode: `rgb_array`, `ansi` or None.
        press: `mutual`, or None: nobody makes peace.
        settings: see docs/environments.md.
    """

    metadata: ClassVar = {
        "name": "diplomacy_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        map: str | Path = "small",
        render_mode: str | None = None,
        press: str | None = None,
        **settings: Any,
    ):
        check_render_mode(render_mode)
        if press not in (None, "mutual"):
            raise UserError(f"press must be 'mutual' or None, not {quoted(press)}")
        self.render_mode = render_mode
        found = self._settings = EnvSettings.of(settings)
        self._games = VectorGame(
            found.map_of(map), 1, max_years=found.max_years, threads=1, auto_reset=False
        )
        self._reward = found.reward_of(self._games.map)
        self._strict = bool(found.strict)
        self.possible_agents = list(self._games.map.powers)
        self.agents: list[str] = []
        powers, provinces = self._games.num_powers, len(self._games.board.terrain)
        observed, action = observation_space(self._games), province_space(self._games)
        cuts = np.cumsum(action.nvec)[:-1]
        self._press = None if press is None else Press(self._games, press)
        self._wishing = False  # whether the coming step has wishes
        if press is not None:
            observed = spaces.Dict(
                observed.spaces
                | {
                    "peace": spaces.MultiBinary(powers),
                    "closed": spaces.MultiBinary([powers, provinces]),
                    "bound": spaces.MultiBinary(provinces),
                }
            )
            action = spaces.Dict({"orders": action, "wish": spaces.MultiDiscrete([2] * powers)})
            if found.draw_votes:
                action["vote"] = spaces.Discrete(2)
        elif found.draw_votes:
            action = with_vote(action)
        self.observation_spaces = {name: deepcopy(observed) for name in self.possible_agents}
        self.action_spaces = {name: deepcopy(action) for name in self.possible_agents}
        self._every_power = np.arange(powers, dtype=np.int8)
        size = len(self._games.vocabulary) - 1 + provinces
        self._mask = np.zeros((powers, size), np.int8)
        self._cuts = cuts
        self._random: np.random.Generator | None = None
        self._orders = self._games.new_orders()

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    @property
    def game(self) -> Game:
        """The current position as a Game, to look at."""
        return Game.from_row(self._games, 0)

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Start a new game; see pettingzoo.ParallelEnv.reset. There are no options."""
        if seed is not None or self._random is None:
            self._random, number = seeding.np_random(seed)
            self._games.seed_games(np.zeros(1, int), seeds_of([number]))
        seed_of_beginning = int(self._random.integers(2**31))
        random_beginnings(self._games, self._settings.most_phases, seed_of_beginning)
        alive = self._games.outcomes().alive[0]
        self.agents = [name for name, lives in zip(self.possible_agents, alive) if lives]
        self._begin_phase()
        return self._observe(self.agents), self._infos(self.agents, np.zeros(len(alive), int))

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        """Play one phase with the actions of all `agents`; see pettingzoo.ParallelEnv.step.

        With press, the step of wishes plays nothing and pays nothing. UserError: the game is over
        or none has begun; an action is missing, of nobody alive, or of a wrong shape or type;
        strict, and an illegal order; a vote that is not in the mask.
        """
        if not self.agents:
            raise UserError("there is no game to step: call reset() first")
        games = self._games
        for name in actions:
            if name not in self.agents:
                raise UserError(f"{quoted(name)} is not an agent of {', '.join(self.agents)}")
        for name in self.agents:
            if name not in actions:
                raise UserError(f"the action of {name} is missing")
        votes = None
        if self._settings.draw_votes:
            actions, votes = self._read_votes(actions)
        if self._press is not None:
            actions = self._take_wishes(actions)
        given = np.zeros((games.num_powers, len(games.board.terrain)), np.int64)
        for power, name in enumerate(self.possible_agents):
            if name in self.agents:
                given[power] = whole_numbers(actions[name], given.shape[1:])
        if self._wishing:
            return self._after_wishes()
        illegal = self._take(given)
        result = games.step(self._orders, votes=votes)
        victory_centers, pays_limit = games.board.victory_centers, self._settings.pays_limit
        paid = self._reward(reward_input(result, victory_centers, pays_limit))[0]
        limit = bool(result.ended[0] == YEAR_LIMIT)
        over = bool(result.ended[0] != RUNNING)
        agents = self.agents
        alive = result.alive[0]
        if games.map.teams.text:
            alive = alive_with_team(result.alive, games.map.teams.of_power)[0]
        numbers = [self.possible_agents.index(name) for name in agents]
        truncated = {n: limit and bool(alive[p]) for n, p in zip(agents, numbers)}
        terminated = {
            n: not truncated[n] and (over or not alive[p]) for n, p in zip(agents, numbers)
        }
        rewards = {name: float(paid[p]) for name, p in zip(agents, numbers)}
        self._begin_phase()
        seen, infos = self._observe(agents), self._infos(agents, illegal)
        self.agents = [n for n in agents if not (terminated[n] or truncated[n])]
        return seen, rewards, terminated, truncated, infos

    def _begin_phase(self) -> None:
        self._wishing = self._press is not None and bool(self._press.talking()[0])

    def _read_votes(self, actions: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray]:
        """The actions, without press less their votes, and the votes, (1, P) bool."""
        votes, alive = np.zeros((1, len(self.possible_agents)), bool), self._games.outcomes().alive
        rest = dict(actions)
        for name in self.agents:
            power, action = self.possible_agents.index(name), actions[name]
            if self._press is None:
                *orders, vote = whole_numbers(action, self.action_spaces[name].shape).tolist()
                rest[name] = np.array(orders, np.int64)
            elif isinstance(action, dict) and "vote" in action:
                vote = int(whole_numbers(action["vote"], ()))
            else:
                raise UserError(f"the action of {name} has no vote: {quoted(action)}")
            if vote not in (0, 1):
                raise UserError(f"the vote of {name} must be 0 or 1, not {vote}")
            if vote and not alive[0, power]:
                raise UserError(f"{name} cannot vote: it is eliminated")
            votes[0, power] = vote == 1
        return rest, votes

    def _take_wishes(self, actions: dict[str, Any]) -> dict[str, Any]:
        """Make peace by the wishes, if it is their step; return the orders."""
        powers = self._games.num_powers
        wish, orders = np.zeros((1, powers, powers), bool), {}
        for name in self.agents:
            action = actions[name]
            if not isinstance(action, dict) or set(action) != set(self.action_spaces[name]):
                raise UserError(
                    f"the action of {name} must be a dictionary of "
                    f"{' and '.join(self.action_spaces[name])}, not {quoted(action)}"
                )
            numbers = whole_numbers(action["wish"], (powers,))
            if ((numbers != 0) & (numbers != 1)).any():
                raise UserError(f"the wish of {name} must be 0 or 1 for each power")
            wish[0, self.possible_agents.index(name)] = numbers
            orders[name] = action["orders"]
        if self._wishing:
            self._press.propose(wish)
        return orders

    def _after_wishes(self) -> tuple[dict, dict, dict, dict, dict]:
        self._wishing = False
        agents, no = self.agents, dict.fromkeys(self.agents, False)
        infos = self._infos(agents, np.zeros(len(self.possible_agents), int))
        return self._observe(agents), dict.fromkeys(agents, 0.0), no, dict(no), infos

    def render(self) -> np.ndarray | str | None:
        """Return the position as `render_mode` says; UserError before `reset`."""
        if self._random is None:
            raise UserError("there is no game to render: call reset() first")
        return render_game(self._games, 0, self.render_mode)

    def _take(self, given: np.ndarray) -> np.ndarray:
        """Write the orders of actions (P, V); return how many are illegal, (P,)."""
        games, powers = self._games, len(given)
        orders = np.full(given.shape, NONE, np.int32)
        illegal = np.zeros(powers, np.int64)
        first = games.table.province_first
        bad = games.call(
            take_province_actions, given, self._mask, first, self._strict, orders, illegal
        )
        if self._strict and bad != NONE:
            power, v = divmod(bad, given.shape[1])
            order = province_action(games, int(given[power, v]), v)
            unit = f"{self.possible_agents[power]}, {unit_text(games, 0, v)}"
            raise illegal_order(games, 0, unit, order)
        self._orders[0] = orders.max(0)  # a province is ordered in by one power, NONE is -1
        return illegal

    def _observe(self, agents: list[str]) -> dict[str, dict[str, np.ndarray]]:
        board, last_order, scalars = self._games.observe_powers(
            np.zeros(len(self._every_power), np.int32), self._every_power
        )
        powers = {name: self.possible_agents.index(name) for name in agents}
        seen = {
            name: {"board": board[p], "last_order": last_order[p], "scalars": scalars[p]}
            for name, p in powers.items()
        }
        if self._press is not None:
            self._add_peace(seen)
        return seen

    def _add_peace(self, seen: dict[str, dict[str, np.ndarray]]) -> None:
        every = self._every_power.astype(np.int64)
        view = self._press.observe(np.zeros_like(every), every)
        # Who is q to everybody: seats are counted from the observer on.
        seats = (every[None, :] - every[:, None]) % len(every)
        for name, found in seen.items():
            p = self.possible_agents.index(name)
            found["peace"] = view.peace[p, seats[p]].astype(np.int8)
            found["closed"] = view.closed[p, seats[p]].astype(np.int8)
            found["bound"] = view.bound[p].astype(np.int8)

    def _infos(self, agents: list[str], illegal: np.ndarray) -> dict[str, dict]:
        decisions = self._games.decisions()
        if self._press is not None:
            decisions = self._press.bound(decisions)
        if self._wishing:
            decisions = decisions.take(np.zeros(0, np.int64))
        self._games.call(
            mask_decisions, self._games.board, self._games.table, decisions, self._mask
        )
        masks = np.split(self._mask.copy(), self._cuts, axis=1)
        powers = {name: self.possible_agents.index(name) for name in agents}
        infos = {
            name: {
                "action_mask": tuple(mask[p] for mask in masks),
                "illegal_orders": int(illegal[p]),
            }
            for name, p in powers.items()
        }
        alive = self._games.outcomes().alive[0]
        for name, p in powers.items():
            if self._games.map.teams.text:
                infos[name]["eliminated"] = not alive[p]
            if self._press is not None:
                open_to = alive & self._wishing & alive[p]
                open_to[p] = False
                wish = tuple(np.array([1, may], np.int8) for may in open_to)
                mask = {"orders": infos[name]["action_mask"], "wish": wish}
                if self._settings.draw_votes:
                    mask["vote"] = _vote_mask(alive[p])
                step = "wishes" if self._wishing else "orders"
                infos[name] |= {"action_mask": mask, "step": step}
            elif self._settings.draw_votes:
                infos[name]["action_mask"] += (_vote_mask(alive[p]),)
        return infos


def _vote_mask(alive: bool) -> np.ndarray:
    return np.array([1, alive], np.int8)


def parallel_env(map: str | Path = "small", **settings: Any) -> DiplomacyParallelEnv:
    return DiplomacyParallelEnv(map, **settings)


def env(map: str | Path = "small", **settings: Any) -> AECEnv:
    """Return the same environment with PettingZoo's AEC interface."""
    return parallel_to_aec(parallel_env(map, **settings))
