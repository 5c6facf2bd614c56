"""Policies that were trained to talk, as players: they talk in matches as they did in training."""

from typing import Protocol

import numpy as np

from ...constants import NONE
from ...games.draws import uniform
from ...games.observation import BoardViews
from ...games.vector_game import VectorGame
from ...players.policy.player import Network, PolicyPlayer
from ...rules.state import Salt
from ..deals import Offers, join_offers
from ..talk_views import SLOTS, OfferViews, TalkViews, Template, WithTalk, silence, who_can_answer
from .negotiation import Talk, best_of_pairs
from .neighbors import PeaceNegotiator
from .templates import DealChooser, deal_offers, possible_deals, read_offers


class TalkingNetwork(Network, Protocol):
    """What a script's network offers that talks; the shapes are those of the script."""

    def sample_talk(self, obs: BoardViews, *inputs: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Return powers' talk, sampled by noise in (0, 1), the last of `inputs`."""

    def sample_keeps(self, obs: BoardViews, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return whether powers keep their deals, 1 or 0, and the log-probability; (D,) each. Not
        asked where deals are `binding`."""

    binding: bool


def talk_noise(
    games: VectorGame, rows: np.ndarray, powers: np.ndarray, salt: int, count: int, first: int = 0
) -> np.ndarray:
    """Return (n, count) float32 in (0, 1), numbers `first` and on, by which policies talk."""
    return uniform(games, rows, powers, salt, count, first).astype(np.float32)


class WishingPlayer(PeaceNegotiator, PolicyPlayer):
    """A policy that wishes peace as it did in training. Where deals are offered, it offers and
    accepts peace alone, by the same wishes."""

    agent: TalkingNetwork
    views: type[WithTalk] = TalkViews
    breaks_deals: bool | np.ndarray = False
    _heard: tuple | None = None

    def wishes(self, talk: Talk) -> np.ndarray:
        others, noise = self._others(talk), self._noise(talk, Salt.WISHES, talk.games.num_powers)
        return self.agent.sample_talk(self._asked(talk), others, noise)[0] == 1

    def _noise(self, talk: Talk, salt: int, count: int, first: int = 0) -> np.ndarray:
        if self.greedy:
            return np.full((len(talk.game), count), 0.5, np.float32)
        return talk_noise(talk.games, talk.game, talk.power, salt, count, first)

    def _asked(self, talk: Talk) -> WithTalk:
        obs = self.observe(talk.games, talk.game, talk.power)
        return obs if talk.breaches is None else obs._replace(breaches=talk.breaches)

    @staticmethod
    def _others(talk: Talk) -> np.ndarray:
        shape = talk.games.num_games, talk.games.num_powers
        others = who_can_answer(talk.decisions, shape)[talk.game]
        return others & (np.arange(shape[1]) != talk.power[:, None])

    def hear(self, talk: Talk) -> None:
        state, n = talk.games.state, np.arange(len(talk.game))
        deals = np.zeros((2, talk.games.num_games, *[talk.games.num_powers] * 2), bool)
        for memory, news in zip(deals, (talk.known.peace, talk.known.dealt)):
            memory[talk.game, talk.power] = news[n, talk.power]
        breaches = np.full(deals.shape[1:], NONE, np.int32)
        if talk.breaches is not None:
            breaches[talk.game, talk.power] = talk.breaches
        if self._heard is not None and self._heard[0] is talk.games:
            _, seed, turn, before, broken = self._heard
            now = ((seed == state.seed) & (turn == state.turn))[:, None, None]
            deals |= before & now  # of other seats, where it is asked for each
            breaches = np.where(now, np.maximum(breaches, broken), breaches)
        self._heard = talk.games, state.seed.copy(), state.turn.copy(), deals, breaches
        if not self.agent.binding:
            breaks = np.asarray(self.breaks_deals)
            if breaks.shape != deals.shape[1:3]:
                breaks = np.zeros(deals.shape[1:3], bool)
            obs = self.observe(talk.games, talk.game, talk.power)
            keeps = self.agent.sample_keeps(obs, self._noise(talk, Salt.KEEPS, 1)[:, 0])[0]
            breaks[talk.game, talk.power] = keeps == 0
            self.breaks_deals = breaks

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> WithTalk:
        views = super().observe(games, rows, powers)
        memory = {}
        if self._heard is not None and self._heard[0] is games:
            _, seed, turn, deals, breaches = self._heard
            now = (seed[rows] == games.state.seed[rows]) & (turn[rows] == games.state.turn[rows])
            memory["peace"], memory["dealt"] = deals[:, rows, powers] & now[:, None]
            memory["breaches"] = np.where(now[:, None], breaches[rows, powers], NONE)
        return self.views.of(views, games.num_powers, **memory)


class OfferingPlayer(DealChooser, WishingPlayer):
    """A policy that offers and answers as it did in training. Where there are wishes alone, it
    wishes the peace that it would agree to."""

    views = OfferViews

    def _draw(self, talk: Talk, salt: int, first: int = 0, **arguments: np.ndarray) -> tuple:
        n, powers = len(talk.game), talk.games.num_powers
        silent = silence(OfferViews, n, powers)
        noise = None if self.greedy else self._noise(talk, salt, 1 + powers, first)
        names = "able", "places", "heard", "heard_places"
        arguments = {name: arguments.get(name, silent[name]) for name in names}
        for name in ("heard", "heard_places"):
            arguments[name] = arguments[name][:, :, None]
        return self.agent.sample_talk(self._asked(talk), *arguments.values(), noise)

    def _offers_to(self, talk: Talk, partners: np.ndarray) -> Offers:
        rows, row = np.unique(talk.game, return_inverse=True)
        possible = possible_deals(talk.games, talk.decisions, rows)
        free = ~talk.known.dealt[np.arange(len(row)), talk.power]
        able, places = (part[row, talk.power] for part in (possible.able, possible.places))
        parts = []
        for number, group in enumerate(partners):
            first, own = number * (1 + talk.games.num_powers), able & (free & group)[..., None]
            choice = self._draw(talk, Salt.OFFERS, first, able=own, places=places)[0]
            offering = np.flatnonzero(choice != NONE)
            receiver, slot = np.divmod(choice[offering].astype(np.int64), SLOTS)
            seats = row[offering], talk.game[offering], talk.power[offering]
            parts.append(deal_offers(possible, *seats, receiver, slot))
        return join_offers(parts)

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        n, powers = np.arange(len(talk.game)), talk.games.num_powers
        silent = silence(OfferViews, len(n), powers)
        template, places = read_offers(talk.games, offers)
        heard, heard_places = silent["heard"], silent["heard_places"]
        heard[n, offers.sender], heard_places[n, offers.sender] = template, places
        agreed = self._draw(talk, Salt.ANSWERS, heard=heard, heard_places=heard_places)[2]
        return agreed[n, offers.sender, 0]

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        own = offers.sender == talk.power
        return best_of_pairs(talk, offers, (own | self.answers(talk, offers)).astype(float))

    def wishes(self, talk: Talk) -> np.ndarray:
        heard = np.where(self._others(talk), Template.PEACE, NONE)
        return self._draw(talk, Salt.WISHES, heard=heard)[2][..., 0]
