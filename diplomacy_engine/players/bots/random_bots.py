"""Bots that do not look at the position: random, hold and chaos."""

import numpy as np

from ..._jit import jit, jit_inner
from ...constants import MOVE, MOVE_VIA, NONE, WAIVE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.state import decision_seed, is_movement, is_winter, random_below

RANDOM_SALT, CHAOS_SALT = 101, 102  # uses of `state.decision_seed`


@jit_inner
def _clear_adjustments(board, table, orders, e, order, first, last):
    """Take every order of one winter list order[first:last] out of row e of `orders`."""
    for i in range(first, last):
        if order[i] != table.waive:
            orders[e, board.location_province[table.location[order[i]]]] = NONE


@jit_inner
def _draw_adjustment(board, table, orders, e, order, first, last, restless, rng):
    """Draw one build or removal of order[first:last] among those still open, and write it.

    Reads   row e of `orders`: a province that has an order in it is taken
    Writes  row e of `orders`; nothing for WAIVE, which a restless bot never draws
    """
    count = 0
    for i in range(first, last):
        if table.kind[order[i]] == WAIVE:
            count += not restless
        elif orders[e, board.location_province[table.location[order[i]]]] == NONE:
            count += 1
    if count == 0:
        return rng
    rng, left = random_below(rng, count)
    for i in range(first, last):
        if table.kind[order[i]] == WAIVE:
            continue  # the last of a list: whoever comes here past all others has drawn it
        v = board.location_province[table.location[order[i]]]
        if orders[e, v] == NONE:
            if left == 0:
                orders[e, v] = order[i]
                return rng
            left -= 1
    return rng


@jit
def random_orders(board, table, state, decisions, first, last, restless, salt, orders):
    """Write random legal orders for decisions first..last-1.

    Reads   decisions (the arrays of a Decisions), state.phase and the games' seeds
    Writes  orders (E, V), the entries of those decisions' units and home centers
    Rule    every slot draws uniformly from its legal orders. A restless bot draws only among moves
            (convoyed ones included), retreats or builds where there are any
    """
    game, power, slot_start, slot_province, order_start, order = decisions
    for d in range(first, last):
        e = game[d]
        rng = decision_seed(state, e, power[d], salt)
        winter = is_winter(state.phase[e])
        moving = is_movement(state.phase[e])
        if winter:
            s = slot_start[d]
            _clear_adjustments(board, table, orders, e, order, order_start[s], order_start[s + 1])
        for s in range(slot_start[d], slot_start[d + 1]):
            start, stop = order_start[s], order_start[s + 1]
            if winter:
                rng = _draw_adjustment(board, table, orders, e, order, start, stop, restless, rng)
                continue
            if restless and moving and start + 1 < stop:
                # A list begins with the hold, then come all moves.
                end = start + 1
                while end < stop and (
                    table.kind[order[end]] == MOVE or table.kind[order[end]] == MOVE_VIA
                ):
                    end += 1
                if end > start + 1:
                    start += 1
                stop = end
            elif restless and start + 1 < stop:
                stop -= 1  # a list of retreats ends with the disband
            rng, i = random_below(rng, stop - start)
            orders[e, slot_province[s]] = order[start + i]


@jit
def hold_orders(board, table, state, decisions, first, last, orders):
    """Write holds, and disbands of dislodged units, for decisions first..last-1.

    Writes  orders (E, V): in winter, no order at all (builds are waived, removals left to civil
            disorder)
    """
    game, _, slot_start, slot_province, order_start, order = decisions
    for d in range(first, last):
        e = game[d]
        winter = is_winter(state.phase[e])
        moving = is_movement(state.phase[e])
        for s in range(slot_start[d], slot_start[d + 1]):
            if winter:
                _clear_adjustments(
                    board, table, orders, e, order, order_start[s], order_start[s + 1]
                )
                break
            v = slot_province[s]
            if moving:
                orders[e, v] = table.hold[state.unit_kind[e, v], state.unit_location[e, v]]
            else:
                kind, here = state.dislodged_kind[e, v], state.dislodged_location[e, v]
                orders[e, v] = table.disband[kind, here]


class RandomBot:
    """Draws every order uniformly from the unit's legal orders."""

    name = "random"
    restless = False
    salt = RANDOM_SALT

    def act(self, games: VectorGame, decisions: Decisions, orders: np.ndarray) -> None:
        """Write the orders (E, V) of every decision given."""
        games.check_orders(orders)
        board, table, state, arrays = games.board, games.table, games.state, tuple(decisions)
        games.run(
            lambda first, last: games.call(
                random_orders,
                board,
                table,
                state,
                arrays,
                first,
                last,
                self.restless,
                self.salt,
                orders,
            ),
            len(decisions),
        )


class ChaosBot(RandomBot):
    """Moves at random, never holding or waiving while there is something else to do."""

    name = "chaos"
    restless = True
    salt = CHAOS_SALT


class HoldBot:
    """Holds; disbands what is dislodged; gives no orders in winter."""

    name = "hold"

    def act(self, games: VectorGame, decisions: Decisions, orders: np.ndarray) -> None:
        """Write the orders (E, V) of every decision given."""
        games.check_orders(orders)
        board, table, state, arrays = games.board, games.table, games.state, tuple(decisions)
        games.run(
            lambda first, last: games.call(
                hold_orders, board, table, state, arrays, first, last, orders
            ),
            len(decisions),
        )
