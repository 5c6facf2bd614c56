"""Bots that look ahead: without a network, and with DumbBot for who proposes orders."""

from ..bots.dumbbot import Dumbbot
from .assumptions import Assumptions
from .best_response import BestResponse, SearchSettings
from .draws import PlayerDraws, VariedDraws
from .leaves import CenterClaims
from .uct import DecoupledUct, UctSettings

ONE_STEP = SearchSettings(draws=48, candidates=48, profiles=8, halving=False, sure=0.0)


class Lookahead(BestResponse):
    """Looks one step ahead: of 48 joint orders it gives the best against eight of the others'.

    DumbBot proposes them, half of them with another order for one unit. One step look-ahead as
    PyTAG's OSLA; but where all move at once a step is worth nothing without the orders of the
    others, so they are taken for DumbBots. Without a network: `CenterClaims` says what a board is
    worth.
    """

    name = "lookahead"

    def __init__(self):
        expected = Assumptions({"dumbbot": PlayerDraws(Dumbbot())})
        super().__init__(
            VariedDraws(PlayerDraws(Dumbbot())), CenterClaims(), self.name, expected, ONE_STEP
        )


class Mcts(DecoupledUct):
    """Monte Carlo tree search: the baseline of PyTAG, where all powers choose at once.

    DumbBot proposes every power's orders, and `CenterClaims` says what a board is worth.
    """

    name = "mcts"

    def __init__(self):
        super().__init__(PlayerDraws(Dumbbot()), CenterClaims(), self.name, UctSettings())
