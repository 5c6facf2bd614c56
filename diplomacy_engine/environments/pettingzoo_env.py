"""A PettingZoo environment: all powers at once, one phase a step, and with press steps of talk.

`env` makes the same for PettingZoo's AEC interface, by its own converter.
"""

from copy import deepcopy
from pathlib import Path
from typing import Unpack

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec

from .._suggest import quoted
from ..constants import NONE, RUNNING, YEAR_LIMIT
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..matches.forks import random_beginnings
from ..press.daide import clauses_of
from ..press.deals import make_offers
from ..press.press import Press
from ..scoring.rewards import reward_input
from ..scoring.teams import alive_with_team
from ..textgame.game import Game
from . import forms
from .agent_games import seeds_of
from .gymnasium_env import METADATA, NeedsReset, render_game
from .kernels import mask_decisions, take_province_actions
from .offers import clauses_to_offer, goals, offer_masks, offer_sizes
from .settings import PowersOptions, PowersSettings, env_settings

Observed = dict[str, np.ndarray] | np.ndarray  # also what a power does in a step
Action = Observed
STEPS = {"mutual": ("wishing",), "offers": ("offering", "answering")}  # of talk, by press


class DiplomacyParallelEnv(ParallelEnv):
    """All powers of one game; agents are named after them.

    Actions, masks, press and votes are as docs/environments.md says. `infos[agent]["action_mask"]`
    is one int8 array, or with press a dictionary of arrays. With teams, an agent stays until its
    team is eliminated, with `eliminated` for itself. With press, `wishing`, or `offering` and
    `answering`, tell the next step, and with binding=False `broken` (P,) bool has the powers with
    which it broke a deal. Observations then have `peace` (P,), `closed` (P, V), `bound` (V,), with
    `offers` press the `offers` (P, 5) to answer, and with binding=False `breaches` (P,). A vote for
    a draw has no effect in steps of talk, or from an eliminated power.

    Args:
        map: a map's name or file.
        arguments: see docs/environments.md; among them `press`: `mutual`, `offers`, or None: no
            talk; `binding`; and `break_cost`, the penalty of a power for each partner with which it
            breaks a deal in a phase.
    """

    metadata = METADATA | {"name": "diplomacy_v0", "is_parallelizable": True}

    def __init__(self, map: str | Path = "small", **arguments: Unpack[PowersOptions]):
        settings, rules = env_settings(PowersSettings, map, arguments, self)
        if rules.press not in (None, *STEPS):
            raise UserError(f"press: {quoted(rules.press)} is not one of {', '.join(STEPS)}")
        self._settings, self.render_mode = settings, settings.render_mode
        games = self._games = VectorGame(rules, 1, threads=1, auto_reset=False)
        self._reward = settings.reward_of(games.map)
        self.possible_agents = list(games.map.powers)
        self.agents: list[str] = []
        powers, provinces = games.num_powers, len(games.board.terrain)
        observed = forms.observation_space(games)
        action: spaces.Space = forms.province_space(games)
        self._press = Press(games)  # of the game that `reset` begins
        self._steps = STEPS[rules.press] if rules.press else ()  # of talk in a movement phase
        self._talk: list[str] = []  # those before the phase is played
        self._offers = make_offers([])  # to be answered
        if rules.press:
            observed["peace"] = spaces.MultiBinary(powers)
            observed["closed"] = spaces.MultiBinary([powers, provinces])
            observed["bound"] = spaces.MultiBinary(provinces)
            if not rules.binding:
                observed["breaches"] = spaces.Box(-1, 10_000, [powers], np.int32)
            parts: dict[str, spaces.Space] = {"orders": action}
            if rules.press == "offers":
                observed["offers"] = spaces.MultiDiscrete(
                    np.array([[2, *[provinces] * 4]] * powers)
                )
                parts["offer"] = forms.MaskedActions(offer_sizes(games))
            reply = "wish" if rules.press == "mutual" else "answer"
            parts[reply] = forms.MaskedActions([2] * powers)
            action = together = spaces.Dict(parts)
            if rules.draw_votes:
                together["vote"] = spaces.Discrete(2)
        elif rules.draw_votes:
            action = forms.with_vote(action)
        self._scale = forms.flat_scale(observed)
        observed = forms.flat_space(self._scale) if settings.flat else observed
        self.observation_spaces = {name: deepcopy(observed) for name in self.possible_agents}
        self.action_spaces = {name: deepcopy(action) for name in self.possible_agents}
        self._every_power = np.arange(powers, dtype=np.int8)
        self._mask = np.zeros((powers, len(games.vocabulary) - 1 + provinces), np.int8)
        self._random: np.random.Generator | None = None
        self._orders = games.new_orders()

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[agent]

    @property
    def game(self) -> Game:
        """The current position as a Game, to look at."""
        return Game.from_row(self._games, 0)

    def reset(
        self, seed: int | None = None, options: dict | None = None
    ) -> tuple[dict[str, Observed], dict[str, dict]]:
        """Start a new game; see pettingzoo.ParallelEnv.reset. There are no options."""
        if seed is not None or self._random is None:
            self._random, number = seeding.np_random(seed)
            self._games.seed_games(np.zeros(1, int), seeds_of([number]))
        seed_of_beginning = int(self._random.integers(2**31))
        random_beginnings(self._games, self._settings.most_warm_up_phases, seed_of_beginning)
        if self._steps:
            self._press = Press(self._games)
        self._offers = make_offers([])
        alive = alive_with_team(self._games.outcomes().alive, self._games.map.teams.of_power)[0]
        self.agents = [name for name, lives in zip(self.possible_agents, alive) if lives]
        self._begin_phase()
        return self._observe(self.agents), self._infos(self.agents, *self._nothing())

    def step(
        self, actions: dict[str, Action]
    ) -> tuple[
        dict[str, Observed], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict]
    ]:
        """Play one phase with the actions of all `agents`; see pettingzoo.ParallelEnv.step.

        The steps of talk play nothing and pay nothing. UserError: the game is over or none has
        begun; an action is missing or not in its space; strict, and an illegal order.
        """
        if not self.agents:
            raise NeedsReset("there is no game: call reset() first")
        for name in self.agents:
            if not self.action_spaces[name].contains(actions.get(name)):
                raise UserError(f"not in the action space of {name}: {quoted(actions.get(name))}")
        games, rules = self._games, self._games.rules
        shape = len(self.possible_agents), len(games.board.terrain)
        numbers, votes = np.zeros(shape, np.int64), np.zeros((1, shape[0]), bool)
        place = games.map.power_index
        for name in self.agents:
            action, power = actions[name], place[name]
            if isinstance(action, dict):
                votes[0, power], action = action.get("vote", 0), action["orders"]
            elif rules.draw_votes:
                votes[0, power], action = action[-1], action[:-1]
            numbers[power] = action
        if self._talk:
            self._say(self._talk.pop(0), actions)
            no = dict.fromkeys(self.agents, False)
            infos = self._infos(self.agents, *self._nothing())
            nothing = dict.fromkeys(self.agents, 0.0)
            return self._observe(self.agents), nothing, no, dict(no), infos
        illegal, broken = self._take(numbers), self._nothing()[1]
        if not rules.binding:
            broken = self._press.judge(self._orders)[0] > 0
        games.state.votes[:] = votes
        result = games.step(self._orders)
        victory_centers, pays_limit = games.board.victory_centers, rules.year_limit == "draw"
        paid = self._reward(reward_input(result, victory_centers, pays_limit))[0]
        paid = paid - rules.break_cost * broken.sum(1)
        limit = bool(result.ended[0] == YEAR_LIMIT)
        over = bool(result.ended[0] != RUNNING)
        agents = self.agents
        alive = alive_with_team(result.alive, games.map.teams.of_power)[0]
        truncated = {n: limit and bool(alive[place[n]]) for n in agents}
        terminated = {n: not truncated[n] and (over or not alive[place[n]]) for n in agents}
        rewards = {n: float(paid[place[n]]) for n in agents}
        self._begin_phase()
        observations, infos = self._observe(agents), self._infos(agents, illegal, broken)
        self.agents = [n for n in agents if not (terminated[n] or truncated[n])]
        return observations, rewards, terminated, truncated, infos

    def _nothing(self) -> tuple[np.ndarray, np.ndarray]:
        """No illegal orders, (P,) int64, and no broken peace, (P, P) bool."""
        powers = len(self.possible_agents)
        return np.zeros(powers, np.int64), np.zeros((powers, powers), bool)

    def _begin_phase(self) -> None:
        talks = self._steps and self._press.talking()[0]
        self._talk = list(self._steps) if talks else []

    def _say(self, step: str, actions: dict[str, Action]) -> None:
        """Take the actions of `agents` in a step of talk."""
        place = self._games.map.power_index
        powers = {place[name]: actions[name] for name in self.agents}
        if step == "offering":
            games, rows = self._games, []
            decisions = games.decisions()
            for power, action in powers.items():
                offer = np.asarray(action["offer"]).tolist()
                clauses = clauses_to_offer(games, decisions, power, offer)
                if clauses is not None:
                    rows.append((0, power, offer[2], clauses))
            self._offers = make_offers(rows)
            return
        choices = np.zeros((1, *[len(self.possible_agents)] * 2), bool)
        for power, action in powers.items():
            choices[0, power] = action["wish" if step == "wishing" else "answer"]
        if step == "wishing":
            self._press.propose(choices)
        else:
            offers, self._offers = self._offers, make_offers([])
            self._press.settle(offers, choices[0, offers.receiver, offers.sender])

    def render(self) -> np.ndarray | str | None:
        """Return the position as `render_mode` says; NeedsReset before `reset`."""
        if self._random is None:
            raise NeedsReset("there is no game: call reset() first")
        return render_game(self._games, 0, self.render_mode)

    def _take(self, numbers: np.ndarray) -> np.ndarray:
        """Write the orders of actions (P, V); return how many are illegal, (P,)."""
        games, powers = self._games, len(numbers)
        orders = np.full(numbers.shape, NONE, np.int32)
        illegal = np.zeros(powers, np.int64)
        strict, read = self._settings.strict, (numbers, self._mask, games.table.province_first)
        bad = games.call(take_province_actions, *read, strict, orders, illegal)
        if strict and bad != NONE:
            power, v = divmod(bad, numbers.shape[1])
            order = forms.province_action(games, int(numbers[power, v]), v)
            unit = f"{self.possible_agents[power]}, {forms.unit_text(games, 0, v)}"
            raise forms.illegal_order(games, 0, unit, order)
        self._orders[0] = orders.max(0)  # a province is ordered in by one power, NONE is -1
        return illegal

    def _observe(self, agents: list[str]) -> dict[str, Observed]:
        every, place = self._every_power, self._games.map.power_index
        parts = self._games.observe_powers(np.zeros(len(every), np.int32), every)._asdict()
        if self._steps:
            parts |= self._talk_parts()
        observations: dict[str, Observed] = {
            name: {part: array[place[name]] for part, array in parts.items()} for name in agents
        }
        if self._settings.flat:
            for name, parts in observations.items():
                observations[name] = forms.flattened(parts, 1, self._scale)[0]
        return observations

    def _talk_parts(self) -> dict[str, np.ndarray]:
        """Return each power's observation of deals and offers, (P, ...) each."""
        every, game = self._every_power.astype(np.int64), np.zeros(len(self._every_power), np.int64)
        view = self._press.observe(game, every)
        # Who is q to everybody: seats are counted from the observer on.
        seats = (every[None, :] - every[:, None]) % len(every)
        parts = {
            "peace": np.take_along_axis(view.peace, seats, 1).astype(np.int8),
            "closed": np.take_along_axis(view.closed, seats[:, :, None], 1).astype(np.int8),
            "bound": view.bound.astype(np.int8),
        }
        if self._games.rules.press == "offers":
            parts["offers"] = self._shown_offers()
        if not self._games.rules.binding:
            parts["breaches"] = self._press.breaches(game, every)
        return parts

    def _shown_offers(self) -> np.ndarray:
        """Return the offers to each power by each other, (P, P, 5): whether there is one, then as
        in `offer` province and destination of the sender's unit, and of the receiver's unit."""
        offers, powers = self._offers, len(self.possible_agents)
        shown = np.zeros((powers, powers, 5), np.int64)
        for o, (receiver, sender) in enumerate(zip(offers.receiver, offers.sender)):
            _, _, origin, order = np.array(clauses_of(offers, o)).T
            moves = np.stack([origin, goals(self._games, origin, order)], 1)
            shown[receiver, sender] = [1, *moves.ravel()]
        return shown

    def _infos(self, agents: list[str], illegal: np.ndarray, broken: np.ndarray) -> dict[str, dict]:
        """`illegal` (P,) counts orders; `broken` (P, P): the first power broke a deal with the
        second."""
        games = self._games
        every = decisions = games.decisions()
        step = self._talk[0] if self._talk else None
        if self._steps:
            decisions = self._press.bound(decisions)
        if step:
            decisions = decisions.take(np.zeros(0, np.int64))
        games.call(mask_decisions, games.board, games.table, decisions, self._mask)
        alive = games.outcomes().alive[0]
        infos: dict[str, dict] = {}
        for name in agents:
            p = games.map.power_index[name]
            orders = self._mask[p].copy()
            vote = np.array([1, alive[p]], np.int8)
            infos[name] = {"illegal_orders": int(illegal[p])}
            if games.map.teams.text:
                infos[name]["eliminated"] = not alive[p]
            if self._steps:
                mask: Observed = {"orders": orders} | self._talk_masks(p, step, every, alive)
                if self._games.rules.draw_votes:
                    mask |= {"vote": vote}
                infos[name] |= {s: s == step for s in self._steps}
            else:
                mask = np.append(orders, vote) if self._games.rules.draw_votes else orders
            if not self._games.rules.binding:
                infos[name]["broken"] = broken[p]
            infos[name]["action_mask"] = mask
        return infos

    def _talk_masks(
        self, power: int, step: str | None, decisions: Decisions, alive: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the masks of a power's talk in a step; an offer addressed to itself is no
        offer."""
        masks, open_to = {}, np.zeros(len(alive), bool)
        if step == "wishing":
            open_to = alive & alive[power]
            open_to[power] = False
        elif step == "answering":
            open_to[self._offers.sender[self._offers.receiver == power]] = True
        if self._games.rules.press == "offers":
            offer = offer_masks(self._games, decisions, power) * (step == "offering")
            parts = np.split(offer, np.cumsum(offer_sizes(self._games))[:-1])
            parts[2][power] = 1
            for part in parts:
                part[0] |= not part.any()  # something must be left to choose
            masks["offer"] = np.concatenate(parts)
        answers = np.stack([np.ones_like(open_to), open_to], 1, dtype=np.int8).ravel()
        return masks | {"wish" if self._games.rules.press == "mutual" else "answer": answers}


parallel_env = DiplomacyParallelEnv


def env(map: str | Path = "small", **settings: Unpack[PowersOptions]) -> AECEnv:
    """Return the same environment with PettingZoo's AEC interface."""
    return parallel_to_aec(parallel_env(map, **settings))
