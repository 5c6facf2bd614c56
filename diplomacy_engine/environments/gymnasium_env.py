"""Gymnasium environments: one power among frozen opponents, a single game or many at once.

`gymnasium.make("Diplomacy-small-v0")` makes a DiplomacyEnv, `gymnasium.make_vec` a
DiplomacyVectorEnv. docs/environments.md explains them with examples.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .._suggest import quoted
from ..errors import UserError
from ..games.game import Game
from .agent_games import AgentGames, seeds_of
from .forms import VoteForm, form_of, row_of, whole_numbers
from .rendering import RENDER_FPS, RENDER_MODES, check_render_mode, render_game
from .settings import AgentSettings


class NeedsReset(gymnasium.error.ResetNeeded, UserError):
    """`step` came before `reset`, or after the end of a game."""


def _make_form(
    form: str, map: Any, num_envs: int, threads: int | None, settings: AgentSettings
) -> tuple[AgentGames, Any]:
    form_class = form_of(form)
    for name, value in (("num_envs", num_envs), ("threads", threads)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise UserError(f"{name} must be an integer, not {quoted(value)}")
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    agents = AgentGames(map, num_envs, settings, threads=threads, **form_class.agent_games)
    asks = form_class(agents)
    if settings.draw_votes and not isinstance(asks.action_space, gymnasium.spaces.MultiDiscrete):
        raise UserError(f"form {form!r} has no votes: draw_votes needs provinces or deepdip")
    return agents, VoteForm(asks, agents) if settings.draw_votes else asks


def _set_opponents(agents: AgentGames, opponents: Any, running: bool) -> None:
    if running:
        raise UserError(
            "opponents cannot change in the middle of a game: play it to its end, or set them with "
            "next_game=True for the games that begin after it"
        )
    agents.set_opponents(opponents)


class DiplomacyEnv(gymnasium.Env):
    """One power of one game. `step` plays on to the power's next decision.

    Args:
        map: a map's name or file.
        form: `provinces`, `sequential` or `deepdip`; see docs/environments.md.
        render_mode: `rgb_array`, `ansi` or None.
        settings: see docs/environments.md.

    `info` has `action_mask`, `illegal_orders` and `power` (its index); at the end of a game also
    `win`, `solo`, `centers` and `years`; with draw_votes `agreed`, whether all voted for a draw.
    """

    metadata: ClassVar = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}

    def __init__(
        self,
        map: str | Path = "small",
        form: str = "provinces",
        render_mode: str | None = None,
        **settings: Any,
    ):
        check_render_mode(render_mode)
        self.render_mode = render_mode
        found = AgentSettings.of(settings)
        self._agents, self._form = _make_form(form, map, 1, 1, found)
        self._strict = bool(found.strict)
        self._row = self._agents.every_row
        self._mask: np.ndarray | None = None
        self._seeded = self._running = False
        self.observation_space = self._form.observation_space
        self.action_space = self._form.action_space

    @property
    def game(self) -> Game:
        """The current position as a Game, to look at."""
        return Game.from_row(self._agents.games, 0)

    def set_opponents(self, opponents: Any, *, next_game: bool = False) -> None:
        """Play against others from now on; with `next_game`, from the next game on.

        UserError: a game is running, and next_game is not set; or there is no such player.
        """
        _set_opponents(self._agents, opponents, self._running and not next_game)

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal now, (M,) int8, as sb3-contrib asks for it."""
        if self._mask is None:
            raise NeedsReset("there is no action mask before reset()")
        return self._mask

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Start a new game; see gymnasium.Env.reset. There are no options."""
        super().reset(seed=seed)
        seeds = None
        if seed is not None:
            seeds = seeds_of([seed])
        elif not self._seeded:
            seeds = self.np_random.integers(0, 2**64, 1, np.uint64)
        self._agents.start(self._row, seeds)
        self._form.asked(self._row)
        self._seeded = self._running = True
        return self._observation(), self._info(0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """Order, and play on to the next decision; see gymnasium.Env.step.

        Raises:
            NeedsReset: the game is over, or none has begun.
            UserError: the action has the wrong shape or type, or strict and an illegal order.
        """
        if not self._running:
            raise NeedsReset("there is no game to step: call reset() first")
        agents = self._agents
        actions = whole_numbers(action, self.action_space.shape)[None]
        ready, illegal = self._form.take(actions, self._strict)
        reward, terminated, truncated = 0.0, False, False
        if len(ready):
            agents.play(self._row)
            self._form.asked(self._row)
            reward = float(agents.reward[0])
            terminated, truncated = bool(agents.terminated[0]), bool(agents.truncated[0])
        info = self._info(int(illegal[0]))
        if terminated or truncated:
            self._running = False
            for name, value in agents.outcome(self._row).items():
                info[name] = value[0].item()
        return self._observation(), reward, terminated, truncated, info

    def render(self) -> np.ndarray | str | None:
        """Return the position as `render_mode` says; NeedsReset before `reset`."""
        if not self._seeded:
            raise NeedsReset("there is no game to render: call reset() first")
        return render_game(self._agents.games, 0, self.render_mode)

    def _observation(self) -> Any:
        return row_of(self._form.observe(self._row), 0)

    def _info(self, illegal: int) -> dict:
        info = {"illegal_orders": illegal, "power": int(self._agents.agent[0])}
        masks = self._form.masks()
        if masks is not None:
            self._mask = info["action_mask"] = masks[0]
        return info


class DiplomacyVectorEnv(VectorEnv):
    """Many games at once, compiled; environment i of seed s plays as a DiplomacyEnv of seed s + i.

    Takes the arguments of DiplomacyEnv, and:

    Args:
        num_envs: how many.
        threads: threads that share the games; None: as many as there are processors.

    A game that is over is replaced in the same step (AutoresetMode.SAME_STEP). `infos` then has
    `final_obs` (an object array, an observation where a game ended) and `final_info` (its `info`,
    as a dictionary of arrays), each with a mask, `_final_obs` and `_final_info`.
    """

    metadata: ClassVar = {
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        map: str | Path = "small",
        form: str = "provinces",
        *,
        threads: int | None = None,
        render_mode: str | None = None,
        **settings: Any,
    ):
        check_render_mode(render_mode)
        self.render_mode = render_mode
        found = AgentSettings.of(settings)
        self._agents, self._form = _make_form(form, map, num_envs, threads, found)
        self.num_envs = num_envs
        self._strict = bool(found.strict)
        self._masks: np.ndarray | None = None
        self._seeded = self._running = False
        self.single_observation_space = self._form.observation_space
        self.single_action_space = self._form.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def set_opponents(self, opponents: Any, *, next_game: bool = False) -> None:
        """Play against others: in every game from the next `reset` on.

        After a `reset` games are always running, as a new one begins where one is over; with
        `next_game` those go on as they are, and the ones that begin after them are against the new
        opponents. UserError: games are running without next_game, or there is no such player.
        """
        _set_opponents(self._agents, opponents, self._running and not next_game)

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal now, (E, M) int8."""
        if self._masks is None:
            raise NeedsReset("there are no action masks before reset()")
        return self._masks

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict | None = None
    ) -> tuple[Any, dict]:
        """Start all games anew; a seed s stands for s, s + 1, ... There are no options."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        seeds = None
        if seed is not None:
            numbers = range(seed, seed + self.num_envs) if isinstance(seed, int) else list(seed)
            if len(numbers) != self.num_envs:
                raise UserError(f"there must be {self.num_envs} seeds, not {len(numbers)}")
            if not all(isinstance(number, int) and number >= 0 for number in numbers):
                raise UserError(f"seeds must be integers of 0 or more, not {quoted(seed)}")
            seeds = seeds_of(numbers)
        elif not self._seeded:
            seeds = self.np_random.integers(0, 2**64, self.num_envs, np.uint64)
        rows = self._agents.every_row
        self._agents.start(rows, seeds)
        self._form.asked(rows)
        self._seeded = self._running = True
        return self._form.observe(rows), self._infos(np.zeros(self.num_envs, np.int64))

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Order in every game, and play each on to its next decision; see VectorEnv.step.

        Raises:
            NeedsReset: `reset` has not been called.
            UserError: the actions have the wrong shape or type, or strict and an illegal order.
        """
        if not self._running:
            raise NeedsReset("there are no games to step: call reset() first")
        agents, form = self._agents, self._form
        ready, illegal = form.take(whole_numbers(actions, self.action_space.shape), self._strict)
        infos: dict[str, Any] = {}
        reward = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), bool)
        if len(ready):
            agents.play(ready, lambda rows: self._note_final(infos, rows, illegal))
            form.asked(ready)
            reward, terminated = agents.reward.copy(), agents.terminated.copy()
            truncated = agents.truncated.copy()
        over = terminated | truncated
        seen = form.observe(agents.every_row)
        infos |= self._infos(np.where(over, 0, illegal))
        return seen, reward, terminated, truncated, infos

    def render(self) -> tuple[np.ndarray | str, ...] | None:
        """Return the position of every game as `render_mode` says; NeedsReset before `reset`."""
        if not self._seeded:
            raise NeedsReset("there are no games to render: call reset() first")
        if self.render_mode is None:
            return None
        games = self._agents.games
        return tuple(render_game(games, row, self.render_mode) for row in range(self.num_envs))

    def _infos(self, illegal: np.ndarray) -> dict:
        infos = {"illegal_orders": illegal.copy(), "power": self._agents.agent.astype(np.int64)}
        masks = self._form.masks()
        if masks is not None:
            self._masks = infos["action_mask"] = masks
        return infos | {f"_{name}": np.ones(self.num_envs, bool) for name in infos}

    def _note_final(self, infos: dict, rows: np.ndarray, illegal: np.ndarray) -> None:
        self._form.asked(rows)
        seen = self._form.observe(rows)
        values = self._agents.outcome(rows)
        values |= {"illegal_orders": illegal[rows], "power": self._agents.agent[rows].astype(int)}
        if self._form.has_masks:
            values["action_mask"] = self._form.final_masks(rows)
        if not infos:
            over, count = np.zeros(self.num_envs, bool), self.num_envs
            final = {
                name: np.zeros((count, *value.shape[1:]), value.dtype)
                for name, value in values.items()
            }
            infos["final_obs"], infos["_final_obs"] = np.full(count, None, object), over
            infos["final_info"], infos["_final_info"] = final, over
            final |= {f"_{name}": over for name in values}
        infos["_final_obs"][rows] = True
        for i, row in enumerate(rows.tolist()):
            infos["final_obs"][row] = row_of(seen, i)
        for name, value in values.items():
            infos["final_info"][name][rows] = value
