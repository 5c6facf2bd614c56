"""The policy of a network as a player. The network itself is the script's; here are only arrays."""

import sys
from typing import Annotated, NamedTuple, Protocol

import numpy as np
from msgspec import Meta

from ..._suggest import player_name, quoted
from ...constants import SPRING_MOVEMENT
from ...errors import UserError
from ...games.decisions import Decisions, order_numbers
from ...games.draws import order_noise, phase_seeds, pick_shares, sample_noise, uniform
from ...games.observation import BoardViews
from ...games.order_lists import matched, order_places
from ...games.own_help import mended
from ...games.vector_game import VectorGame
from ...records import convert
from ...rules.state import Salt
from ...scoring.mixes import RewardMix, code_of, make_reward_mix
from ..protocols import Explanation, PlayerGroup

LIKELIEST = np.zeros(0, np.float32)  # in the place of noise
Temperature = Annotated[float, Meta(ge=0.01, le=100)]
OPENING_TEMPERATURE = np.float32(1.5)  # of a game's first year among people
DRAWN_OPENINGS, HOTTEST = 192, 5.0  # draws for the first phase, at temperatures from 1 on
OPENING_UNITS = 3  # with fewer, other openings are much worse
OPENINGS, LARGEST_SHARE = 3, 0.5  # likeliest of these, and the largest probability of one


class Network(Protocol):
    """What a script's network offers, in arrays; the shapes are those of `Decisions`."""

    vocabulary_hash: str
    num_powers: int

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return what `powers` (D,) see of games `rows` (D,)."""

    def legal_orders(self, games: VectorGame, decisions: Decisions) -> Decisions:
        """Return the decisions with only the orders that the policy chooses from.

        The slots are the same, but within a decision they may come in another order.
        """

    def act(
        self,
        obs: BoardViews,
        decisions: Decisions,
        noise: np.ndarray,
        temperature: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sample an order for each slot by Gumbel `noise` (N,); LIKELIEST: the likeliest.

        Returns positions in the slots' lists (S,), and of each decision (D,) the log-probability
        of all its orders and the value.
        """

    def explain(self, obs: BoardViews, decisions: Decisions) -> Explanation: ...

    def values(self, obs: BoardViews) -> np.ndarray:
        """Return the value (D,) float32 of boards for the powers that view them."""


class Objective(NamedTuple):
    reward: RewardMix  # paid in every step, with the weights of the end of training
    gamma: float  # discount from one own decision to the next
    pays_year_limit: bool  # False: a game at the limit is cut off, and pays nothing for its end

    @classmethod
    def of(cls, settings: dict) -> "Objective":
        """Return the objective of a checkpoint's settings.

        A reward of one's own is code, which the policy's file does not run: its module must be
        imported already.
        """
        wrong = ""
        for module in code_of(settings["reward"]) - sys.modules.keys():
            wrong = (
                f"no search runs a reward that a policy's file names: import {quoted(module, 60)} "
                "first, if you trust it"
            )
        if settings.get("teams"):
            teams = quoted(settings["teams"], 60)
            wrong = f"a policy of teams ({teams}) has values that no search can use"
        if wrong:
            raise UserError(wrong)
        reward = make_reward_mix(settings["reward"])
        return cls(reward, float(settings["gamma"]), settings["year_limit"] != "truncate")


class PolicyPlayer:
    """A policy as a player of matches.

    `settings` are those of its training, with the `temperature` at which it plays if that is not 1;
    none where nobody asks what its values mean. One that is `careful`, among people, gives no order
    that cannot help, and does not open all games alike.
    """

    careful = reads_history = False
    group: PlayerGroup | None = None  # with which it is asked
    number = 0  # in that group

    def __init__(
        self, agent: Network, name: str, greedy: bool = False, settings: dict | None = None
    ):
        self.agent, self.name, self.greedy, self.settings = agent, name, greedy, settings or {}
        temperature = self.settings.get("temperature", 1.0)
        self.temperature = np.float32(convert(Temperature, temperature, f"{name}: temperature"))

    __repr__ = player_name

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        own = self.legal_orders(games, decisions)
        obs = self.observe(games, decisions.game, decisions.power)
        opens = self.careful & (games.state.year[decisions.game] == games.board.first_year)
        begins = opens & (games.state.phase[decisions.game] == SPRING_MOVEMENT)
        large = np.diff(decisions.slot_start) >= OPENING_UNITS
        if decisions.count and (begins & large).all() and not self.greedy:
            return mended(games, decisions, matched(decisions, own, self._opening(games, own)))
        temperature = self.temperature * np.where(opens, OPENING_TEMPERATURE, np.float32(1))
        noise = LIKELIEST if self.greedy else sample_noise(games, own)
        chosen, _, _ = self.agent.act(obs, own, noise, temperature)
        numbers = matched(decisions, own, order_numbers(own, chosen))
        return mended(games, decisions, numbers) if self.careful else numbers

    def _opening(self, games: VectorGame, own: Decisions) -> np.ndarray:
        """Draw orders (S,) among each decision's likeliest, as evenly as LARGEST_SHARE demands."""
        drawn = own.take(np.repeat(np.arange(own.count), DRAWN_OPENINGS))
        each = self.temperature * np.linspace(1, HOTTEST, DRAWN_OPENINGS, dtype=np.float32)
        temperature = np.tile(each, own.count)
        obs = self.observe(games, drawn.game, drawn.power)
        seeds = phase_seeds(games, own.game, own.power, Salt.OPENING, DRAWN_OPENINGS).ravel()
        chosen, logprob, _ = self.agent.act(obs, drawn, order_noise(drawn, seeds), temperature)
        numbers, parts = order_numbers(drawn, chosen), []
        orders = drawn.by_province(numbers, len(games.board.terrain))
        places = uniform(games, own.game, own.power, Salt.OPENING_CHOICE)[:, 0]
        for d, place in enumerate(places):
            part = slice(d * DRAWN_OPENINGS, (d + 1) * DRAWN_OPENINGS)
            _, first = np.unique(orders[part], axis=0, return_index=True)
            first = first[np.argsort(-logprob[part][first])][:OPENINGS]
            for evenness in np.geomspace(1, 1000, 50):
                shares = np.exp((logprob[part][first] - logprob[part].max()) / evenness)
                shares /= shares.sum()
                if shares[0] <= LARGEST_SHARE:
                    break
            row = part.start + first[pick_shares(shares, place)]
            parts.append(numbers[slice(*drawn.slot_start[row : row + 2])])
        return np.concatenate(parts)

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        own = self.legal_orders(games, decisions)
        obs = self.observe(games, decisions.game, decisions.power)
        explanation = self.agent.explain(obs, own)
        probability = np.zeros(len(decisions.order), np.float32)
        probability[order_places(decisions, own)] = explanation.probability
        return explanation._replace(probability=probability)

    def legal_orders(self, games: VectorGame, decisions: Decisions) -> Decisions:
        self.check_map(games)
        return self.agent.legal_orders(games, decisions)

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        self.check_map(games)
        return self.agent.observe(games, rows, powers)

    def check_map(self, games: VectorGame) -> None:
        if games.vocabulary.hash != self.agent.vocabulary_hash:
            where = f"another map or order vocabulary than {games.map.name}"
            raise UserError(f"{self.name} was trained on {where}")
