"""Negotiators by their names."""

from ..language.talker import Talker
from ..names import VoiceSpec, short_name
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
    "talker": Talker,
}


def make_voice(spec: VoiceSpec, player: Player) -> Player:
    """Return a player that talks as it was written and orders as `player` does."""
    return NEGOTIATORS[spec.kind](player, short_name(spec), **spec.options)
