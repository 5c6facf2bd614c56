"""Negotiators: what talks for a power before it orders, and how the talk of a phase is held."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..press.deals import Deals, Offers, join_offers
from ..press.table import Press
from .protocols import Player


class Talk(NamedTuple):
    """Who is asked to talk: n powers, each of one game in a movement phase."""

    games: VectorGame
    decisions: Decisions  # of all games, with all legal orders
    game: np.ndarray  # (n,) int64
    power: np.ndarray  # (n,) int64
    known: Deals  # of n games: what each of them knows of the deals made so far


@runtime_checkable
class Negotiator(Player, Protocol):
    """A player that talks, too; `isinstance` tells whether one does. Others stay silent."""

    def wishes(self, talk: Talk) -> np.ndarray:
        """Return with whom each power wishes peace, (n, P) bool; for `mutual` press."""

    def offers(self, talk: Talk) -> Offers:
        """Return at most one offer of each power, whatever it is in `offers` press."""

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Return whether each offer is agreed to, (n,) bool, by the power that stands in `talk`."""


def negotiate(
    press: Press, decisions: Decisions, players: Sequence[Player], seat_player: np.ndarray
) -> None:
    """Hold the talk of this phase in all games.

    Args:
        press: of the games.
        decisions: all pending decisions of the games.
        players: those that are no negotiators say nothing.
        seat_player: (E, P) integers, which of `players` plays each power.
    """
    games, talking = press.games, press.talking()
    seats = np.zeros(seat_player.shape, bool)
    seats[decisions.game, decisions.power] = True  # who has a unit to order
    seats &= talking[:, None]
    speakers = [
        (player, *np.nonzero(seats & (seat_player == number)))
        for number, player in enumerate(players)
        if isinstance(player, Negotiator)
    ]
    speakers = [speaker for speaker in speakers if len(speaker[1])]
    if not speakers:
        return

    def talk(game: np.ndarray, power: np.ndarray) -> Talk:
        return Talk(games, decisions, game, power, press.known(game, power))

    if press.protocol == "mutual":
        wish = np.zeros((*seat_player.shape, games.num_powers), bool)
        for player, game, power in speakers:
            wish[game, power] = player.wishes(talk(game, power))
        press.propose(wish)
        return
    for _ in range(press.rounds):
        offers = join_offers([player.offers(talk(game, power)) for player, game, power in speakers])
        if not offers.count:
            return
        receiver = offers.receiver.astype(np.int64)
        game = offers.game.astype(np.int64)
        agreed = np.zeros(offers.count, bool)
        for number, player in enumerate(players):
            rows = np.flatnonzero((seat_player[game, receiver] == number) & seats[game, receiver])
            if len(rows) and isinstance(player, Negotiator):
                agreed[rows] = player.answers(talk(game[rows], receiver[rows]), offers.take(rows))
        press.settle(offers, agreed, decisions)


class Silent:
    """Offers nothing and agrees to nothing; gives orders as another player does.

    Args:
        player: gives the orders.
        name: shown in results.
    """

    def __init__(self, player: Player, name: str):
        if isinstance(player, Negotiator):
            raise UserError(f"{name!r:.100}: a player that talks cannot be given another voice")
        self.player, self.name = player, name

    @property
    def greedy(self) -> bool:
        """Whether the player gives its likeliest orders."""
        return bool(getattr(self.player, "greedy", False))

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return an order number for each slot, (S,) int32."""
        return self.player.act(games, decisions)

    def begin(self, games: VectorGame, rows: np.ndarray) -> None:
        """Let a player that remembers forget what was in `rows`."""
        begin = getattr(self.player, "begin", None)
        if begin is not None:
            begin(games, rows)

    def wishes(self, talk: Talk) -> np.ndarray:
        """Return with whom each power wishes peace, (n, P) bool: nobody."""
        return np.zeros((len(talk.game), talk.games.num_powers), bool)

    def offers(self, talk: Talk) -> Offers:
        """Return no offers."""
        return join_offers([])

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Return whether each offer is agreed to, (n,) bool: none."""
        return np.zeros(len(talk.game), bool)
