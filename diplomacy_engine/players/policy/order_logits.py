"""Kernels of a policy over legal orders.

An order's score is the inner product of a weight vector with the ReLU of its embedding (`code`); a
slot's policy is the softmax over its legal orders. The lists are ragged and the sums short, so
kernels are several times as fast as operations on whole arrays of codes (N, H).
"""

import numpy as np

from ..._jit import jit_float, jit_merged
from ...constants import NONE
from ...games.decisions import Decisions
from .inputs import (
    FIRST_RELATION,
    NUM_BOARD,
    RELATION,
    ROWS,
    OrderColumns,
    OrderRows,
    relate,
)
from .sums import aligned, zeros
from .vectors import add_row, spread_row, sum_row


@jit_merged
def _code(code, c, bases, base, rows, n, board_table, kind_table):
    """Write row c of code: the sum of row `base` of bases and of the tables' rows for order n."""
    sum_row(code, c, bases, base, board_table, rows, n, 0, NUM_BOARD)
    sum_row(code, c, code, c, kind_table, rows, n, NUM_BOARD, ROWS)


@jit_float
def _score(code, weight):
    score = np.float32(0.0)
    for h in range(code.shape[0]):
        score += max(code[h], np.float32(0.0)) * weight[h]
    return score


@jit_float
def _softmax(scores, blocked, first, last, probability):
    """Turn scores first..last-1 into log-probabilities; write the probabilities, 0 if blocked."""
    highest = np.float32(-np.inf)
    for n in range(first, last):
        if not blocked[n]:
            highest = max(highest, scores[n])
    total = np.float32(0.0)
    for n in range(first, last):
        probability[n] = np.float32(0.0) if blocked[n] else np.exp(scores[n] - highest)
        total += probability[n]
    log_total = highest + np.log(total)
    for n in range(first, last):
        probability[n] /= total
        scores[n] -= log_total


@jit_float
def _forward(decisions, rows, blocked, board_table, kind_table, bases, weight, picked, code, out):
    """Write `out`: (N,) probabilities and logs, (S,) log-probability, entropy, greatest entropy."""
    probability, logprobs, logprob, entropy, greatest = out
    order_start = decisions.order_start
    for slot in range(order_start.shape[0] - 1):
        first, last = order_start[slot], order_start[slot + 1]
        possible = 0
        for n in range(first, last):
            possible += not blocked[n]
            _code(code, 0, bases, slot, rows, n, board_table, kind_table)
            logprobs[n] = _score(code[0], weight)
        _softmax(logprobs, blocked, first, last, probability)
        sum_ = np.float32(0.0)
        for n in range(first, last):
            sum_ -= probability[n] * logprobs[n]
        logprob[slot] = np.float32(-np.inf) if blocked[picked[slot]] else logprobs[picked[slot]]
        entropy[slot], greatest[slot] = sum_, np.log(np.float32(possible))


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
    logprobs,
    entropy,
    d_logprob,
    d_entropy,
    code,
    d_board,
    d_kind,
    d_bases,
    d_weight,
):
    """Add to the gradients d_board, d_kind, d_bases and d_weight; d_logprob, d_entropy (S,)."""
    order_start = decisions.order_start
    for slot in range(order_start.shape[0] - 1):
        for n in range(order_start[slot], order_start[slot + 1]):
            of_entropy = d_entropy[slot] * (logprobs[n] + entropy[slot])
            slope = -probability[n] * (d_logprob[slot] + of_entropy)
            if n == picked[slot]:
                slope += d_logprob[slot]
            if slope == 0:
                continue
            _code(code, 0, bases, slot, rows, n, board_table, kind_table)
            for h in range(weight.shape[0]):
                positive = code[0, h] > 0
                d_weight[h] += slope * code[0, h] if positive else np.float32(0.0)
                code[0, h] = slope * weight[h] if positive else np.float32(0.0)
            add_row(d_bases, slot, code, 0)
            spread_row(d_board, rows, n, 0, NUM_BOARD, code, 0)
            spread_row(d_kind, rows, n, NUM_BOARD, ROWS, code, 0)


@jit_float
def _sample(
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
    scores,
    probability,
    blocked,
    slot_orders,
    chosen,
    logprob,
):
    """Sample order by order; write chosen, slot_orders (S,), logprob (D,), probability (N,)."""
    slot_start, order_start, order = decisions.slot_start, decisions.order_start, decisions.order
    base, plain = scratch[1], scratch[2]
    hidden = base.shape[0]
    for d in range(slot_start.shape[0] - 1):
        begin = slot_start[d]
        for h in range(hidden):
            base[h] = context[d, h]
        logprob[d] = 0
        for slot in range(begin, slot_start[d + 1]):
            first, last = order_start[slot], order_start[slot + 1]
            best, pick = np.float32(-np.inf), first
            for n in range(first, last):
                relation, blocked[n] = relate(columns, slot_orders, begin, slot, order[n])
                if blocked[n]:
                    continue
                rows[n, RELATION] = FIRST_RELATION + relation if autoregressive else NONE
                _code(scratch, 0, scratch, 1, rows, n, board_table, kind_table)
                rank = scores[n] = _score(scratch[0], weight)
                if noise.shape[0] > 0:  # the highest of score + Gumbel noise is a sample
                    rank += temperature[d] * noise[n]
                if rank > best:
                    best, pick = rank, n
            _softmax(scores, blocked, first, last, probability)
            logprob[d] += scores[pick]
            chosen[slot] = pick - first
            slot_orders[slot] = order[pick]
            if autoregressive:
                rows[pick, RELATION] = NONE
                _code(scratch, 2, context, d, rows, pick, board_table, kind_table)
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
) -> tuple[np.ndarray, ...]:
    """Return (N,) probabilities and their logarithms, and by slot (S,) that of the `picked` order,
    the entropy and the greatest possible, in nats. board_table (named, H) float32 is of the
    provinces in `rows.named`; bases (S, H) are added to the code of each order of a slot."""
    slots, orders = len(bases), len(decisions.order)
    out = tuple(np.empty(size, np.float32) for size in (orders, orders, slots, slots, slots))
    code = aligned(1, len(weight))
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
    logprobs: np.ndarray,
    entropy: np.ndarray,
    d_logprob: np.ndarray,
    d_entropy: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients of board_table, kind_table, bases and weight, from those (S,) of the
    third and fourth result of `score_orders`."""
    inputs = board_table, kind_table, bases, weight
    gradients = tuple(zeros(*array.shape) for array in inputs)
    code = aligned(1, len(weight))
    _backward(
        decisions,
        rows.rows,
        *inputs,
        picked,
        probability,
        logprobs,
        entropy,
        d_logprob,
        d_entropy,
        code,
        *gradients,
    )
    return gradients


def sample_orders(
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
    """Sample orders, unit by unit.

    Returns (S,) positions of the chosen orders in the slots' lists, (D,) log-probabilities, and
    (N,) probabilities, 0 if blocked. context (D, H) is added to the code of each order of a
    decision; `earlier`, (H, H) and (H,), is the layer through which a chosen order's code reaches
    later units; noise (N,) is Gumbel's, empty for the likeliest orders; temperature is (D,).
    """
    slots, orders = len(decisions.slot_province), len(decisions.order)
    chosen, slot_orders = np.empty(slots, np.int64), np.empty(slots, np.int32)
    scores, probability = np.zeros((2, orders), np.float32)
    logprob, scratch = np.empty(len(context), np.float32), aligned(3, len(weight))
    _sample(
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
        scores,
        probability,
        rows.blocked,
        slot_orders,
        chosen,
        logprob,
    )
    return chosen, logprob, probability
