"""Asking a player about the talk of one `Game`: what it offers, and whether it agrees."""

import numpy as np

from ..press.daide import ClauseRow
from ..press.deals import make_offers
from ..press.game import Game
from .advice import seed_player
from .negotiation import Negotiator, Talk
from .protocols import Player


def next_offer(
    game: Game, power: str, player: Negotiator, seed: int
) -> tuple[str, tuple[ClauseRow, ...]] | None:
    """Return what a player would offer now, and to which power.

    None if that is nothing, or what it has offered in this phase already: it waits for an answer,
    or got one.

    Args:
        game: with press of the kind `offers`.
        power: has a unit.
        player: of the power.
        seed: 0 .. 2^64 - 1, of the player's draws.
    """
    found = player.offers(asked(game, power, player, seed))
    if not found.count:
        return None
    rows = zip(*(array[slice(*found.clause_start[:2])] for array in found[4:]))
    clauses = tuple(tuple(map(int, row)) for row in rows)
    offer = game.map.power_index[power], int(found.receiver[0]), clauses
    if offer in [(o.sender, o.receiver, o.clauses) for o in game.said(power)]:
        return None
    return game.powers[offer[1]], clauses


def agrees(game: Game, number: int, player: Player, seed: int) -> bool:
    """Tell whether a player agrees to an offer of this phase that it got.

    Whether the deal can be confirmed beside those that there are is another question.
    """
    offer = game.said()[number - 1]
    receiver = game.powers[offer.receiver]
    if not (isinstance(player, Negotiator) and game.units[receiver] and game.press == "offers"):
        return False
    offers = make_offers([(0, offer.sender, offer.receiver, offer.clauses)])
    return bool(player.answers(asked(game, receiver, player, seed), offers)[0])


def refusal(game: Game, number: int, player: Player, seed: int) -> str:
    """Return why a player has declined an offer of this phase that it got; nothing if unknown.

    A negotiator that can tell has a method `refusal`, which is asked as `answers` is.
    """
    if not isinstance(player, Negotiator):
        return "it makes no deals"
    offer, tell = game.said()[number - 1], getattr(player, "refusal", None)
    if tell is None:
        return ""
    receiver = game.powers[offer.receiver]
    offers = make_offers([(0, offer.sender, offer.receiver, offer.clauses)])
    return tell(asked(game, receiver, player, seed), offers)


def asked(game: Game, power: str, player: Player, seed: int) -> Talk:
    """Return the talk in which one power is asked; its player draws from `seed`."""
    seed_player(player, seed)
    copy = game.copy().vector_game  # seeds of its own would end the deals of the game itself
    copy.seed_games(np.zeros(1, int), np.array([seed], np.uint64))
    row, seat = np.zeros(1, np.int64), np.array([game.map.power_index[power]])
    known = game.table.known(row, seat)
    return Talk(copy, game.vector_game.decisions(), row, seat, known)
