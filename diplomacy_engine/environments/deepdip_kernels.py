"""Kernels of the DeepDip thesis' observations and actions; see deepdip.py."""

from .._jit import jit, jit_inner
from ..constants import MOVE, NONE, SUPPORT_HOLD, SUPPORT_MOVE


@jit
def deepdip_observation(board, state, rows, agent, out):
    """Write the observations of games `rows`: out (rows, 3 V) int64."""
    powers = board.num_powers
    for i in range(rows.shape[0]):
        e = rows[i]
        me = agent[e]
        for v in range(board.terrain.shape[0]):
            center, owner = board.province_center[v], NONE
            if center != NONE:
                owner = state.center_owner[e, center]
            unit = state.unit_power[e, v]
            out[i, 3 * v] = center != NONE
            out[i, 3 * v + 1] = 0 if owner == NONE else 1 + (owner - me) % powers
            out[i, 3 * v + 2] = 0 if unit == NONE else 1 + (unit - me) % powers
            if unit == powers:  # neutral
                out[i, 3 * v + 2] = powers + 1


@jit_inner
def _legal_order(board, table, mask, e, v, kind, other, target):
    """Return the first legal order of the unit in v of that kind, or NONE.

    `target` is the province moved to or supported (to hold), or else the location that the unit of
    province `other` is supported to.
    """
    for number in range(table.province_first[v], table.province_first[v + 1]):
        if table.kind[number] != kind or not mask[e, number]:
            continue
        there = table.target[number]
        if kind != SUPPORT_MOVE:
            if board.location_province[there] == target:
                return number
        elif there == target and board.location_province[table.other_location[number]] == other:
            return number
    return NONE


@jit
def take_deepdip_actions(board, table, actions, mask, queue, queued, orders, illegal):
    """Write the orders of actions, and count the invalid ones, which hold.

    Reads   actions (E, V) int64; mask (E, A), queue (E, V), queued (E,): the agents' units
    Writes  orders (E, V); illegal (E,). After an invalid action in a strict environment the
            next call writes these orders again
    Returns the first invalid action, as e * V + v, or NONE
    """
    provinces = actions.shape[1]
    first_bad = NONE
    for e in range(actions.shape[0]):
        illegal[e] = 0
        for supports in range(2):  # a support waits for what it supports
            for s in range(queued[e]):
                v = queue[e, s]
                action = actions[e, v]
                if (action > provinces) != supports:
                    continue
                number = table.province_first[v]
                while not mask[e, number]:
                    number += 1  # the first legal order is the hold
                if supports:
                    q = action - 1 - provinces
                    number = NONE
                    if q < provinces and _is_mine(queue, queued, e, q):
                        if orders[e, q] != NONE and table.kind[orders[e, q]] == MOVE:
                            goal = table.target[orders[e, q]]
                            number = _legal_order(board, table, mask, e, v, SUPPORT_MOVE, q, goal)
                        else:
                            number = _legal_order(board, table, mask, e, v, SUPPORT_HOLD, NONE, q)
                elif action != 0:
                    number = NONE
                    if action > 0:
                        number = _legal_order(board, table, mask, e, v, MOVE, NONE, action - 1)
                orders[e, v] = number
                if number == NONE:
                    illegal[e] += 1
                    if first_bad == NONE:
                        first_bad = e * provinces + v
    return first_bad


@jit_inner
def _is_mine(queue, queued, e, v):
    for s in range(queued[e]):
        if queue[e, s] == v:
            return True
    return False
