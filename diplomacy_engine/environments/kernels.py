"""Kernels behind the environments: who decides what, what may be ordered, what was ordered."""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..constants import MOVE, NONE, RUNNING, SUPPORT_HOLD, SUPPORT_MOVE, YEAR_LIMIT
from ..rules.state import Salt, decision_seed, is_movement, random_below

POWER_SALT, OPPONENT_SALT = int(Salt.ENV_POWER), int(Salt.ENV_OPPONENT)
WARM_UP_SALT = int(Salt.ENV_WARM_UP)
AGENT = -1  # in place of a player's number
AT_END, AFTER_CAPTURES, EVERY_STEP = 0, 1, 2  # when a reward may pay anything


class AgentSeats(NamedTuple):
    """Who plays what in E games; players are numbered."""

    agent: np.ndarray  # (E,) int8, the agent's power
    seat: np.ndarray  # (E, P) int16, the player of each other power
    warm_up: np.ndarray  # (E,) int32, phases of random play that are left
    begun: np.ndarray  # (E,) bool, whether the agent has decided yet
    warm_up_player: int
    helper: int  # who gives the agent's retreats and adjustments, or NONE: itself


@jit
def sample_seats(state, rows, power, opponents, most_phases, seats):
    """Sample what is sampled once a game, from its own seed: other games change nothing.

    Reads   `power`, the agent's, or NONE for a random one; `opponents`, how many players each
            seat's is drawn from
    Writes  seats, with 0..most_phases phases of random play
    """
    powers = seats.seat.shape[1]
    for i in range(rows.shape[0]):
        e = rows[i]
        seats.begun[e] = False
        seats.agent[e] = power
        if power == NONE:
            _, seats.agent[e] = random_below(decision_seed(state, e, 0, POWER_SALT), powers)
        for p in range(powers):
            _, seats.seat[e, p] = random_below(decision_seed(state, e, p, OPPONENT_SALT), opponents)
        rng = decision_seed(state, e, 0, WARM_UP_SALT)
        _, seats.warm_up[e] = random_below(rng, most_phases + 1)


@jit
def _mask_decision(board, table, decisions, d, gap, mask, row):
    """Write what may be ordered in decision d to mask[row]; see assign_decisions."""
    order = decisions.order
    for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
        v = decisions.slot_province[s]
        if v == NONE and s > decisions.slot_start[d]:
            return  # all slots of a winter have the same list
        if v != NONE and gap:
            mask[row, table.province_first[v] + v] = 0
        for n in range(decisions.order_start[s], decisions.order_start[s + 1]):
            number = order[n]
            if number != table.waive:
                at = board.location_province[table.location[number]]
                mask[row, number + gap * (at + 1)] = 1
            elif not gap:
                mask[row, number] = 1


@jit
def assign_decisions(
    board, table, state, rows, decisions, seats, gap, entries, decider, counts, idle
):
    """Say which player makes each decision, and note what the agents may order.

    Returns how many of the games have no decision of the agent; these are at the front of `idle`.

    Reads   decisions of games `rows`
    Writes  decider (D,) int16: a player's number, or AGENT; counts: decisions of each player;
            seats.begun, where an agent decides;
            entries of `rows`: orders, emptied;
            mask (E, M) int8: order n of province v is at n + gap * (v + 1). With a gap of 1 the
            entry before a province's orders stands for none, and WAIVE has no entry
            queue (E, V): the agents' slots, a province or NONE each; queued (E,), how many
    """
    orders, mask, queue, queued = entries
    game, power = decisions.game, decisions.power
    slot_start, slot_province = decisions.slot_start, decisions.slot_province
    for i in range(rows.shape[0]):
        e = rows[i]
        queued[e] = 0
        mask[e, :] = 0
        for v in range(orders.shape[1]):
            orders[e, v] = NONE
            if gap:
                mask[e, table.province_first[v] + v] = 1
    for d in range(game.shape[0]):
        e, p = game[d], power[d]
        if seats.warm_up[e] > 0:
            decider[d] = seats.warm_up_player
        elif p != seats.agent[e]:
            decider[d] = seats.seat[e, p]
        elif seats.helper != NONE and not is_movement(state.phase[e]):
            decider[d] = seats.helper
        else:
            decider[d] = AGENT
        if decider[d] != AGENT:
            counts[decider[d]] += 1
            continue
        seats.begun[e] = True
        queued[e] = slot_start[d + 1] - slot_start[d]
        for s in range(slot_start[d], slot_start[d + 1]):
            queue[e, s - slot_start[d]] = slot_province[s]
        _mask_decision(board, table, decisions, d, gap, mask, e)
    num_idle = 0
    for i in range(rows.shape[0]):
        if queued[rows[i]] == 0:
            idle[num_idle] = rows[i]
            num_idle += 1
    return num_idle


@jit
def mask_decisions(board, table, decisions, mask):
    """Write what every power of one game may order to mask (P, M) int8, as with a gap of 1."""
    for p in range(mask.shape[0]):
        mask[p, :] = 0
        for v in range(table.province_first.shape[0] - 1):
            mask[p, table.province_first[v] + v] = 1
    for d in range(decisions.power.shape[0]):
        _mask_decision(board, table, decisions, d, 1, mask, decisions.power[d])


@jit
def pick_decisions(decisions, decider, player, out, counts):
    """Copy the decisions of `player` to out; counts (3,): decisions, slots and orders copied."""
    copied, slots, orders = 0, 0, 0
    for d in range(decisions.game.shape[0]):
        if decider[d] != player:
            continue
        out.game[copied] = decisions.game[d]
        out.power[copied] = decisions.power[d]
        out.slot_start[copied] = slots
        copied += 1
        for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
            out.slot_province[slots] = decisions.slot_province[s]
            out.order_start[slots] = orders
            slots += 1
            for n in range(decisions.order_start[s], decisions.order_start[s + 1]):
                out.order[orders] = decisions.order[n]
                orders += 1
    out.slot_start[copied] = slots
    out.order_start[slots] = orders
    counts[0], counts[1], counts[2] = copied, slots, orders


@jit
def settle(
    rows, ended, captured, alive, seats, pays, terminated, truncated, on, paying, over, again
):
    """See where the games `rows` stand after a step.

    Reads   ended (rows,), captured (rows,) and alive (rows, P) of that step, seats; pays: AT_END,
            AFTER_CAPTURES too, or EVERY_STEP
    Writes  terminated, truncated (E,) bool, of games that are over for the agent;
            on: rows that go on; paying: indices into `rows` where a reward may be due; over: rows
            that are over; again: those that are before they began; seats.warm_up, one less
    Returns how many rows there are of each kind
    """
    goes_on, may_pay, are_over, starts_again = 0, 0, 0, 0
    for i in range(rows.shape[0]):
        e = rows[i]
        is_alive = alive[i, seats.agent[e]]
        is_over = ended[i] != RUNNING or not is_alive
        seats.warm_up[e] = max(0, seats.warm_up[e] - 1)
        due = is_over or pays == EVERY_STEP or (captured[i] and pays == AFTER_CAPTURES)
        if seats.begun[e] and due:
            paying[may_pay] = i
            may_pay += 1
        if not is_over:
            on[goes_on] = e
            goes_on += 1
        elif not seats.begun[e]:
            again[starts_again] = e
            starts_again += 1
        else:
            truncated[e] = is_alive and ended[i] == YEAR_LIMIT
            terminated[e] = not truncated[e]
            over[are_over] = e
            are_over += 1
    return goes_on, may_pay, are_over, starts_again


@jit
def take_province_actions(actions, mask, province_first, strict, orders, illegal):
    """Write the orders of actions, one for each province, and count those outside the mask.

    Reads   actions (E, V) int64, mask (E, M) with gaps
    Writes  orders (E, V), where an action is legal and an order; illegal (E,), actions outside
            the mask. A strict call with such an action writes no orders
    Returns the first such action, as e * V + v, or NONE
    """
    provinces = actions.shape[1]
    first_bad = NONE
    for e in range(actions.shape[0]):
        illegal[e] = 0
        for v in range(provinces):
            action = actions[e, v]
            count = province_first[v + 1] - province_first[v] + 1
            if 0 <= action < count and mask[e, province_first[v] + v + action]:
                continue
            illegal[e] += 1
            if first_bad == NONE:
                first_bad = e * provinces + v
    if strict and first_bad != NONE:
        return first_bad
    for e in range(actions.shape[0]):
        for v in range(provinces):
            action = actions[e, v]
            count = province_first[v + 1] - province_first[v] + 1
            if 0 < action < count and mask[e, province_first[v] + v + action]:
                orders[e, v] = province_first[v] + action - 1
    return first_bad


@jit
def _in_slot(board, table, mask, e, v, number):
    """Tell whether an order is legal in a slot of province v, or NONE for an adjustment."""
    if not 0 <= number < mask.shape[1] or not mask[e, number]:
        return False
    return v == NONE or board.location_province[table.location[number]] == v


@jit
def take_unit_actions(
    board, table, actions, queue, at, strict, mask, orders, phase_orders, illegal
):
    """Write one order of each game, for the slot it is at, and move on to the next slot.

    Reads   actions (E,) int64, order numbers
    Writes  orders and phase_orders (E, V); illegal (E,), 1 where an order is not legal in its slot;
            at (E,); mask (E, A): a province built or removed in cannot be chosen again. A strict
            call with such an order writes nothing but `illegal`
    Returns the first game with an illegal order, or NONE
    """
    first_bad = NONE
    for e in range(actions.shape[0]):
        illegal[e] = not _in_slot(board, table, mask, e, queue[e, at[e]], actions[e])
        if illegal[e] and first_bad == NONE:
            first_bad = e
    if strict and first_bad != NONE:
        return first_bad
    for e in range(actions.shape[0]):
        number = actions[e]
        if not illegal[e] and number != table.waive:
            v = board.location_province[table.location[number]]
            orders[e, v] = phase_orders[e, v] = number
            if queue[e, at[e]] == NONE:
                mask[e, table.province_first[v] : table.province_first[v + 1]] = 0
        at[e] += 1
    return first_bad


@jit
def mask_slots(table, mask, queue, queued, at, out):
    """Write what may be ordered in the slot each game is at to out (E, A), zeros before."""
    for e in range(mask.shape[0]):
        if at[e] >= queued[e]:
            continue
        v = queue[e, at[e]]
        first, last = 0, mask.shape[1]
        if v != NONE:
            first, last = table.province_first[v], table.province_first[v + 1]
        for number in range(first, last):
            out[e, number] = mask[e, number]


# --- The DeepDip thesis' observations and actions, see DeepDipForm -------------------------------


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


@jit
def _legal_order(board, table, mask, e, v, kind, other, target):
    """Return the first legal order of the unit in v of that kind, or NONE. `target` is the province
    moved to or supported, or the location that the unit of `other` is supported to."""
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


@jit
def _is_mine(queue, queued, e, v):
    for s in range(queued[e]):
        if queue[e, s] == v:
            return True
    return False
