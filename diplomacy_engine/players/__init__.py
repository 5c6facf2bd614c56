"""Whatever gives orders: bots, the policies of checkpoints, and how to ask them."""

from .asking import ask_player, ask_players, orders_of
from .bots import BOTS, make_bot
from .loading import PlayerError, load_player
from .policy.player import PolicyPlayer
from .protocols import ExplainingPlayer, Explanation, Player, SamplingPlayer, StatefulPlayer

__all__ = [
    "BOTS",
    "ExplainingPlayer",
    "Explanation",
    "Player",
    "PlayerError",
    "PolicyPlayer",
    "SamplingPlayer",
    "StatefulPlayer",
    "ask_player",
    "ask_players",
    "load_player",
    "make_bot",
    "orders_of",
]
