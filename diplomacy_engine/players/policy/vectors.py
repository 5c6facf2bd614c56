"""Sums of rows of float32, in vectors that stay in the processor's registers.

Left to the compiler, a loop over a row's columns begins with checks that no two arrays overlap and
passes every sum through memory: sums of rows of 64 then take three times as long.
"""

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from ..._jit import jit, jit_merged
from ...constants import NONE

LANES = 16  # floats of a vector; without AVX-512 the compiler makes two or four of one
BLOCK = 64  # columns that are summed at once, four vectors
COMPILED = not config.DISABLE_JIT  # in plain Python there are no vectors
VECTOR = ir.VectorType(ir.FloatType(), LANES)


class Flat:
    """A contiguous array in an intrinsic, by flat positions of 64 bits."""

    def __init__(self, context, builder, kind, value):
        assert kind.layout == "C", kind
        self.context, self.builder, self.kind = context, builder, kind
        self.array = context.make_array(kind)(context, builder, value)
        self.shape = cgutils.unpack_tuple(builder, self.array.shape, kind.ndim)

    def scalar(self, at):
        return self.builder.load(self.builder.gep(self.array.data, [at]))

    def number(self, at):
        return self.context.cast(self.builder, self.scalar(at), self.kind.dtype, types.int64)

    def places(self, at, columns):
        """Return where the vectors of so many columns from a position on are."""
        for first in range(0, columns, LANES):
            place = self.builder.gep(self.array.data, [self.builder.add(at, number(first))])
            yield self.builder.bitcast(place, VECTOR.as_pointer())

    def load(self, at, columns):
        return [self.builder.load(place, align=4) for place in self.places(at, columns)]

    def store(self, vectors, at):
        for vector, place in zip(vectors, self.places(at, LANES * len(vectors))):
            self.builder.store(vector, place, align=4)


def number(value: int) -> ir.Constant:
    return ir.Constant(ir.IntType(64), value)


@intrinsic(prefer_literal=True)
def _sum(typing, columns, out, out_at, start, start_at, table, column, rows, rows_at, count):
    """Write so many columns of out, from out_at on: those of start, from start_at on, plus those
    of all rows of the table that `count` of `rows` name, from rows_at on."""

    def generate(context, builder, signature, arguments):
        width, kinds = signature.args[0].literal_value, signature.args
        out, start, table, rows = (
            Flat(context, builder, kinds[n], arguments[n]) for n in (1, 3, 5, 7)
        )
        _, _, out_at, _, start_at, _, column, _, rows_at, count = arguments
        sums = []
        for vector in start.load(start_at, width):
            sums.append(cgutils.alloca_once(builder, VECTOR))
            builder.store(vector, sums[-1])
        with cgutils.for_range(builder, count) as loop:
            row = rows.number(builder.add(rows_at, loop.index))
            with builder.if_then(builder.icmp_signed("!=", row, number(NONE))):
                at = builder.add(builder.mul(row, table.shape[1]), column)
                for total, vector in zip(sums, table.load(at, width)):
                    builder.store(builder.fadd(builder.load(total), vector), total)
        out.store([builder.load(total) for total in sums], out_at)
        return context.get_dummy_value()

    return types.none(
        columns, out, out_at, start, start_at, table, column, rows, rows_at, count
    ), generate


@intrinsic(prefer_literal=True)
def _add(typing, columns, out, out_at, part, part_at):
    """Add so many columns of `part`, from part_at on, to those of out from out_at on."""

    def generate(context, builder, signature, arguments):
        width, kinds = signature.args[0].literal_value, signature.args
        out, part = (Flat(context, builder, kinds[n], arguments[n]) for n in (1, 3))
        pairs = zip(out.load(arguments[2], width), part.load(arguments[4], width))
        out.store([builder.fadd(*pair) for pair in pairs], arguments[2])
        return context.get_dummy_value()

    return types.none(columns, out, out_at, part, part_at), generate


@intrinsic(prefer_literal=True)
def _spread(typing, columns, out, column, rows, rows_at, count, part, part_at):
    """Add so many columns of `part`, from part_at on, to those from `column` on of all rows of out
    that `count` of `rows` name, from rows_at on."""

    def generate(context, builder, signature, arguments):
        width, kinds = signature.args[0].literal_value, signature.args
        out, rows, part = (Flat(context, builder, kinds[n], arguments[n]) for n in (1, 3, 6))
        _, _, column, _, rows_at, count, _, part_at = arguments
        vectors = part.load(part_at, width)
        with cgutils.for_range(builder, count) as loop:
            row = rows.number(builder.add(rows_at, loop.index))
            with builder.if_then(builder.icmp_signed("!=", row, number(NONE))):
                at = builder.add(builder.mul(row, out.shape[1]), column)
                out.store([builder.fadd(*pair) for pair in zip(out.load(at, width), vectors)], at)
        return context.get_dummy_value()

    return types.none(columns, out, column, rows, rows_at, count, part, part_at), generate


@jit
def _parts(width):
    return (width - width % BLOCK, width - width % LANES) if COMPILED else (0, 0)


@jit_merged
def sum_row(out, o, start, s, table, rows, n, first, last):
    """Write row o of out: row s of start, plus the rows of the table that rows[n, first:last]
    name; NONE stands for no row. All are contiguous, and out and start may be the same."""
    width, at = table.shape[1], n * rows.shape[1] + first
    by_block, by_vector = _parts(width)
    for h in range(0, by_block, BLOCK):
        _sum(BLOCK, out, o * width + h, start, s * width + h, table, h, rows, at, last - first)
    for h in range(by_block, by_vector, LANES):
        _sum(LANES, out, o * width + h, start, s * width + h, table, h, rows, at, last - first)
    for h in range(by_vector, width):
        total = start[s, h]
        for k in range(first, last):
            if rows[n, k] != NONE:
                total += table[rows[n, k], h]
        out[o, h] = total


@jit_merged
def add_row(out, o, part, p):
    """Add row p of a contiguous array to row o of another."""
    width = out.shape[1]
    by_block, by_vector = _parts(width)
    for h in range(0, by_block, BLOCK):
        _add(BLOCK, out, o * width + h, part, p * width + h)
    for h in range(by_block, by_vector, LANES):
        _add(LANES, out, o * width + h, part, p * width + h)
    for h in range(by_vector, width):
        out[o, h] += part[p, h]


@jit_merged
def spread_row(out, rows, n, first, last, part, p):
    """Add row p of a contiguous array to all rows of another that rows[n, first:last] name."""
    width, at, count = out.shape[1], n * rows.shape[1] + first, last - first
    by_block, by_vector = _parts(width)
    for h in range(0, by_block, BLOCK):
        _spread(BLOCK, out, h, rows, at, count, part, p * width + h)
    for h in range(by_block, by_vector, LANES):
        _spread(LANES, out, h, rows, at, count, part, p * width + h)
    for h in range(by_vector, width):
        for k in range(first, last):
            if rows[n, k] != NONE:
                out[rows[n, k], h] += part[p, h]
