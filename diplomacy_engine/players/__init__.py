"""Whatever gives orders: bots, the policies of checkpoints, and how to ask them."""

from .asking import ask_player, ask_players, orders_of
from .bots import BOTS, make_bot
from .checkpoints import CHECKPOINT_FORMAT, header, read_checkpoint
from .loading import PlayerError, load_player
from .policy import PolicyPlayer
from .protocols import ExplainingPlayer, Explanation, Player, SamplingPlayer, StatefulPlayer

__all__ = [
    "BOTS",
    "CHECKPOINT_FORMAT",
    "ExplainingPlayer",
    "Explanation",
    "Player",
    "PlayerError",
    "PolicyPlayer",
    "SamplingPlayer",
    "StatefulPlayer",
    "ask_player",
    "ask_players",
    "header",
    "load_player",
    "make_bot",
    "orders_of",
    "read_checkpoint",
]
