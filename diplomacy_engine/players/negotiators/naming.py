"""How a player that talks is written: `nash+dumbbot`, or `nash(profiles=16)+runs/three__...`."""

import re
from typing import NamedTuple

from ..._suggest import did_you_mean, quoted
from ...errors import UserError
from ..negotiation import Silent
from ..protocols import Player
from .breakers import Breaker, Grudge, Sanction
from .neighbors import Coin, Peaceful
from .planners import Dealer, Nash

NEGOTIATORS = {
    "silent": Silent,
    "peaceful": Peaceful,
    "coin": Coin,
    "dealer": Dealer,
    "nash": Nash,
    "breaker": Breaker,
    "grudge": Grudge,
    "sanction": Sanction,
}
UNBOUND = ("breaker", "grudge", "sanction")  # have an effect only where deals may be broken
PROFILES, YEARS = {"profiles": 1000}, {"years": 100}  # options, with the most that they can be
OPTIONS = {
    "dealer": PROFILES,
    "nash": PROFILES,
    "breaker": PROFILES,
    "grudge": PROFILES | YEARS,
    "sanction": PROFILES | YEARS,
}
_SPELLING = re.compile(r"([a-z]+)(?:\(([^()]*)\))?\+(.+)", re.DOTALL)


class Voice(NamedTuple):
    """A talking player's name, taken apart."""

    kind: str  # one of NEGOTIATORS
    options: dict[str, int]
    player: str  # who gives the orders


def voice(name: str) -> Voice | None:
    """Return the parts of a talking player's name; None if it is another player's.

    Raises:
        UserError: there is no such negotiator or option, or its value is out of range.
    """
    found = _SPELLING.fullmatch(name)
    if found is None:
        return None
    kind, text, player = found.groups()
    if kind not in NEGOTIATORS:
        if text is None and not did_you_mean(kind, NEGOTIATORS):
            return None  # a file may be named so
        raise UserError(
            f"{quoted(name, 100)}: there is no negotiator {quoted(kind)} "
            f"({', '.join(NEGOTIATORS)}){did_you_mean(kind, NEGOTIATORS)}"
        )
    options = {}
    for part in (text or "").split():
        option, _, value = part.partition("=")
        known = OPTIONS.get(kind, {})
        if option not in known:
            has = f"only the option {' and '.join(known)}" if known else "no options"
            raise UserError(f"{quoted(name, 100)}: {kind} has {has}, not {quoted(part)}")
        if not re.fullmatch(r"[0-9]{1,6}", value) or not 1 <= int(value) <= known[option]:
            raise UserError(
                f"{quoted(name, 100)}: {option} must be a whole number from 1 to "
                f"{known[option]:,}, not {quoted(value)}"
            )
        options[option] = int(value)
    return Voice(kind, options, player)


def make_voice(name: str, parts: Voice, player: Player) -> Player:
    """Return a player that talks as `parts` say and orders as `player` does; shown as `name`."""
    return NEGOTIATORS[parts.kind](player, name, **parts.options)
