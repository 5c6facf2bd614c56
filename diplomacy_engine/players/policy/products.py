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

from ..._jit import jit, jit_float
from .sums import aligned, zeros

FAST = llvmlite.binding.get_host_cpu_features().get("avx512f", False)
LANES, ROWS, BLOCK = 16, 4, 64  # floats of a vector; rows and columns of a tile
CHUNK = 256  # rows whose products are summed while they are in the cache


@intrinsic
def _tile(typing, a, a_at, a_step, b, b_rows, column, first, last, out, out_at):
    """Add to four rows of out, from out_at on, the sum over k of a[a_at + k * a_step] times the
    vector of 64 from `column` on of row b_rows[k] of b; all but b_rows by flat positions."""

    def generate(context, builder, signature, arguments):
        _, a_at, a_step, _, _, column, first, last, _, out_at = arguments
        kinds = signature.args
        index, vector = ir.IntType(64), ir.VectorType(ir.FloatType(), LANES)

        def data(number):
            return context.make_array(kinds[number])(context, builder, arguments[number]).data

        def pointer(base, at):
            return builder.bitcast(builder.gep(base, [at]), vector.as_pointer())

        a, b, rows, out = data(0), data(3), data(4), data(8)
        width = context.make_array(kinds[3])(context, builder, arguments[3])
        width = cgutils.unpack_tuple(builder, width.shape, 2)[1]
        lanes = [ir.Constant(index, LANES * n) for n in range(BLOCK // LANES)]
        from_rows = cgutils.unpack_tuple(builder, a_at, ROWS)
        to_rows = cgutils.unpack_tuple(builder, out_at, ROWS)
        sums = []
        for row in to_rows:
            for lane in lanes:
                sums.append(cgutils.alloca_once(builder, vector))
                place = pointer(out, builder.add(row, lane))
                builder.store(builder.load(place, align=4), sums[-1])
        with cgutils.for_range_slice(builder, first, last, ir.Constant(index, 1)) as (k, _):
            row = builder.load(builder.gep(rows, [k]))
            row = context.cast(builder, row, kinds[4].dtype, types.int64)
            start = builder.add(builder.mul(row, width), column)
            parts = [builder.load(pointer(b, builder.add(start, n)), align=4) for n in lanes]
            for r, at in enumerate(from_rows):
                scalar = builder.load(builder.gep(a, [builder.add(at, builder.mul(k, a_step))]))
                one = builder.insert_element(
                    ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
                )
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
                scalar = builder.shuffle_vector(one, one, zeros)
                for n, part in enumerate(parts):
                    total = sums[r * len(lanes) + n]
                    product = builder.fmul(scalar, part, flags=("contract",))
                    product = builder.fadd(product, builder.load(total), flags=("contract",))
                    builder.store(product, total)
        for r, row in enumerate(to_rows):
            for n, lane in enumerate(lanes):
                value = builder.load(sums[r * len(lanes) + n])
                builder.store(value, pointer(out, builder.add(row, lane)), align=4)
        return context.get_dummy_value()

    return types.none(a, a_at, a_step, b, b_rows, column, first, last, out, out_at), generate


@jit
def _multiply(x, x_rows, weight, every, out, out_rows):
    """Add x[x_rows] @ weight (K, H) to out[out_rows]; a row is not named twice in out_rows."""
    inner, width, count = weight.shape[0], weight.shape[1], x_rows.shape[0]
    for first in range(0, count, CHUNK):
        for column in range(0, width, BLOCK):  # these of all rows of weight fit into the cache
            for i in range(first, min(first + CHUNK, count), ROWS):
                # Behind the last row it is computed again, and the same is written once more.
                j, k, m = min(i + 1, count - 1), min(i + 2, count - 1), min(i + 3, count - 1)
                a = x_rows[i] * inner, x_rows[j] * inner, x_rows[k] * inner, x_rows[m] * inner
                o = out_rows[i] * width, out_rows[j] * width, out_rows[k] * width
                o = o[0] + column, o[1] + column, o[2] + column, out_rows[m] * width + column
                _tile(x, a, 1, weight, every, column, 0, inner, out, o)


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
                _tile(grad, g, height, x, x_rows, column, first, last, out, o)


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
    for r, (own, count) in enumerate(zip(rows, counts)):
        part = out[begin : begin + count]
        part[:] = 0 if bias is None else bias[r]
        weight = np.ascontiguousarray(weights[r].T)
        _multiply(x, own, weight, every, part, every[:count])
        begin += count
    return out


def multiply_gradients(
    x: np.ndarray, rows: Sequence[np.ndarray], weights: np.ndarray, grad: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients of x, weights and bias from that of what `multiply` returned."""
    d_x, d_weights, d_bias = zeros(*x.shape), zeros(*weights.shape), zeros(*weights.shape[:2])
    every, begin = np.arange(max(*grad.shape, x.shape[1])), 0
    for r, own in enumerate(rows):
        part = grad[begin : begin + len(own)]
        _multiply(part, every[: len(own)], weights[r], every, d_x, own)
        _multiply_back(part, x, own, d_weights[r])
        _add_rows(part, d_bias[r])
        begin += len(own)
    return d_x, d_weights, d_bias


@jit_float
def _add_rows(rows, out):
    for b in range(rows.shape[0]):
        for h in range(rows.shape[1]):
            out[h] += rows[b, h]
