"""Kernels for a policy network's sums of rows of embedding tables and of provinces' embeddings.

The sums are short and ragged: kernels read each row once, where operations on whole arrays would
make several passes over memory.
"""

import math
from typing import NamedTuple

import numpy as np

from ..._jit import jit, jit_float
from .vectors import add_row, spread_row, sum_row


class Neighbors(NamedTuple):
    """Which provinces a mean is over, as lists one behind the other."""

    start: np.ndarray  # (V + 1,) int32, where each province's list begins
    province: np.ndarray  # (all,) int32
    share: np.ndarray  # (all,) float32

    @classmethod
    def of(cls, shares: np.ndarray) -> "Neighbors":
        """Return those of a matrix (V, V), whose row v has the shares of the provinces in v's."""
        row, province = np.nonzero(shares)
        start = np.searchsorted(row, np.arange(len(shares) + 1))
        return cls(start.astype(np.int32), province.astype(np.int32), shares[row, province])


def aligned(*shape: int) -> np.ndarray:
    """Return an unfilled array of float32 that begins where a cache line does.

    NumPy's own begin within one, so that every second vector of a row would lie in two.
    """
    room = np.empty(4 * math.prod(shape) + 64, np.uint8)
    return np.ndarray(shape, np.float32, room, -room.ctypes.data % 64)


def zeros(*shape: int) -> np.ndarray:
    out = aligned(*shape)
    out.fill(0)
    return out


@jit
def _sum_rows(rows, table, starts, out):
    each = rows.shape[0] // starts.shape[0]
    for b in range(rows.shape[0]):
        sum_row(out, b, starts, b // each, table, rows, b, 0, rows.shape[1])


@jit
def _spread_rows(rows, grad_output, d_table, d_starts):
    each = rows.shape[0] // max(d_starts.shape[0], 1)
    for b in range(rows.shape[0]):
        if d_starts.shape[0] > 0:
            add_row(d_starts, b // each, grad_output, b)
        spread_row(d_table, rows, b, 0, rows.shape[1], grad_output, b)


def sum_rows(rows: np.ndarray, table: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return (sums, H) the sums of rows (sums, any) of a table (length, H) float32.

    `starts` (n, H) are what they begin with, each for as many that follow each other; empty:
    nothing.
    """
    out = aligned(len(rows), table.shape[1])
    _sum_rows(rows, table, starts if len(starts) else zeros(1, table.shape[1]), out)
    return out


def spread_rows(
    rows: np.ndarray, grad_output: np.ndarray, count: int, num_starts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of a table (count, H) and of starts from that of their `sum_rows`."""
    d_table = zeros(count, grad_output.shape[1])
    d_starts = zeros(num_starts, grad_output.shape[1])
    _spread_rows(rows, grad_output, d_table, d_starts)
    return d_table, d_starts


def add_to_rows(rows: np.ndarray, parts: np.ndarray, table: np.ndarray) -> None:
    """Add parts (sums, H) to those rows (sums, any) of a table that each names."""
    _spread_rows(rows, parts, table, table[:0])


@jit_float
def _exchange(start, province, share, own, near, out):
    """Write out (G, V, H); `start` (V + 1,) says where a province's neighbors and shares begin."""
    for g in range(near.shape[0]):
        codes = near[g]
        for v in range(near.shape[1]):
            code = out[g, v]
            for h in range(near.shape[2]):
                code[h] = own[g, v, h]
            for k in range(start[v], start[v + 1]):
                neighbor, part = codes[province[k]], share[k]
                for h in range(near.shape[2]):
                    code[h] += part * neighbor[h]
            for h in range(near.shape[2]):
                code[h] = max(code[h], np.float32(0))


@jit_float
def _spread_exchange(start, province, share, grad_output, out, d_own, d_near):
    """Write d_own and d_near from grad_output, (G, V, H) each; `out` is what `_exchange` wrote."""
    for g in range(out.shape[0]):
        for v in range(out.shape[1]):
            for h in range(out.shape[2]):
                d_own[g, v, h] = grad_output[g, v, h] if out[g, v, h] > 0 else np.float32(0)
        codes = d_own[g]
        for v in range(out.shape[1]):
            code = d_near[g, v]
            for h in range(out.shape[2]):
                code[h] = 0
            for k in range(start[v], start[v + 1]):
                neighbor, part = codes[province[k]], share[k]
                for h in range(out.shape[2]):
                    code[h] += part * neighbor[h]


def exchange(neighbors: Neighbors, own: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the ReLU (G, V, H) float32 of `own` plus the mean of the neighbors' `near`."""
    out = aligned(*near.shape)
    _exchange(*neighbors, own, near, out)
    return out


def spread_exchange(
    back: Neighbors, grad_output: np.ndarray, out: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of `own` and `near` from that of their `exchange`, which was `out`;
    `back` are the neighbors the other way around."""
    d_own, d_near = aligned(*out.shape), aligned(*out.shape)
    _spread_exchange(*back, grad_output, out, d_own, d_near)
    return d_own, d_near


@jit_float
def _normalise(x, weight, bias, eps, moments, out):
    """Write out (B, H) and moments (B, 2), mean and inverse deviation; weight and bias (H,)."""
    part = np.float32(1) / np.float32(x.shape[1])
    for b in range(x.shape[0]):
        total, squares = np.float32(0), np.float32(0)
        for h in range(x.shape[1]):
            total += x[b, h]
        mean = total * part
        for h in range(x.shape[1]):
            squares += (x[b, h] - mean) * (x[b, h] - mean)
        scale = np.float32(1) / np.sqrt(squares * part + eps)
        moments[b, 0], moments[b, 1] = mean, scale
        for h in range(x.shape[1]):
            out[b, h] = (x[b, h] - mean) * scale * weight[h] + bias[h]


@jit_float
def _normalise_back(x, weight, moments, grad_output, d_x, d_weight, d_bias):
    """Write d_x (B, H); add to d_weight and d_bias (H,); moments (B, 2) are `_normalise`'s."""
    part = np.float32(1) / np.float32(x.shape[1])
    for b in range(x.shape[0]):
        mean, scale = moments[b, 0], moments[b, 1]
        total, along = np.float32(0), np.float32(0)
        for h in range(x.shape[1]):
            code, slope = (x[b, h] - mean) * scale, grad_output[b, h]
            d_weight[h] += slope * code
            d_bias[h] += slope
            total += slope * weight[h]
            along += slope * weight[h] * code
        total, along = total * part, along * part * scale
        for h in range(x.shape[1]):
            d_x[b, h] = scale * (grad_output[b, h] * weight[h] - total - (x[b, h] - mean) * along)


def normalise(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return layer normalisation (Ba et al. 2016) of rows x (B, H) float32, and (B, 2) the mean of
    each row and one over its standard deviation."""
    out, moments = aligned(*x.shape), np.empty((len(x), 2), np.float32)
    _normalise(x, weight, bias, np.float32(eps), moments, out)
    return out, moments


def normalise_back(
    x: np.ndarray, weight: np.ndarray, moments: np.ndarray, grad_output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients of x (B, H), weight and bias from that of their `normalise`."""
    d_x, d_weight, d_bias = aligned(*x.shape), zeros(x.shape[1]), zeros(x.shape[1])
    _normalise_back(x, weight, moments, grad_output, d_x, d_weight, d_bias)
    return d_x, d_weight, d_bias


@jit_float
def _mean_provinces(owner, x, count, out):
    for g in range(x.shape[0]):
        count[:] = 0
        count[0] = x.shape[1]
        for p in range(out.shape[1]):
            for h in range(x.shape[2]):
                out[g, p, h] = 0
        board_sum = out[g, 0]
        for v in range(x.shape[1]):
            code, power = x[g, v], owner[g, v]
            for h in range(x.shape[2]):
                board_sum[h] += code[h]
            if power > 0:
                count[power] += 1
                own = out[g, power]
                for h in range(x.shape[2]):
                    own[h] += code[h]
        for p in range(out.shape[1]):
            part = np.float32(1) / np.float32(max(count[p], 1))
            for h in range(x.shape[2]):
                out[g, p, h] *= part


@jit_float
def _spread_means(owner, grad_codes, grad_means, count, out):
    for g in range(out.shape[0]):
        count[:] = 0
        for v in range(out.shape[1]):
            count[owner[g, v]] += 1
        for p in range(grad_means.shape[1]):
            part = np.float32(1) / np.float32(out.shape[1] if p == 0 else max(count[p], 1))
            for h in range(out.shape[2]):
                grad_means[g, p, h] *= part
        board_grad = grad_means[g, 0]
        for v in range(out.shape[1]):
            code, grad, power = out[g, v], grad_codes[g, v], owner[g, v]
            if power > 0:
                own = grad_means[g, power]
                for h in range(out.shape[2]):
                    code[h] = grad[h] + (board_grad[h] + own[h])
            else:
                for h in range(out.shape[2]):
                    code[h] = grad[h] + board_grad[h]


def mean_provinces(owner: np.ndarray, x: np.ndarray, num_powers: int) -> np.ndarray:
    """Return means of provinces' codes x (G, V, H) float32: (G, 1 + P, H), of all of a board and by
    owner (G, V), 1..P; 0 for who owns none."""
    out = aligned(len(x), 1 + num_powers, x.shape[2])
    _mean_provinces(owner, x, np.empty(1 + num_powers, np.int64), out)
    return out


def spread_means(owner: np.ndarray, grad_codes: np.ndarray, grad_means: np.ndarray) -> np.ndarray:
    """Return the gradient (G, V, H) of codes from those of themselves and of their
    `mean_provinces`, which is overwritten."""
    out = aligned(*grad_codes.shape)
    _spread_means(owner, grad_codes, grad_means, np.empty(grad_means.shape[1], np.int64), out)
    return out


@jit_float
def _sum_earlier(slot_start, codes, out, backwards):
    for d in range(slot_start.shape[0] - 1):
        first, last = slot_start[d], slot_start[d + 1]
        for n in range(last - first):
            slot = last - 1 - n if backwards else first + n
            for h in range(codes.shape[1]):
                out[slot, h] = 0
            if n > 0:
                before = slot + 1 if backwards else slot - 1
                for h in range(codes.shape[1]):
                    out[slot, h] = out[before, h] + codes[before, h]


def sum_earlier(slot_start: np.ndarray, codes: np.ndarray, backwards: bool = False) -> np.ndarray:
    """Return for each slot the sum of the codes (S, H) of its decision's earlier slots;
    `backwards`: of its later ones, which turns a gradient of those sums into one of the codes."""
    out = aligned(*codes.shape)
    _sum_earlier(slot_start, codes, out, backwards)
    return out
