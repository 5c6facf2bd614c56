"""Scripted players: each gives orders for a batch of pending decisions in compiled kernels."""

from ..._suggest import did_you_mean
from ...errors import UserError
from ..protocols import Player
from ..search.best_response import Lookahead
from ..search.plain import Osla, PlainMcts
from ..search.uct import Mcts
from .brane import Brane
from .dumbbot import DeepdipDumbbot, Dumbbot, PaquetteDumbbot
from .random_bots import ChaosBot, HoldBot, RandomBot

_PLAIN = (RandomBot, HoldBot, ChaosBot, Dumbbot, PaquetteDumbbot, DeepdipDumbbot, Brane)
_SEARCHING = (Lookahead, Mcts, Osla, PlainMcts)
BOTS: dict[str, type[Player]] = {bot.name: bot for bot in (*_PLAIN, *_SEARCHING)}


def make_bot(name: str) -> Player:
    """Return a new bot of that name; UserError, with all names, if there is none."""
    if name in BOTS:
        return BOTS[name]()
    hint = did_you_mean(str(name), BOTS)
    raise UserError(f"there is no bot {name!r} ({', '.join(BOTS)}){hint}")
