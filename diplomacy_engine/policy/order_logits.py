"""Kernels of a policy over legal orders, and of sums of a table's rows.

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
    RELATION,
    ROWS,
    OrderColumns,
    OrderRows,
    relate,
)


@jit_float
def _sum_rows(rows, table, out):
    for b in range(rows.shape[0]):
        for h in range(table.shape[1]):
            out[b, h] = 0
        for k in range(rows.shape[1]):
            if rows[b, k] != NONE:
                summand = table[rows[b, k]]
                for h in range(table.shape[1]):
                    out[b, h] += summand[h]


@jit_float
def _spread_rows(rows, slopes, out):
    for b in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            if rows[b, k] != NONE:
                target = out[rows[b, k]]
                for h in range(slopes.shape[1]):
                    target[h] += slopes[b, h]


def sum_rows(rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return (sums, H) the sums of rows (sums, rows) of a table (length, H) float32."""
    out = np.empty((len(rows), table.shape[1]), np.float32)
    _sum_rows(rows, table, out)
    return out


def spread_rows(rows: np.ndarray, slopes: np.ndarray, count: int) -> np.ndarray:
    """Return the gradient (count, H) of a table from that of its `sum_rows`, (B, H)."""
    out = np.zeros((count, slopes.shape[1]), np.float32)
    _spread_rows(rows, slopes, out)
    return out


@jit_float
def _code(code, base, rows, board_table, kind_table):
    for h in range(code.shape[0]):
        code[h] = base[h]
    for k in range(NUM_BOARD):
        if rows[k] != NONE:
            summand = board_table[rows[k]]
            for h in range(code.shape[0]):
                code[h] += summand[h]
    for k in range(NUM_BOARD, ROWS):
        if rows[k] != NONE:
            summand = kind_table[rows[k]]
            for h in range(code.shape[0]):
                code[h] += summand[h]


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
def _forward(decisions, rows, blocked, board_table, kind_table, bases, weight, picked, code, out):
    probability, logprob, entropy, greatest = out
    order_start = decisions.order_start
    for slot in range(order_start.shape[0] - 1):
        first, last = order_start[slot], order_start[slot + 1]
        possible = 0
        for n in range(first, last):
            possible += not blocked[n]
            _code(code, bases[slot], rows[n], board_table, kind_table)
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
    code,
    d_board,
    d_kind,
    d_bases,
    d_weight,
):
    order_start = decisions.order_start
    for slot in range(order_start.shape[0] - 1):
        for n in range(order_start[slot], order_start[slot + 1]):
            p = probability[n]
            slope = -d_logprob[slot] * p
            if n == picked[slot]:
                slope += d_logprob[slot]
            if p > 0:
                slope -= d_entropy[slot] * p * (np.log(p) + entropy[slot])
            if slope == 0:
                continue
            _code(code, bases[slot], rows[n], board_table, kind_table)
            for h in range(code.shape[0]):
                positive = code[h] > 0
                d_weight[h] += slope * code[h] if positive else np.float32(0.0)
                code[h] = slope * weight[h] if positive else np.float32(0.0)
            base = d_bases[slot]
            for h in range(code.shape[0]):
                base[h] += code[h]
            for k in range(NUM_BOARD):
                if rows[n, k] != NONE:
                    row = d_board[rows[n, k]]
                    for h in range(code.shape[0]):
                        row[h] += code[h]
            for k in range(NUM_BOARD, ROWS):
                if rows[n, k] != NONE:
                    row = d_kind[rows[n, k]]
                    for h in range(code.shape[0]):
                        row[h] += code[h]


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
    code, base, plain = scratch[0], scratch[1], scratch[2]
    hidden = code.shape[0]
    for d in range(slot_start.shape[0] - 1):
        begin = slot_start[d]
        for h in range(hidden):
            base[h] = context[d, h]
        logprob[d] = 0
        for slot in range(begin, slot_start[d + 1]):
            first, last = order_start[slot], order_start[slot + 1]
            best, pick, pick_score = np.float32(-np.inf), first, np.float32(0.0)
            for n in range(first, last):
                relation, blocked[n] = relate(columns, given, begin, slot, order[n])
                if blocked[n]:
                    continue
                rows[n, RELATION] = FIRST_RELATION + relation if autoregressive else NONE
                _code(code, base, rows[n], board_table, kind_table)
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
                _code(plain, context[d], rows[pick], board_table, kind_table)
                for i in range(hidden):
                    total = earlier_bias[i]
                    weights = earlier_weight[i]
                    for h in range(hidden):
                        total += weights[h] * max(plain[h], np.float32(0.0))
                    base[i] += total


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
    code = np.empty(bases.shape[1], np.float32)
    _forward(
        decisions,
        rows.rows,
        rows.blocked,
        board_table,
        kind_table,
        bases,
        weight,
        picked,
        code,
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
    code = np.empty(len(weight), np.float32)
    _backward(
        decisions,
        rows.rows,
        *inputs,
        picked,
        probability,
        entropy,
        d_logprob,
        d_entropy,
        code,
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
    scratch = np.empty((3, len(weight)), np.float32)
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
