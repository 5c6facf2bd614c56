"""Talk with powers on other servers: offers and answers as DAIDE, each in a message. A phase has a
time for talk; offers are made in its first half, so that answers come in time. While an offer is
open, its sender neither makes nor accepts offers that contradict it."""

import contextlib
from collections.abc import Mapping, Sequence

from ..._suggest import quoted
from ...errors import UserError
from ...players.advice import agrees, next_offer
from ...players.names import UNBOUND, VoiceSpec
from ...press.daide import MOST_SIGNS, ClauseRow, is_daide
from ...press.negotiators.negotiation import Negotiator
from ...rules.map import Map
from ...textgame.game import Game

_MOST_MESSAGES = 50  # of one sender in a phase; what comes after them is not read


def known_messages(game_map: Map, messages: Sequence[Mapping]) -> list[Mapping]:
    counts: dict[str, int] = {}
    valid = []
    for message in sorted(messages, key=lambda message: message["time_sent"]):
        sender, text = message["sender"], message["message"]
        sides = {sender, message["recipient"]}
        if len(sides) == 2 and sides <= set(game_map.powers):
            counts[sender] = counts.get(sender, 0) + 1
            if counts[sender] <= _MOST_MESSAGES and len(text) <= MOST_SIGNS and is_daide(text):
                valid.append(message)
    return valid


def say_what_is_left(
    game: Game, powers: Sequence[str], player: Negotiator, seed: int, offering: bool
) -> list[dict]:
    """Answer the open offers to some powers, and let these make new ones; return the messages. They
    are said in the game, too. Offers are made only if `offering`."""
    first, powers = len(game.messages), [power for power in powers if game.units[power]]
    num_messages = -1
    while num_messages < len(game.messages):
        num_messages = len(game.messages)
        for power in powers:
            for number in game.offers(power):
                _answer(game, power, number, agrees(game, power, number, player, seed))
            offer = next_offer(game, power, player, seed) if offering else None
            if offer is not None:
                _offer(game, power, *offer)
    return game.messages[first:]


def _answer(game: Game, power: str, number: int, agreed: bool) -> None:
    with contextlib.suppress(UserError):
        if agreed:
            _as_if_agreed(game, power).accept(power, number)
            game.accept(power, number)
            return
    game.decline(power, number)


def _offer(game: Game, power: str, receiver: str, clauses: tuple[ClauseRow, ...]) -> None:
    trial = _as_if_agreed(game, power)
    with contextlib.suppress(UserError):
        trial.accept(receiver, trial.put(power, receiver, clauses))
        game.put(power, receiver, clauses)


def _as_if_agreed(game: Game, power: str) -> Game:
    """Return a copy of a game in which all open offers of a power have been agreed to."""
    copy, own = game.copy(), game.map.power_index[power]
    for offer in game.said(power):
        if offer.sender == own and offer.state == "open":
            with contextlib.suppress(UserError):  # it cannot be agreed to any more
                for q in offer.receivers:
                    copy.accept(copy.powers[q], offer.number)
    return copy


def keeping_promises(game: Game, power: str, orders: list[str]) -> list[str]:
    """Return orders with what deals demand; who plans without lists may have left it out."""
    if not game.deals(power):
        return orders
    copy = game.copy()
    copy.submit(power, orders, strict=False)
    copy.adjudicate()
    return copy.history[-1]["orders"][power] or []


def rehearse(player: Negotiator, game_map: Map) -> None:
    """Let a player talk once, so that its kernels are compiled."""
    game = Game(game_map, press="offers")
    say_what_is_left(game, game.powers, player, 1, True)


def check_voice(spec: object) -> None:
    if isinstance(spec, VoiceSpec) and spec.kind in UNBOUND:
        raise UserError(f"{quoted(spec.text, 100)}: servers do not count broken deals")
