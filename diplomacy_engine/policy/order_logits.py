"""Kernels of a policy over legal orders.

An order's score is the inner product of a weight vector with the positive part of its code; a
slot's policy is the softmax over its legal orders. The lists are ragged and the sums short: kernels
over them are several times as fast as operations on whole arrays of codes, which would be (N, H).
"""

import numpy as np

from .._jit import jit_float
from ..constants import NONE
from ..games.decisions import Decisions
from .inputs import (
    FIRST_RELATION,
    NUM_BOARD,
    ORDER_CLASS,
    RELATION,
    OrderColumns,
    OrderRows,
    relate,
)


@jit_float
def _add_role(code, rows, role, board_table, kind_table):
    if rows[role] != NONE:
        province, standing = board_table[rows[role]], kind_table[rows[NUM_BOARD + role]]
        for h in range(code.shape[0]):
            code[h] += province[h] + standing[h]


@jit_float
def _begin(start, base, rows, first, last, board_table, kind_table):
    """Sum up what the codes of a slot's orders have in common; tell whether that is a source."""
    for h in range(start.shape[0]):
        start[h] = base[h]
    for n in range(first + 1, last):
        if rows[n, 0] != rows[first, 0] or rows[n, NUM_BOARD] != rows[first, NUM_BOARD]:
            return False
    _add_role(start, rows[first], 0, board_table, kind_table)
    return True


@jit_float
def _code(code, start, one_source, rows, board_table, kind_table):
    """Write an order's code, which goes on from the `start` of its slot."""
    order_class = kind_table[rows[ORDER_CLASS]]
    if rows[RELATION] == NONE:
        for h in range(code.shape[0]):
            code[h] = start[h] + order_class[h]
    else:
        relation = kind_table[rows[RELATION]]
        for h in range(code.shape[0]):
            code[h] = start[h] + order_class[h] + relation[h]
    for role in range(int(one_source), NUM_BOARD):
        _add_role(code, rows, role, board_table, kind_table)


@jit_float
def _score(code, weight):
    score = np.float32(0.0)
    for h in range(code.shape[0]):
        score += max(code[h], np.float32(0.0)) * weight[h]
    return score


@jit_float
def _softmax(scores, blocked, first, last):
    """Turn scores first..last-1 into probabilities, 0 if blocked; return the log of their sum."""
    highest = np.float32(-np.inf)
    for n in range(first, last):
        if not blocked[n]:
            highest = max(highest, scores[n])
    total = np.float32(0.0)
    for n in range(first, last):
        scores[n] = np.float32(0.0) if blocked[n] else np.exp(scores[n] - highest)
        total += scores[n]
    for n in range(first, last):
        scores[n] /= total
    return highest + np.log(total)


@jit_float
def _forward(decisions, rows, blocked, board_table, kind_table, bases, weight, picked, codes, out):
    start, code = codes
    probability, logprob, entropy, greatest = out
    order_start = decisions.order_start
    for slot in range(order_start.shape[0] - 1):
        first, last = order_start[slot], order_start[slot + 1]
        one_source = _begin(start, bases[slot], rows, first, last, board_table, kind_table)
        possible = 0
        for n in range(first, last):
            possible += not blocked[n]
            _code(code, start, one_source, rows[n], board_table, kind_table)
            probability[n] = _score(code, weight)
        chosen = np.float32(-np.inf) if blocked[picked[slot]] else probability[picked[slot]]
        logprob[slot] = chosen - _softmax(probability, blocked, first, last)
        greatest[slot] = np.log(np.float32(possible))
        sum_ = np.float32(0.0)
        for n in range(first, last):
            if probability[n] > 0:
                sum_ -= probability[n] * np.log(probability[n])
        entropy[slot] = sum_


@jit_float
def _add_to(target, slopes):
    for h in range(slopes.shape[0]):
        target[h] += slopes[h]


@jit_float
def _spread_role(slopes, rows, role, d_board, d_kind):
    if rows[role] != NONE:
        _add_to(d_board[rows[role]], slopes)
        _add_to(d_kind[rows[NUM_BOARD + role]], slopes)


@jit_float
def _backward(
    decisions,
    rows,
    board_table,
    kind_table,
    bases,
    weight,
    picked,
    probability,
    entropy,
    d_logprob,
    d_entropy,
    codes,
    d_board,
    d_kind,
    d_bases,
    d_weight,
):
    start, code = codes
    order_start = decisions.order_start
    for slot in range(order_start.shape[0] - 1):
        first, last = order_start[slot], order_start[slot + 1]
        one_source = _begin(start, bases[slot], rows, first, last, board_table, kind_table)
        base = d_bases[slot]
        for n in range(first, last):
            p = probability[n]
            slope = -d_logprob[slot] * p
            if n == picked[slot]:
                slope += d_logprob[slot]
            if p > 0:
                slope -= d_entropy[slot] * p * (np.log(p) + entropy[slot])
            if slope == 0:
                continue
            _code(code, start, one_source, rows[n], board_table, kind_table)
            for h in range(code.shape[0]):
                positive = code[h] > 0
                d_weight[h] += slope * code[h] if positive else np.float32(0.0)
                code[h] = slope * weight[h] if positive else np.float32(0.0)
            _add_to(base, code)
            for role in range(int(one_source), NUM_BOARD):
                _spread_role(code, rows[n], role, d_board, d_kind)
            _add_to(d_kind[rows[n, ORDER_CLASS]], code)
            if rows[n, RELATION] != NONE:
                _add_to(d_kind[rows[n, RELATION]], code)
        if one_source:  # each of its orders goes on from it
            _spread_role(base, rows[first], 0, d_board, d_kind)


@jit_float
def _draw(
    columns,
    decisions,
    rows,
    board_table,
    kind_table,
    context,
    weight,
    earlier_weight,
    earlier_bias,
    autoregressive,
    noise,
    temperature,
    scratch,
    probability,
    blocked,
    given,
    chosen,
    logprob,
):
    slot_start, order_start, order = decisions.slot_start, decisions.order_start, decisions.order
    code, base, start, plain = scratch
    hidden = code.shape[0]
    for d in range(slot_start.shape[0] - 1):
        begin = slot_start[d]
        for h in range(hidden):
            base[h] = context[d, h]
        logprob[d] = 0
        for slot in range(begin, slot_start[d + 1]):
            first, last = order_start[slot], order_start[slot + 1]
            best, pick, pick_score = np.float32(-np.inf), first, np.float32(0.0)
            one_source = _begin(start, base, rows, first, last, board_table, kind_table)
            for n in range(first, last):
                relation, blocked[n] = relate(columns, given, begin, slot, order[n])
                if blocked[n]:
                    continue
                rows[n, RELATION] = FIRST_RELATION + relation if autoregressive else NONE
                _code(code, start, one_source, rows[n], board_table, kind_table)
                probability[n] = _score(code, weight)
                rank = probability[n]
                if noise.shape[0] > 0:  # score + Gumbel noise: the highest is a sample
                    rank -= temperature[d] * np.log(-np.log(noise[n]))
                if rank > best:
                    best, pick, pick_score = rank, n, probability[n]
            logprob[d] += pick_score - _softmax(probability, blocked, first, last)
            chosen[slot] = pick - first
            given[slot] = order[pick]
            if autoregressive:
                rows[pick, RELATION] = NONE
                _code(plain, context[d], False, rows[pick], board_table, kind_table)
                for i in range(hidden):
                    total = earlier_bias[i]
                    weights = earlier_weight[i]
                    for h in range(hidden):
                        total += weights[h] * max(plain[h], np.float32(0.0))
                    base[i] += total


def _scratch(count: int, width: int) -> tuple[np.ndarray, ...]:
    return tuple(np.empty(width, np.float32) for _ in range(count))


def score_orders(
    decisions: Decisions,
    rows: OrderRows,
    board_table: np.ndarray,
    kind_table: np.ndarray,
    bases: np.ndarray,
    weight: np.ndarray,
    picked: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the policy of each slot.

    Args:
        board_table: (named, H) float32, of the provinces that `rows.named` lists.
        kind_table: (NUM_KINDS, H) float32.
        bases: (S, H) float32, added to the code of each order of a slot.
        weight: (H,) float32.
        picked: (S,) int64, which of the N orders was chosen in each slot.

    Returns:
        (N,) probabilities; (S,) logarithm of that of the picked order, entropy of the slot's
        policy, and the greatest entropy possible, in nats.
    """
    slots, orders = len(bases), len(decisions.order)
    out = tuple(np.empty(size, np.float32) for size in (orders, slots, slots, slots))
    codes = _scratch(2, len(weight))
    _forward(
        decisions,
        rows.rows,
        rows.blocked,
        board_table,
        kind_table,
        bases,
        weight,
        picked,
        codes,
        out,
    )
    return out


def score_gradients(
    decisions: Decisions,
    rows: OrderRows,
    board_table: np.ndarray,
    kind_table: np.ndarray,
    bases: np.ndarray,
    weight: np.ndarray,
    picked: np.ndarray,
    probability: np.ndarray,
    entropy: np.ndarray,
    d_logprob: np.ndarray,
    d_entropy: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients of board_table, kind_table, bases and weight.

    `d_logprob` and `d_entropy` (S,) are those of `score_orders`' second and third result.
    """
    inputs = board_table, kind_table, bases, weight
    gradients = tuple(np.zeros_like(array) for array in inputs)
    codes = _scratch(2, len(weight))
    _backward(
        decisions,
        rows.rows,
        *inputs,
        picked,
        probability,
        entropy,
        d_logprob,
        d_entropy,
        codes,
        *gradients,
    )
    return gradients


def draw_orders(
    columns: OrderColumns,
    decisions: Decisions,
    rows: OrderRows,
    board_table: np.ndarray,
    kind_table: np.ndarray,
    context: np.ndarray,
    weight: np.ndarray,
    earlier: tuple[np.ndarray, np.ndarray],
    autoregressive: bool,
    noise: np.ndarray,
    temperature: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose orders, unit by unit.

    Args:
        context: (D, H) float32, added to the code of each order of a decision.
        earlier: (H, H) and (H,), the layer through which a chosen order's code reaches later units.
        noise: (N,) uniform in (0, 1); empty: the likeliest orders.
        temperature: (D,), of the draws.

    Returns:
        (S,) int64, positions of the chosen orders in the slots' lists; (D,) float32,
        log-probability of all orders of a decision; (N,) float32, probabilities, 0 if blocked.
    """
    slots, orders = len(decisions.slot_province), len(decisions.order)
    chosen, given = np.empty(slots, np.int64), np.empty(slots, np.int32)
    probability, logprob = np.zeros(orders, np.float32), np.empty(len(context), np.float32)
    scratch = _scratch(4, len(weight))
    _draw(
        columns,
        decisions,
        rows.rows,
        board_table,
        kind_table,
        context,
        weight,
        *earlier,
        autoregressive,
        noise,
        temperature,
        scratch,
        probability,
        rows.blocked,
        given,
        chosen,
        logprob,
    )
    return chosen, logprob, probability
