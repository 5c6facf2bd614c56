"""Gymnasium environments: one power among frozen opponents, a single game or many at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .._suggest import quoted
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..pictures.png import pixels
from ..textgame.game import Game
from .agent_games import AgentGames, seeds_of
from .forms import FORMS, Many, One, check_form, make_form, row_of
from .settings import AgentOptions, AgentSettings, Opponents, env_settings

# `render_fps`: positions a second in a video
METADATA: dict = {"render_modes": ["rgb_array", "ansi"], "render_fps": 2}
WIDTH = 800  # pixels of a picture


def render_game(games: VectorGame, row: int, mode: str | None) -> np.ndarray | str | None:
    """`rgb_array`: a picture with even sides, (height, width, 3) uint8; `ansi`: a line with map and
    phase, then one for each power, as `Game.to_position` writes them."""
    if mode is None:
        return None
    game = Game.from_row(games, row)
    if mode == "ansi":
        return game.to_position().replace("; ", "\n") + "\n"
    return pixels(game.to_svg(theme="light"), game.map, WIDTH)


class NeedsReset(gymnasium.error.ResetNeeded, UserError):
    """`step` came before `reset`, or after the end of a game."""


class _AgentEnv:
    render_mode: str | None

    def _set_up(self, game_map: str | Path, arguments: AgentOptions, **own: object) -> None:
        settings, rules = env_settings(AgentSettings, game_map, arguments, self, **own)
        check_form(settings.form, rules.draw_votes, settings.flat)
        self.render_mode, self._strict = settings.render_mode, settings.strict
        form = FORMS[settings.form]
        self._agents = AgentGames(rules, settings, arguments, form.gap, form.movement_only)
        wrapping = rules.draw_votes, settings.flat
        self._form = make_form(settings.form, self._agents, *wrapping)
        self._masks: np.ndarray | None = None
        self._seeded = self._running = False

    def _start(self, seeds: np.ndarray | None, rng: np.random.Generator) -> Many:
        rows = self._agents.every_row
        if seeds is None and not self._seeded:
            seeds = rng.integers(0, 2**64, len(rows), np.uint64)
        self._agents.start(rows, seeds)
        self._form.asked(rows)
        self._seeded = self._running = True
        return self._form.observe(rows)

    def _need_game(self, there_is_one: bool) -> None:
        if not there_is_one:
            raise NeedsReset("there is no game: call reset() first")

    def set_opponents(self, opponents: Opponents, *, next_game: bool = False) -> None:
        """Play against others from now on; with `next_game`, in games that begin from now on.
        UserError: a game is running, and next_game is not set; or there is no such player."""
        if self._running and not next_game:
            raise UserError("opponents change in the middle of a game only with next_game=True")
        self._agents.set_opponents(opponents)

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal now, as sb3-contrib asks for it. (M,) int8 for one game,
        (E, M) for many; NeedsReset before `reset`, UserError if the form has none."""
        self._need_game(self._seeded)
        if self._masks is None:
            raise UserError("actions of this form have no masks")
        return self._masks


class DiplomacyEnv(_AgentEnv, gymnasium.Env):
    """One power of one game. `step` plays to the power's next decision.

    Args:
        map: a map's name or file.
        form: `provinces`, `sequential`, `deepdip` or `text`; see docs/environments.md.
        render_mode: `rgb_array`, `ansi` or None.
        settings: see docs/environments.md.

    `info` has `action_mask`, `illegal_orders` and `power` (its index); at the end of a game also
    `win`, `solo`, `centers` and `years`; with draw_votes `agreed`, whether all voted for a draw.
    """

    metadata = METADATA

    def __init__(
        self,
        map: str | Path = "small",
        form: str = "provinces",
        render_mode: str | None = None,
        **settings: Unpack[AgentOptions],
    ):
        own = {"form": form, "render_mode": render_mode, "num_envs": 1, "threads": 1}
        self._set_up(map, settings, **own)
        self.observation_space = self._form.observation_space
        self.action_space = self._form.action_space

    @property
    def game(self) -> Game:
        """The current position as a Game, to look at."""
        return Game.from_row(self._agents.games, 0)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[One, dict]:
        """Start a new game; see gymnasium.Env.reset. There are no options."""
        super().reset(seed=seed)
        obs = self._start(None if seed is None else seeds_of([seed]), self.np_random)
        return row_of(obs, 0), self._info(0)

    def step(self, action: object) -> tuple[One, float, bool, bool, dict]:
        """Order, and play on to the next decision; see gymnasium.Env.step.

        NeedsReset: the game is over, or none has begun. UserError: the action has the wrong shape
        or type, or strict and an illegal order.
        """
        self._need_game(self._running)
        agents = self._agents
        ready, illegal = self._form.take(action, self._strict)
        agents.play(ready)
        self._form.asked(ready)
        terminated, truncated = bool(agents.terminated[0]), bool(agents.truncated[0])
        info = self._info(int(illegal[0]))
        if terminated or truncated:
            self._running = False
            for name, value in agents.outcome(ready).items():
                info[name] = value[0].item()
        obs = row_of(self._form.observe(agents.every_row), 0)
        return obs, float(agents.reward[0]), terminated, truncated, info

    def render(self) -> np.ndarray | str | None:
        """Return the position as `render_mode` says; NeedsReset before `reset`."""
        self._need_game(self._seeded)
        return render_game(self._agents.games, 0, self.render_mode)

    def _info(self, illegal: int) -> dict:
        info = {"illegal_orders": illegal, "power": int(self._agents.agent[0])}
        masks = self._form.masks(self._agents.every_row)
        if masks is not None:
            self._masks = info["action_mask"] = masks[0]
        return info


class DiplomacyVectorEnv(_AgentEnv, VectorEnv):
    """Many games at once, compiled. Against bots environment i of seed s plays the games of a
    DiplomacyEnv of seed s + i; opponents with a random generator of their own share it among games.

    Takes the arguments of DiplomacyEnv, `num_envs`, and the number of `threads` that share the
    games; None: one per usable processor.

    A finished game is reset in the same step (AutoresetMode.SAME_STEP). `infos` then has
    `final_obs` (an object array, an observation where a game ended) and `final_info` (its `info`,
    as a dictionary of arrays), each with a mask, `_final_obs` and `_final_info`.
    """

    autoreset_mode = AutoresetMode.SAME_STEP
    metadata = METADATA | {"autoreset_mode": autoreset_mode}

    def __init__(
        self,
        num_envs: int = 1,
        map: str | Path = "small",
        form: str = "provinces",
        *,
        threads: int | None = None,
        render_mode: str | None = None,
        **settings: Unpack[AgentOptions],
    ):
        own = {"form": form, "render_mode": render_mode, "num_envs": num_envs, "threads": threads}
        self._set_up(map, settings, **own)
        self.num_envs = num_envs
        self.single_observation_space = self._form.observation_space
        self.single_action_space = self._form.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict | None = None
    ) -> tuple[Many, dict]:
        """Start all games anew; a seed s stands for s, s + 1, ... There are no options."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        seeds = None
        if seed is not None:
            numbers = range(seed, seed + self.num_envs) if isinstance(seed, int) else seed
            if np.shape(numbers) != (self.num_envs,) or None in numbers:
                raise UserError(f"seed: not a number, nor one for each game: {quoted(seed)}")
            seeds = seeds_of(numbers)
        return self._start(seeds, self.np_random), self._infos(np.zeros(self.num_envs, np.int64))

    def step(self, actions: object) -> tuple[Many, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Order in every game, and play each on to its next decision; see VectorEnv.step.

        NeedsReset: `reset` has not been called. UserError as for `DiplomacyEnv.step`.
        """
        self._need_game(self._running)
        agents, form = self._agents, self._form
        ready, illegal = form.take(actions, self._strict, (self.num_envs,))
        infos: dict = {}
        agents.play(ready, lambda rows: self._note_final(infos, rows, illegal))
        form.asked(ready)
        results = agents.reward.copy(), agents.terminated.copy(), agents.truncated.copy()
        obs = form.observe(agents.every_row)
        infos |= self._infos(np.where(agents.terminated | agents.truncated, 0, illegal))
        return obs, *results, infos

    def render(self) -> tuple[np.ndarray | str, ...] | None:
        """Return the position of every game as `render_mode` says; NeedsReset before `reset`."""
        self._need_game(self._seeded)
        games, every = self._agents.games, range(self.num_envs)
        shown = (render_game(games, row, self.render_mode) for row in every)
        return tuple(one for one in shown if one is not None) or None

    def _infos(self, illegal: np.ndarray) -> dict:
        infos = {"illegal_orders": illegal.copy(), "power": self._agents.agent.astype(np.int64)}
        masks = self._form.masks(self._agents.every_row)
        if masks is not None:
            self._masks = infos["action_mask"] = masks
        return infos | {f"_{name}": np.ones(self.num_envs, bool) for name in infos}

    def _note_final(self, infos: dict, rows: np.ndarray, illegal: np.ndarray) -> None:
        self._form.asked(rows)
        obs, masks = self._form.observe(rows), self._form.masks(rows)
        values = self._agents.outcome(rows)
        values |= {"illegal_orders": illegal[rows], "power": self._agents.agent[rows].astype(int)}
        if masks is not None:
            values["action_mask"] = masks
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
            infos["final_obs"][row] = row_of(obs, i)
        for name, value in values.items():
            infos["final_info"][name][rows] = value
