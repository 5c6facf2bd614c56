"""Bots that do not look at the position: random, hold and chaos."""

import numpy as np

from ..._jit import jit
from ..._suggest import player_name
from ...constants import MOVE, MOVE_VIA, NONE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.state import Salt, decision_seed, is_movement, is_winter, random_below


@jit
def _sample_adjustment(board, table, decisions, first, slot, restless, numbers, rng):
    """Sample a build or removal for a slot of a winter decision, in a province that no earlier slot
    has taken: WAIVE, but never for a restless bot, or NONE if there is nothing to do."""
    start, stop = decisions.order_start[slot], decisions.order_start[slot + 1]
    province_of = board.location_province
    count = 0
    for wanted in range(2):  # count what is open, then go to the one sampled
        if wanted:
            if count == 0:
                numbers[slot] = NONE
                return rng
            rng, index = random_below(rng, count)
        for i in range(start, stop):
            number = decisions.order[i]
            waives = number == table.waive
            taken = waives and restless
            for earlier in range(first, slot):
                past = numbers[earlier]
                if past != NONE and past != table.waive and not waives:
                    v = province_of[table.location[number]]
                    taken = taken or province_of[table.location[past]] == v
            if taken:
                continue
            if not wanted:
                count += 1
            elif index == 0:
                numbers[slot] = number
                return rng
            else:
                index -= 1
    return rng


@jit
def random_orders(board, table, state, decisions, first, last, restless, salt, numbers):
    """Sample legal orders (S,) for decisions first..last-1, uniformly for every slot; a restless
    bot's among moves (also by convoy), retreats or builds where there are any."""
    for d in range(first, last):
        e = decisions.game[d]
        rng = decision_seed(state, e, decisions.power[d], salt)
        winter = is_winter(state.phase[e])
        moving = is_movement(state.phase[e])
        begin = decisions.slot_start[d]
        for s in range(begin, decisions.slot_start[d + 1]):
            start, stop = decisions.order_start[s], decisions.order_start[s + 1]
            if winter:
                rng = _sample_adjustment(board, table, decisions, begin, s, restless, numbers, rng)
                continue
            if restless and moving and start + 1 < stop:
                # A list begins with the hold, then come all moves.
                end = start + 1
                while end < stop:
                    kind = table.kind[decisions.order[end]]
                    if kind != MOVE and kind != MOVE_VIA:
                        break
                    end += 1
                if end > start + 1:
                    start += 1
                stop = end
            elif restless and start + 1 < stop:
                stop -= 1  # a list of retreats ends with the disband
            rng, i = random_below(rng, stop - start)
            numbers[s] = decisions.order[start + i]


@jit
def hold_orders(table, state, decisions, first, last, numbers):
    """Write holds, disbands of dislodged units, and in winter NONE, for decisions first..last-1."""
    for d in range(first, last):
        e = decisions.game[d]
        for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
            v = decisions.slot_province[s]
            if v == NONE:
                numbers[s] = NONE
            elif is_movement(state.phase[e]):
                numbers[s] = table.hold[state.unit_kind[e, v], state.unit_location[e, v]]
            else:
                kind, here = state.dislodged_kind[e, v], state.dislodged_location[e, v]
                numbers[s] = table.disband[kind, here]


class RandomBot:
    """Draws every order uniformly from the unit's legal orders."""

    name = "random"
    reads_history = False
    restless = False
    salt = int(Salt.RANDOM)

    __repr__ = player_name

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        numbers = np.empty(len(decisions.slot_province), np.int32)
        read = games.board, games.table, games.state, decisions
        how = self.restless, self.salt, numbers
        games.call_slices(random_orders, decisions.count, read, how)
        return numbers


class ChaosBot(RandomBot):
    """Moves at random, never holding or waiving while there is something else to do."""

    name = "chaos"
    restless = True
    salt = int(Salt.CHAOS)


class HoldBot:
    """Holds; disbands what is dislodged; gives no orders in winter."""

    name = "hold"
    reads_history = False

    __repr__ = player_name

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        numbers = np.empty(len(decisions.slot_province), np.int32)
        read = games.table, games.state, decisions
        games.call_slices(hold_orders, decisions.count, read, (numbers,))
        return numbers
