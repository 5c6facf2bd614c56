"""Kernels behind the environments: who decides what, what may be ordered, what was ordered."""

from .._jit import jit, jit_inner
from ..constants import NONE, RUNNING, YEAR_LIMIT
from ..rules.state import decision_seed, is_movement, random_below

POWER_SALT, OPPONENT_SALT, WARM_UP_SALT = 201, 202, 203  # uses of `state.decision_seed`
AGENT = -1  # in place of a player's number
AT_END, AFTER_CAPTURES, EVERY_STEP = 0, 1, 2  # when a reward may pay anything


@jit
def draw_seats(state, rows, power, opponents, most_phases, agent, seat, warm_up, begun):
    """Draw what is drawn once a game, from its own seed: it is the same whatever is beside it.

    Reads   the seeds of games `rows`; `power` is the agent's, or NONE for a random one;
            `opponents` counts the players 0.. from which each seat gets one
    Writes  agent (E,), seat (E, P), warm_up (E,) phases of random play, 0..most_phases; begun (E,)
    """
    powers = seat.shape[1]
    for i in range(rows.shape[0]):
        e = rows[i]
        begun[e] = False
        agent[e] = power
        if power == NONE:
            _, agent[e] = random_below(decision_seed(state, e, 0, POWER_SALT), powers)
        for p in range(powers):
            _, seat[e, p] = random_below(decision_seed(state, e, p, OPPONENT_SALT), opponents)
        _, warm_up[e] = random_below(decision_seed(state, e, 0, WARM_UP_SALT), most_phases + 1)


@jit_inner
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
    board, table, state, rows, decisions, seats, gap, orders, mask, queue, queued, who, made, idle
):
    """Say which player makes each decision, and note what the agents may order.

    Returns how many of the games have no decision of the agent; these are at the front of `idle`.

    Reads   decisions of games `rows`, seats: (agent (E,), seat (E, P),
            warm_up (E,), begun (E,), player of warm-ups, and of agents' retreats and adjustments)
    Writes  who (D,) int8: a player's number, or AGENT; made: how many decisions each player makes;
            begun, where an agent decides;
            of `rows`: orders, emptied;
            mask (E, M) int8: order n of province v is at n + gap * (v + 1). With a gap of 1 the
            entry before a province's orders stands for none, and WAIVE has no entry
            queue (E, V): the agents' slots, a province or NONE each; queued (E,), how many
    """
    game, power = decisions.game, decisions.power
    slot_start, slot_province = decisions.slot_start, decisions.slot_province
    agent, seat, warm_up, begun, warm_up_player, helper = seats
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
        if warm_up[e] > 0:
            who[d] = warm_up_player
        elif p != agent[e]:
            who[d] = seat[e, p]
        elif helper != NONE and not is_movement(state.phase[e]):
            who[d] = helper
        else:
            who[d] = AGENT
        if who[d] != AGENT:
            made[who[d]] += 1
            continue
        begun[e] = True
        queued[e] = slot_start[d + 1] - slot_start[d]
        for s in range(slot_start[d], slot_start[d + 1]):
            queue[e, s - slot_start[d]] = slot_province[s]
        _mask_decision(board, table, decisions, d, gap, mask, e)
    left = 0
    for i in range(rows.shape[0]):
        if queued[rows[i]] == 0:
            idle[left] = rows[i]
            left += 1
    return left


@jit
def mask_decisions(board, table, decisions, mask):
    """Write what every power of one game may order.

    Reads   decisions of that game
    Writes  mask (P, M) int8, laid out as with a gap of 1
    """
    for p in range(mask.shape[0]):
        mask[p, :] = 0
        for v in range(table.province_first.shape[0] - 1):
            mask[p, table.province_first[v] + v] = 1
    for d in range(decisions.power.shape[0]):
        _mask_decision(board, table, decisions, d, 1, mask, decisions.power[d])


@jit
def pick_decisions(decisions, who, player, out, counts):
    """Copy the decisions that `player` makes.

    Reads   decisions, who (D,)
    Writes  out (Decisions as long), counts (3,) int64: decisions, slots and orders copied
    """
    game, power, slot_start, slot_province, order_start, order = decisions
    game_, power_, slot_start_, slot_province_, order_start_, order_ = out
    c, t, n = 0, 0, 0
    for d in range(game.shape[0]):
        if who[d] != player:
            continue
        game_[c] = game[d]
        power_[c] = power[d]
        slot_start_[c] = t
        c += 1
        for s in range(slot_start[d], slot_start[d + 1]):
            slot_province_[t] = slot_province[s]
            order_start_[t] = n
            t += 1
            for i in range(order_start[s], order_start[s + 1]):
                order_[n] = order[i]
                n += 1
    slot_start_[c] = t
    order_start_[t] = n
    counts[0], counts[1], counts[2] = c, t, n


@jit
def settle(rows, step, agent, warm_up, begun, pays, terminated, truncated, on, paying, over, again):
    """See where the games `rows` stand after a step.

    Reads   step: (ended (rows,), captured (rows,), alive (rows, P)) of that step, agent (E,),
            begun (E,): whether the agent has decided yet; pays: AT_END, AFTER_CAPTURES too, or
            EVERY_STEP
    Writes  terminated, truncated (E,) bool, of games that are over for the agent;
            on: rows that go on; paying: indices into `rows` where a reward may be due; over: rows
            that are over; again: those that are before they began; warm_up (E,), one less
    Returns how many rows there are of each kind
    """
    ended, captured, alive = step
    goes_on, may_pay, are_over, starts_again = 0, 0, 0, 0
    for i in range(rows.shape[0]):
        e = rows[i]
        is_alive = alive[i, agent[e]]
        is_over = ended[i] != RUNNING or not is_alive
        warm_up[e] = max(0, warm_up[e] - 1)
        if begun[e] and (is_over or pays == EVERY_STEP or (captured[i] and pays == AFTER_CAPTURES)):
            paying[may_pay] = i
            may_pay += 1
        if not is_over:
            on[goes_on] = e
            goes_on += 1
        elif not begun[e]:
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


@jit_inner
def _in_slot(board, table, mask, e, v, number):
    """Tell whether an order is legal in a slot of province v, or NONE for an adjustment."""
    if not 0 <= number < mask.shape[1] or not mask[e, number]:
        return False
    return v == NONE or board.location_province[table.location[number]] == v


@jit
def take_unit_actions(board, table, actions, queue, at, strict, mask, orders, given, illegal):
    """Write one order of each game, for the slot it is at, and move on to the next slot.

    Reads   actions (E,) int64, order numbers
    Writes  orders and given (E, V); illegal (E,), 1 where an order is not legal in its slot;
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
            orders[e, v] = given[e, v] = number
            if queue[e, at[e]] == NONE:
                mask[e, table.province_first[v] : table.province_first[v + 1]] = 0
        at[e] += 1
    return first_bad


@jit
def mask_slots(table, mask, queue, queued, at, out):
    """Write what may be ordered in the slot each game is at.

    Reads   mask (E, A), queue (E, V), queued (E,), at (E,)
    Writes  out (E, A), zeros before
    """
    for e in range(mask.shape[0]):
        if at[e] >= queued[e]:
            continue
        v = queue[e, at[e]]
        first, last = 0, mask.shape[1]
        if v != NONE:
            first, last = table.province_first[v], table.province_first[v + 1]
        for number in range(first, last):
            out[e, number] = mask[e, number]
