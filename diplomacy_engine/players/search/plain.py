"""PyTAG's two baselines as in PyTAG, without DumbBot's orders, which `lookahead` and `mcts` use."""

import numpy as np

from ..._suggest import player_name
from ...constants import NONE
from ...games.decisions import Decisions, ragged_rows
from ...games.draws import order_noise, phase_seeds
from ...games.vector_game import VectorGame
from ...rules.state import Salt
from ..bots.dumbbot import Dumbbot
from ..bots.random_bots import RandomBot
from .draws import PlayerDraws
from .leaves import CenterClaims, Leaves
from .uct import DecoupledUct, UctSettings


class Osla:
    """One-step look-ahead in every phase, without orders of the other powers.

    One unit (or build) after the other tries all its orders, with those already chosen, and takes
    the one after which the board is worth most by `CenterClaims`; equals are drawn, but what can be
    built is built.
    """

    name = "osla"
    reads_history = False

    def __init__(self):
        self._leaves: Leaves | None = None

    __repr__ = player_name

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        if self._leaves is None or not self._leaves.spare.is_like(games):
            self._leaves = Leaves(games, CenterClaims(), Dumbbot())
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.CHOICE, 1)[:, 0]
        noise = 1e-9 * order_noise(decisions, seeds)
        noise[decisions.order == games.table.waive] = -1e-6  # a unit more is worth as much or more
        numbers = np.full(len(decisions.slot_province), NONE, np.int32)
        chosen = np.full((decisions.count, len(games.board.terrain)), NONE, np.int32)
        slots = np.diff(decisions.slot_start)
        for nth in range(slots.max(initial=0)):
            deciding = np.flatnonzero(slots > nth)
            slot = decisions.slot_start[deciding] + nth
            lengths = (decisions.order_start[slot + 1] - decisions.order_start[slot]).cumsum()
            at = ragged_rows(decisions.order_start[slot], np.append(0, lengths))
            d = np.repeat(deciding, np.diff(lengths, prepend=0))
            order = decisions.order[at]
            province = games.board.location_province[games.table.location[order]]
            placed = order != games.table.waive
            free = ~placed | (chosen[d, province] == NONE)  # a province may be ordered once
            orders = chosen[d]
            orders[placed, province[placed]] = order[placed]
            values = self._leaves.evaluate(
                games,
                rows=decisions.game[d],
                powers=decisions.power[d],
                orders=orders,
                seeds=seeds[d],
            )
            worth = np.where(free, values + noise[at], -np.inf)
            best = [part.argmax() for part in np.split(worth, lengths[:-1])]
            best += np.append(0, lengths[:-1])
            numbers[slot], chosen[deciding] = order[best], orders[best]
        return numbers


class PlainMcts(DecoupledUct):
    """`mcts` with random joint orders in its nodes instead of DumbBot's proposals."""

    name = "mcts-plain"

    def __init__(self):
        super().__init__(PlayerDraws(RandomBot()), CenterClaims(), self.name, UctSettings())
