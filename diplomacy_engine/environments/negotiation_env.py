"""The DeepDip thesis' negotiation environment, on every map (docs/other_libraries.md): one offer
before each movement phase, a move of a unit of its own for a move of another power's."""

from pathlib import Path
from typing import Unpack

import gymnasium
import numpy as np
from gymnasium.spaces import MultiDiscrete

from .._suggest import quoted
from ..constants import AGREED, NONE, RUNNING, SOLO
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import StepResult, VectorGame
from ..games.votes import bot_votes
from ..players.asking import orders_of, reads_history
from ..players.loading import load_player
from ..press.deals import OfferResult, make_offers
from ..press.negotiators.negotiation import Listener, Negotiator, honest_seats, talk_of
from ..press.press import Press
from ..scoring.mixes import make_steady_mix
from ..scoring.rewards import reward_input
from ..textgame.game import Game
from .agent_games import seeds_of
from .forms import MaskedActions, with_vote, with_vote_open
from .gymnasium_env import METADATA, NeedsReset
from .offers import clauses_to_offer, offer_masks, offer_sizes
from .settings import TalkOptions, TalkSettings, env_settings

VALID = 5.0  # paid for a valid offer, and taken for one that is not, with the reward `valid`


class NegotiationEnv(gymnasium.Env):
    """One power of one game that talks; `step` makes an offer and plays to the next movement phase.

    An offer is valid if it is to another living power, and both units can move so. `action_masks`
    leaves out values that no valid offer has. A valid one is put to the other power; agreed to and
    confirmed it binds both. `info` has `action_mask`, `valid`, `agreed`, `power` (its index) and
    `broken`, whether the other power broke the deal; it may with `binding=False`. Spaces and
    arguments: docs/other_libraries.md.
    """

    metadata = METADATA | {"render_modes": []}

    def __init__(self, map: str | Path = "standard", **arguments: Unpack[TalkOptions]):
        settings, rules = env_settings(TalkSettings, map, arguments, self)
        self._reward = None if settings.reward == "valid" else make_steady_mix(settings.reward)
        game_map = rules.map
        self._seat = None if settings.power is None else game_map.power_number(settings.power)
        self._partner = load_player(f"{settings.answers}+{settings.orders_by}", game_map=game_map)
        keeps = reads_history(self._partner)
        self._games = VectorGame(rules, 1, threads=1, auto_reset=False, keep_history=keeps)
        powers, units = self._games.num_powers, len(game_map.unit_powers) + 1
        self.observation_space = MultiDiscrete([powers + 1, 2, units] * len(game_map.provinces))
        action = MaskedActions(offer_sizes(self._games))
        self.action_space = with_vote(action) if rules.draw_votes else action
        self._press = Press(self._games)
        self._power = 0
        self._seeded = self._running = False

    @property
    def game(self) -> Game:
        return Game.from_row(self._games, 0)

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Start a new game; see gymnasium.Env.reset. There are no options."""
        super().reset(seed=seed)
        row = np.zeros(1, np.int64)
        if seed is not None or not self._seeded:
            seeds = self.np_random.integers(0, 2**64, 1, np.uint64)
            self._games.row_seed[:] = seeds if seed is None else seeds_of([seed])
        self._games.reset(row)
        self._seeded = self._running = True
        self._press = Press(self._games)
        powers = self._games.num_powers
        self._power = int(self.np_random.integers(powers)) if self._seat is None else self._seat
        return self._observation(), self._info(False, False, False)

    def action_masks(self) -> np.ndarray:
        """Return which values of each number are in a valid offer, all in one (sum of nvec,) int8;
        also the name by which sb3-contrib's MaskablePPO asks."""
        masks = offer_masks(self._games, self._games.decisions(), self._power)
        return with_vote_open(masks[None])[0] if self._games.rules.draw_votes else masks

    def _info(self, valid: bool, agreed: bool, broken: bool) -> dict:
        about = {"valid": valid, "agreed": agreed, "broken": broken, "power": self._power}
        return about | {"action_mask": self.action_masks()}

    def step(self, action: object) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Make an offer, and play on to the next movement phase; see gymnasium.Env.step.

        NeedsReset: the game is over, or none has begun. UserError: the action is of the wrong form.
        """
        if not self._running:
            raise NeedsReset("there is no game: call reset() first")
        if not self.action_space.contains(action):
            raise UserError(f"not in the action space: {quoted(action)}")
        games, press = self._games, self._press
        decisions, numbers = games.decisions(), np.asarray(action).tolist()
        if games.rules.draw_votes:
            games.state.votes[:] = bot_votes(games, games.rules.draws_after or 0)
            games.state.votes[0, self._power] = numbers.pop() == 1
        valid, agreed = self._speak(decisions, numbers)
        honest = honest_seats([self._partner], np.zeros((1, games.num_powers), int))
        honest[0, self._power] = True
        bound = press.bound(decisions, honest)
        orders = orders_of(games, self._partner, bound)
        press.correct(orders, bound, honest)
        broken = bool(press.judge(orders, decisions)[0, :, self._power].any())
        paid = self._paid(games.step(orders))
        while games.state.end[0] == RUNNING and not press.talking()[0] and self._alive():
            paid += self._paid(games.step(orders_of(games, self._partner)))
        end = int(games.state.end[0])
        terminated = end in (SOLO, AGREED) or not self._alive()
        truncated = not terminated and end != RUNNING
        self._running = not (terminated or truncated)
        if self._reward is None:
            paid = VALID if valid else -VALID
        info = self._info(valid, agreed, broken)
        return self._observation(), paid, terminated, truncated, info

    def _alive(self) -> bool:
        return bool(self._games.outcomes().alive[0, self._power])

    def _paid(self, result: StepResult) -> float:
        if self._reward is None:
            return 0.0
        position = reward_input(result, self._games.board.victory_centers)
        return float(self._reward(position)[0, self._power])

    def _speak(self, decisions: Decisions, numbers: list[int]) -> tuple[bool, bool]:
        clauses, other = clauses_to_offer(self._games, decisions, self._power, numbers), numbers[2]
        if clauses is None or not isinstance(self._partner, Negotiator):
            return False, False
        offers = make_offers([(0, self._power, other, clauses)])
        game, power = np.zeros(1, np.int64), np.array([other])
        agreed = self._partner.answers(talk_of(self._press, decisions, game, power), offers)
        confirmed = bool(self._press.settle(offers, agreed, decisions)[0] == OfferResult.CONFIRMED)
        if isinstance(self._partner, Listener):
            self._partner.hear(talk_of(self._press, decisions, game, power))
        return True, confirmed

    def _observation(self) -> np.ndarray:
        board, state = self._games.board, self._games.state
        obs = np.zeros((len(board.terrain), 3), np.int64)
        obs[board.center_province, 0] = 1 + state.center_owner[0]
        obs[:, 1] = board.province_center != NONE
        obs[:, 2] = 1 + state.unit_power[0]
        return obs.ravel()
