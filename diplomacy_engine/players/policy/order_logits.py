"""Kernels of a policy over legal orders.

An order's score is the inner product of a weight vector with the ReLU of its embedding (`code`); a
slot's policy is the softmax over its legal orders. The lists are ragged and the sums short, so
kernels are several times as fast as operations on whole arrays of codes (N, H).
"""

from typing import NamedTuple

import numpy as np

from ..._jit import jit_float, jit_merged
from ...constants import NONE
from ...games.decisions import Decisions
from .inputs import FIRST_RELATION, NUM_BOARD, RELATION, ROWS, OrderColumns, OrderRows, relate
from .sums import aligned, zeros
from .vectors import add_row, spread_row, sum_row


class ScoreTables(NamedTuple):
    """What the scores of orders are made of, float32 with H columns each."""

    board: np.ndarray  # (named, H), of the provinces in `OrderRows.named`
    kind: np.ndarray  # (NUM_KINDS, H)
    base: np.ndarray  # (S, H) or (D, H), added to the code of each order of a slot or decision
    weight: np.ndarray  # (H,)


class SlotScores(NamedTuple):
    """What scores say of N orders in S slots, float32, in nats."""

    probability: np.ndarray  # (N,), 0 of a blocked order
    logprobs: np.ndarray  # (N,), of each order
    logprob: np.ndarray  # (S,), of the picked one
    entropy: np.ndarray  # (S,)
    greatest: np.ndarray  # (S,), entropy if all were as likely


@jit_merged
def _code(code, c, base, b, rows, n, tables):
    """Write row c of code: the sum of row b of base and of the tables' rows for order n."""
    sum_row(code, c, base, b, tables.board, rows, n, 0, NUM_BOARD)
    sum_row(code, c, code, c, tables.kind, rows, n, NUM_BOARD, ROWS)


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
def _forward(decisions, lookup, tables, picked, code, out):
    """Write `out`, SlotScores; lookup are the first two of OrderRows, here and below."""
    order_start, (rows, blocked) = decisions.order_start, lookup
    for slot in range(order_start.shape[0] - 1):
        first, last = order_start[slot], order_start[slot + 1]
        possible = 0
        for n in range(first, last):
            possible += not blocked[n]
            _code(code, 0, tables.base, slot, rows, n, tables)
            out.logprobs[n] = _score(code[0], tables.weight)
        _softmax(out.logprobs, blocked, first, last, out.probability)
        entropy, pick = np.float32(0.0), picked[slot]
        for n in range(first, last):
            entropy -= out.probability[n] * out.logprobs[n]
        out.logprob[slot] = np.float32(-np.inf) if blocked[pick] else out.logprobs[pick]
        out.entropy[slot], out.greatest[slot] = entropy, np.log(np.float32(possible))


@jit_float
def _backward(decisions, lookup, tables, picked, scores, d_logprob, d_entropy, code, gradients):
    """Add to the gradients of the tables, ScoreTables; d_logprob, d_entropy (S,)."""
    order_start, weight, (rows, _) = decisions.order_start, tables.weight, lookup
    for slot in range(order_start.shape[0] - 1):
        for n in range(order_start[slot], order_start[slot + 1]):
            of_entropy = d_entropy[slot] * (scores.logprobs[n] + scores.entropy[slot])
            slope = -scores.probability[n] * (d_logprob[slot] + of_entropy)
            if n == picked[slot]:
                slope += d_logprob[slot]
            if slope == 0:
                continue
            _code(code, 0, tables.base, slot, rows, n, tables)
            for h in range(weight.shape[0]):
                positive = code[0, h] > 0
                gradients.weight[h] += slope * code[0, h] if positive else np.float32(0.0)
                code[0, h] = slope * weight[h] if positive else np.float32(0.0)
            add_row(gradients.base, slot, code, 0)
            spread_row(gradients.board, rows, n, 0, NUM_BOARD, code, 0)
            spread_row(gradients.kind, rows, n, NUM_BOARD, ROWS, code, 0)


@jit_float
def _sample(columns, decisions, lookup, tables, earlier, noise, temperature, scratch, chances, out):
    """Sample order by order. `chances` are (N,) scores, to work with, and probabilities, which are
    written, as are those of `out`: orders and their places (S,), and log-probabilities (D,)."""
    slot_start, order_start, order = decisions.slot_start, decisions.order_start, decisions.order
    (rows, blocked), (scores, probability) = lookup, chances
    slot_orders, chosen, logprob = out
    earlier_weight, earlier_bias = earlier
    base, plain = scratch[1], scratch[2]
    hidden, autoregressive = base.shape[0], earlier_bias.shape[0] > 0
    for d in range(slot_start.shape[0] - 1):
        begin = slot_start[d]
        for h in range(hidden):
            base[h] = tables.base[d, h]
        logprob[d] = 0
        for slot in range(begin, slot_start[d + 1]):
            first, last = order_start[slot], order_start[slot + 1]
            best, pick = np.float32(-np.inf), first
            for n in range(first, last):
                relation, blocked[n] = relate(columns, slot_orders, begin, slot, order[n])
                if blocked[n]:
                    continue
                rows[n, RELATION] = FIRST_RELATION + relation if autoregressive else NONE
                _code(scratch, 0, scratch, 1, rows, n, tables)
                rank = scores[n] = _score(scratch[0], tables.weight)
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
                _code(scratch, 2, tables.base, d, rows, pick, tables)
                for i in range(hidden):
                    total = earlier_bias[i]
                    weights = earlier_weight[i]
                    for h in range(hidden):
                        total += weights[h] * max(plain[h], np.float32(0.0))
                    base[i] += total


def score_orders(
    decisions: Decisions, lookup: OrderRows, tables: ScoreTables, picked: np.ndarray
) -> SlotScores:
    """Return what the scores say of all orders, and of the `picked` one (S,) of each slot."""
    slots, orders = len(tables.base), len(decisions.order)
    sizes = orders, orders, slots, slots, slots
    scores = SlotScores(*(np.empty(size, np.float32) for size in sizes))
    _forward(decisions, lookup[:2], tables, picked, aligned(1, len(tables.weight)), scores)
    return scores


def score_gradients(
    decisions: Decisions,
    lookup: OrderRows,
    tables: ScoreTables,
    picked: np.ndarray,
    scores: SlotScores,
    d_logprob: np.ndarray,
    d_entropy: np.ndarray,
) -> ScoreTables:
    """Return the gradients of the tables, from those (S,) of two of the `scores` they have given:
    `logprob` and `entropy`."""
    gradients = ScoreTables(*(zeros(*table.shape) for table in tables))
    inputs = decisions, lookup[:2], tables, picked, scores, d_logprob, d_entropy
    _backward(*inputs, aligned(1, len(tables.weight)), gradients)
    return gradients


def sample_orders(
    columns: OrderColumns,
    decisions: Decisions,
    lookup: OrderRows,
    tables: ScoreTables,
    earlier: tuple[np.ndarray, np.ndarray],
    noise: np.ndarray,
    temperature: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sample orders, unit by unit.

    Returns (S,) positions of the chosen orders in the slots' lists, (D,) log-probabilities, and
    (N,) probabilities, 0 if blocked. `earlier`, (H, H) and (H,), is the layer through which a
    chosen order's code reaches later units, empty: none; noise (N,) is Gumbel's, empty for the
    likeliest orders; temperature is (D,).
    """
    slots, orders = len(decisions.slot_province), len(decisions.order)
    chosen, slot_orders = np.empty(slots, np.int64), np.empty(slots, np.int32)
    chances = tuple(np.zeros((2, orders), np.float32))
    logprob, scratch = np.empty(len(tables.base), np.float32), aligned(3, len(tables.weight))
    how, out = (earlier, noise, temperature), (slot_orders, chosen, logprob)
    _sample(columns, decisions, lookup[:2], tables, *how, scratch, chances, out)
    return chosen, logprob, chances[1]
