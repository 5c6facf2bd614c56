"""The talk in a game that people play: offers and answers of players and people."""

import contextlib
from collections.abc import Mapping, Sequence

import numpy as np

from ..constants import phase_kind
from ..errors import UserError
from ..players.advice import agrees, asked, next_offer, refusal
from ..players.protocols import Player
from ..press.negotiators.negotiation import Negotiator, spoken
from ..press.press import PEACE_ALONE
from ..textgame.game import Game


def players_talk(game: Game, players: Mapping[str, Player], seed: int) -> None:
    if phase_kind(game.phase) != "movement":
        return
    speakers = {
        power: player
        for power, player in players.items()
        if isinstance(player, Negotiator) and game.units[power]
    }
    if game.rules.press == "mutual":
        for power, player in speakers.items():
            wish = player.wishes(asked(game, power, player, seed))[0]
            for q in np.flatnonzero(wish):
                with contextlib.suppress(UserError):  # to oneself, or to who is out
                    game.put(power, game.powers[q], PEACE_ALONE)
        return
    first = seed % max(1, len(speakers))
    names = [*list(speakers)[first:], *list(speakers)[:first]]  # nobody is always first
    for _ in range(game.rules.press_rounds or 0):
        for power in names:
            offer = next_offer(game, power, speakers[power], seed)
            if offer is None:
                continue
            with contextlib.suppress(UserError):  # a player of the user's own may ask for anything
                number, name = game.put(power, *offer), offer[0]
                _say(game, power, name, speakers[power])
                if name in players:
                    try:
                        players_answer(game, name, number, players[name], seed)
                    except UserError:  # agreed to in vain
                        game.decline(name, number)


def players_answer(game: Game, receiver: str, number: int, player: Player, seed: int) -> None:
    offer = game.said()[number - 1]
    if offer.state != "open":
        return
    if agrees(game, receiver, number, player, seed):
        game.accept(receiver, number)
    else:
        game.decline(receiver, number)
    _say(game, receiver, game.powers[offer.sender], player)


def _say(game: Game, power: str, other: str, player: Player) -> None:
    for text in filter(None, spoken(player, 1)):
        game.send(power, other, text)


def make_offer(
    game: Game,
    power: str,
    receiver: str | Sequence[str],
    terms: Mapping,
    players: Mapping[str, Player],
    seed: int,
) -> dict[int, str]:
    """Offer a deal for a person; let players that get it answer.

    Return the offer's number and why a player declined it, if one did.
    """
    number = game.offer(power, receiver, **terms)
    names = [game.powers[q] for q in game.said()[number - 1].receivers]
    for name in filter(players.__contains__, names):
        try:
            players_answer(game, name, number, players[name], seed)
            if game.said()[number - 1].state == "declined":
                return {number: refusal(game, name, number, players[name], seed)}
        except UserError as error:
            raise UserError(f"{name} agrees, but there is no deal: {_reason(error)}") from None
        except Exception as error:  # a checkpoint's script is the user's own
            raise UserError(" ".join(f"{name} could not answer: {error}".split())[:300]) from error
    return {}


def answer_offer(game: Game, power: str, number: int, agreed: bool) -> None:
    """Accept or decline an offer for a person; the same answer again changes nothing.

    `number` counts the power's own offers: one among all would tell how much others talk.
    """
    offers, wanted, reason = game.said(power), "deal" if agreed else "declined", "is not there"
    if 1 <= number <= len(offers):
        offer = offers[number - 1]
        own = game.powers[offer.sender] == power
        has_agreed = agreed and game.map.power_index[power] in offer.agreed
        if not own and (offer.state == wanted or has_agreed):
            return
        reason = f"has been answered already: {offer.state}" if offer.state != "open" else ""
        reason = f"is your own; {game.powers[offer.receiver]} answers it" if own else reason
    if reason:
        raise UserError(f"offer {number} {reason}")
    try:
        (game.accept if agreed else game.decline)(power, offer.number)
    except UserError as error:
        raise UserError(f"offer {number} cannot be confirmed: {_reason(error)}") from None


def broken_orders(game: Game) -> list[str]:
    breaking = []
    for power, texts in game.orders.items():
        try:
            game.copy().submit(power, texts)
        except UserError:
            breaking.append(power)
    return breaking


def _reason(error: UserError) -> str:
    """Return why an offer cannot be confirmed, without its number among all offers."""
    return str(error).partition(": ")[2] or str(error)
