"""Negotiators, which talk for a power before it orders, and the protocol of a phase's talk."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..._suggest import player_name
from ...constants import NONE
from ...errors import UserError
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...players.asking import reads_history
from ...players.protocols import Player
from ..deals import Deals, Offers, join_offers
from ..press import Press


class Talk(NamedTuple):
    """A call for talk: n powers, each of one game in a movement phase."""

    games: VectorGame
    decisions: Decisions  # of all games, with all legal orders
    game: np.ndarray  # (n,) int64
    power: np.ndarray  # (n,) int64
    known: Deals  # of n games: what each of them knows of the deals made so far
    # (n, P) int32, years since each power last broke a deal with it, NONE: never; None: no breaches
    breaches: np.ndarray | None = None
    binding: bool = True  # whether deals must be kept

    def take(self, rows: np.ndarray | list) -> "Talk":
        deals = Deals._make([array[rows] for array in self.known])
        breaches = None if self.breaches is None else self.breaches[rows]
        seats = self.game[rows], self.power[rows]
        return Talk(self.games, self.decisions, *seats, deals, breaches, self.binding)


@runtime_checkable
class Negotiator(Player, Protocol):
    """A player that also talks, by `isinstance`; other players stay silent."""

    def wishes(self, talk: Talk) -> np.ndarray:
        """Return each power's wishes for peace, (n, P) bool; for `mutual` press."""

    def offers(self, talk: Talk) -> Offers:
        """Return at most one offer of each power; for `offers` press."""

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Return whether the power in `talk` accepts each offer, (n,) bool."""

    def proposals(self, talk: Talk) -> Offers:
        """Return at most one offer of each power to each other one; for `propose-choose` press."""

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Return which offers are picked, (n,) bool; each of a pair is asked about once a side."""


@runtime_checkable
class Listener(Negotiator, Protocol):
    """A negotiator that gets the deals of a phase before it orders."""

    def hear(self, talk: Talk) -> None: ...


def spoken(player: Player, count: int) -> list[str]:
    """Return a player's words with its last offers or answers, its `said`, (count,) texts."""
    sentences = list(getattr(player, "said", ()))
    return sentences if len(sentences) == count else [""] * count


def honest_seats(players: Sequence[Player], seat_player: np.ndarray) -> np.ndarray:
    """Return the powers (E, P) that keep deals that may be broken: all but those for which their
    player's attribute `breaks_deals` is true, for all or by power (E, P)."""
    honest = np.ones(seat_player.shape, bool)
    for number, player in enumerate(players):
        breaks = np.broadcast_to(getattr(player, "breaks_deals", False), honest.shape)
        honest &= ~breaks | (seat_player != number)
    return honest


def talk_of(press: Press, decisions: Decisions, game: np.ndarray, power: np.ndarray) -> Talk:
    deals, breaches = press.known(game, power), press.breaches(game, power)
    return Talk(press.games, decisions, game, power, deals, breaches, press.binding)


def negotiate(
    press: Press, decisions: Decisions, players: Sequence[Player], seat_player: np.ndarray
) -> None:
    """Hold the talk of a phase in all games; players of `seat_player` without talk are silent."""
    games, talking = press.games, press.talking()
    seats = np.zeros(seat_player.shape, bool)
    seats[decisions.game, decisions.power] = True  # who has a unit to order
    seats &= talking[:, None]
    speakers = [
        (player, game, power)
        for number, player in enumerate(players)
        if isinstance(player, Negotiator)
        for game, power in [np.nonzero(seats & (seat_player == number))]
        if len(game)
    ]
    if not speakers:
        return

    def talk(game: np.ndarray, power: np.ndarray) -> Talk:
        return talk_of(press, decisions, game, power)

    if press.protocol == "mutual":
        wish = np.zeros((*seat_player.shape, games.num_powers), bool)
        for player, game, power in speakers:
            wish[game, power] = player.wishes(talk(game, power))
        press.propose(wish)
    # The receiver of an offer answers; where both sides choose, each picks one of a pair's offers.
    choosing = press.protocol == "propose-choose"
    for _ in range(press.rounds if press.protocol != "mutual" else 0):
        parts, words = [], []
        for player, game, power in speakers:
            parts.append((player.proposals if choosing else player.offers)(talk(game, power)))
            words += spoken(player, parts[-1].count)
        offers = join_offers(parts)
        if not offers.count:
            break
        sides = [offers.sender, offers.receiver] if choosing else [offers.receiver]
        power = np.concatenate(sides).astype(np.int64)
        game = np.tile(offers.game.astype(np.int64), len(sides))
        number_of = np.tile(np.arange(offers.count), len(sides))
        agreed, answers = np.zeros((len(sides), offers.count), bool), [""] * offers.count
        for number, player in enumerate(players):
            rows = np.flatnonzero(seats[game, power] & (seat_player[game, power] == number))
            if len(rows) and isinstance(player, Negotiator):
                answer = player.choices if choosing else player.answers
                questions = offers.take(number_of[rows])
                agreed.flat[rows] = answer(talk(game[rows], power[rows]), questions)
                for row, text in zip(number_of[rows], spoken(player, len(rows))):
                    answers[row] = text or answers[row]
        press.settle(offers, agreed[0] & agreed[-1], decisions, (words, answers))
    for player, game, power in speakers:
        if isinstance(player, Listener):
            player.hear(talk(game, power))


def partner_of(talk: Talk, offers: Offers) -> np.ndarray:
    return np.where(offers.sender == talk.power, offers.receiver, offers.sender).astype(np.int64)


def best_of_pairs(talk: Talk, offers: Offers, score: np.ndarray) -> np.ndarray:
    """Return the offers (n,) bool with the greatest score above 0 of each power and partner. Of
    equals that of the first sender, so that both sides pick the same."""
    pairs = np.stack([talk.game, talk.power, partner_of(talk, offers)])
    order = np.lexsort((offers.sender, -score, *pairs[::-1]))
    picked = np.zeros(len(order), bool)
    picked[order] = (np.diff(pairs[:, order], prepend=NONE) != 0).any(0)  # the first of each pair
    return picked & (score > 0)


class Silent:
    """Offers nothing and agrees to nothing; gives orders as another player does."""

    def __init__(self, player: Player, name: str):
        if isinstance(player, Negotiator):
            raise UserError(f"{name!r:.100}: a player that talks cannot be given another voice")
        self.player, self.name = player, name

    __repr__ = player_name

    @property
    def greedy(self) -> bool:
        return bool(getattr(self.player, "greedy", False))

    @property
    def reads_history(self) -> bool:
        return reads_history(self.player)

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        return self.player.act(games, decisions)

    def wishes(self, talk: Talk) -> np.ndarray:
        return np.zeros((len(talk.game), talk.games.num_powers), bool)

    def offers(self, talk: Talk) -> Offers:
        return join_offers([])

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        return np.zeros(len(talk.game), bool)

    def refusal(self, talk: Talk, offers: Offers) -> str:
        return "it makes no deals"

    proposals, choices = offers, answers
