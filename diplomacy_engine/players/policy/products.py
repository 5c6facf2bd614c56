"""Matrix products for a policy network, with AVX-512.

PyTorch's own (MKL) use half of an AMD processor's vector width: 100 GFLOP/s of float32 on one core,
where these make 200. They gather the rows that they multiply, so that no copy of these is made.
"""

from collections.abc import Sequence

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ..._jit import jit
from .sums import aligned, zeros
from .vectors import BLOCK, COMPILED, LANES, VECTOR, Flat, add_row, number

FAST = COMPILED and llvmlite.binding.get_host_cpu_features().get("avx512f", False)
ROWS = 4  # of a tile, which is BLOCK columns wide
FIRST = ir.Constant(ir.IntType(32), 0)
ALL_FIRST = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
CHUNK = 256  # rows whose products are summed while they are in the cache


@intrinsic
def _tile(typing, a, a_at, a_step, b, b_rows, column, first, last, start, start_at, out, out_at):
    """Write four rows of out, from out_at on: those of start, from start_at on, plus the sum over k
    of a[a_at + k * a_step] times the vector of BLOCK from `column` on of row b_rows[k] of b; all
    but b_rows by flat positions."""

    def generate(context, builder, signature, arguments):
        a, b, rows, start, out = (
            Flat(context, builder, signature.args[n], arguments[n]) for n in (0, 3, 4, 8, 10)
        )
        _, a_at, a_step, _, _, column, first, last, _, start_at, _, out_at = arguments
        from_rows = cgutils.unpack_tuple(builder, a_at, ROWS)
        from_start = cgutils.unpack_tuple(builder, start_at, ROWS)
        to_rows = cgutils.unpack_tuple(builder, out_at, ROWS)
        sums = [
            [cgutils.alloca_once(builder, VECTOR) for _ in range(BLOCK // LANES)] for _ in to_rows
        ]
        for totals, at in zip(sums, from_start):
            for total, vector in zip(totals, start.load(at, BLOCK)):
                builder.store(vector, total)
        with cgutils.for_range_slice(builder, first, last, number(1)) as (k, _):
            row = builder.mul(rows.number(k), b.shape[1])
            vectors = b.load(builder.add(row, column), BLOCK)
            for totals, at in zip(sums, from_rows):
                factor = a.scalar(builder.add(at, builder.mul(k, a_step)))
                factor = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), factor, FIRST)
                factor = builder.shuffle_vector(factor, factor, ALL_FIRST)
                for total, vector in zip(totals, vectors):
                    product = builder.fmul(factor, vector, flags=("contract",))
                    sum_ = builder.fadd(product, builder.load(total), flags=("contract",))
                    builder.store(sum_, total)
        for totals, at in zip(sums, to_rows):
            out.store([builder.load(total) for total in totals], at)
        return context.get_dummy_value()

    return types.none(
        a, a_at, a_step, b, b_rows, column, first, last, start, start_at, out, out_at
    ), generate


@jit
def _multiply(x, x_rows, weight, every, start, start_rows, out, out_rows):
    """Write start[start_rows] + x[x_rows] @ weight (K, H) to out[out_rows], which names no row
    twice; start may be out."""
    inner, width, count = weight.shape[0], weight.shape[1], x_rows.shape[0]
    for first in range(0, count, CHUNK):
        for column in range(0, width, BLOCK):  # these of all rows of weight fit into the cache
            for i in range(first, min(first + CHUNK, count), ROWS):
                # Behind the last row it is computed again, and the same is written once more.
                j, k, m = min(i + 1, count - 1), min(i + 2, count - 1), min(i + 3, count - 1)
                a = x_rows[i] * inner, x_rows[j] * inner, x_rows[k] * inner, x_rows[m] * inner
                o = out_rows[i] * width, out_rows[j] * width, out_rows[k] * width
                o = o[0] + column, o[1] + column, o[2] + column, out_rows[m] * width + column
                s = start_rows[i] * width, start_rows[j] * width, start_rows[k] * width
                s = s[0] + column, s[1] + column, s[2] + column, start_rows[m] * width + column
                _tile(x, a, 1, weight, every, column, 0, inner, start, s, out, o)


@jit
def _multiply_back(grad, x, x_rows, out):
    """Add grad (n, H).T @ x[x_rows] to out (H, K)."""
    height, width, count = grad.shape[1], x.shape[1], x_rows.shape[0]
    for first in range(0, count, CHUNK):
        last = min(first + CHUNK, count)
        for r in range(0, height, ROWS):
            for column in range(0, width, BLOCK):
                g = r, r + 1, r + 2, r + 3
                o = r * width + column
                o = o, o + width, o + 2 * width, o + 3 * width
                _tile(grad, g, height, x, x_rows, column, first, last, out, o, out, o)


def fits(weight_shape: tuple[int, int]) -> bool:
    """Tell whether products with a weight of that shape (H, K) are faster here."""
    return FAST and not weight_shape[0] % BLOCK and not weight_shape[1] % BLOCK


def multiply(
    x: np.ndarray, rows: Sequence[np.ndarray], weights: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """Return x[rows[r]] @ weights[r].T + bias[r], one r after the other, (all rows, H); x is
    (n, K), weights are (R, H, K), bias (R, H), float32."""
    counts = [len(own) for own in rows]
    out = aligned(sum(counts), weights.shape[1])
    every, begin = np.arange(max(*out.shape, x.shape[1])), 0
    start = zeros(*weights.shape[:2]) if bias is None else bias
    for r, (own, count) in enumerate(zip(rows, counts)):
        part, weight = out[begin : begin + count], np.ascontiguousarray(weights[r].T)
        _multiply(x, own, weight, every, start, np.full(count, r), part, every[:count])
        begin += count
    return out


def multiply_gradients(
    x: np.ndarray, rows: Sequence[np.ndarray], weights: np.ndarray, grad: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients of x, weights and bias from that of what `multiply` returned."""
    d_weights, d_bias = zeros(*weights.shape), zeros(*weights.shape[:2])
    every, begin = np.arange(max(*grad.shape, x.shape[1])), 0
    dense = len(rows) == 1 and len(rows[0]) == len(x)  # every row is written
    d_x = aligned(*x.shape) if dense else zeros(*x.shape)
    start = zeros(1, x.shape[1]) if dense else d_x
    for r, own in enumerate(rows):
        part = grad[begin : begin + len(own)]
        start_rows = np.zeros_like(own) if dense else own
        _multiply(part, every[: len(own)], weights[r], every, start, start_rows, d_x, own)
        _multiply_back(part, x, own, d_weights[r])
        _add_rows(part, d_bias[r : r + 1])
        begin += len(own)
    return d_x, d_weights, d_bias


@jit
def _add_rows(rows, out):
    for b in range(rows.shape[0]):
        add_row(out, 0, rows, b)
