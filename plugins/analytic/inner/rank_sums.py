"""Expected units of ranks: sums over the occupancies of a tile, and over pieces of merged occupancies (docs/model.md,
section 6.2).

Ranks, tiles and pairs follow `rank_points.py`; codes and the knowledge from outer ranks follow
`sparsemap/inner/fiber_codes.py`."""

from __future__ import annotations

from sparsemap.inner.count_programs import run_program
from sparsemap.inner.fiber_codes import (
    BITS_AT,
    CHANCE_AT,
    COMPRESSED,
    COUNT_BITS,
    COUNTED,
    EVEN_AT,
    FIBERS_AT,
    GROUPS_AT,
    OCCUPIED_AT,
    OFFSETS_AT,
    PAYLOAD_AT,
    PROGRAM_STEPS,
    PROGRAMS,
    WIDTHS,
    code_bits,
    code_readable,
    entry_width,
)
from sparsemap.inner.primitives import exponent, inf, mantissa, two_to, whole
from sparsemap.inner.types import Flags, Real, Reals, Reals2, Whole, Wholes, Wholes2

from .metadata import (
    LARGEST_METADATA,
    LARGEST_OFFSETS,
    LARGEST_PAYLOAD,
    METADATA,
    METADATA_BITS,
    NARROW,
    OFFSETS,
    PAYLOAD,
    PAYLOAD_BITS,
)
from .rank_points import (
    AT_ALL,
    BLOCK,
    CODE_OF,
    FULLEST,
    GRAIN,
    LENGTH,
    OF_TILE,
    POINTS_OF,
    SAMPLES,
    SLOTS,
    TOLD_BY,
    USUAL,
    gather,
    span_of,
)

__all__ = ["SUMS", "sum_columns", "sum_units"]

TOTAL = 0
AT_LARGEST = 1
STEADY = 2
ODD = 3
KEPT_TILE = 4
KEPT_UNITS = 5
KEPT_TOTAL = 6
SUMS = 8
"""Columns of `sums`: expectation, value at the largest occupancy, constant value at all other occupancies or -1,
whether some value is negative or not finite; then tile, units and result of the last sum over a whole window."""


def add_column(x: Reals2, row: Whole, count: Whole, sums: Reals2, k: Whole, first: Whole, last: Whole) -> None:
    """Add probabilities times a column of units to row k of `sums`. `first`: the points are the first of the rank;
    `last`: the final point is the largest occupancy."""
    total = sums[k, TOTAL]
    steady = x[row, 0] if first else sums[k, STEADY]
    odd = sums[k, ODD]
    for j in range(count):
        total += x[CHANCE_AT, j] * x[row, j]
        if not (x[row, j] >= 0.0 and x[row, j] < inf):
            odd = 1.0
        if x[row, j] != steady and not (last and j == count - 1):
            steady = -1.0
    sums[k, TOTAL] = total
    sums[k, STEADY] = steady
    sums[k, ODD] = odd
    if last:
        sums[k, AT_LARGEST] = x[row, count - 1]


def settle(t: Whole, tiles: Reals2, chances: Reals, sums: Reals2, k: Whole) -> None:
    """Sum units equal at all occupancies of a merged window over the whole window, in order of k. The last bits decide
    the result of ceil on whole numbers, as in Timeloop (5.5). Only the mantissa of the units matters."""
    if not (tiles[t, GRAIN] > 0.0 and sums[k, STEADY] > 0.0):
        return
    units = mantissa(sums[k, STEADY])
    total = units
    at, count = whole(tiles[t, AT_ALL]), whole(tiles[t, SAMPLES])
    if at > 0:
        if sums[0, KEPT_TILE] != t or sums[0, KEPT_UNITS] != units:
            total = chances[at] * units
            for j in range(1, count):
                total += chances[at + j] * units
            sums[0, KEPT_TILE] = t
            sums[0, KEPT_UNITS] = units
            sums[0, KEPT_TOTAL] = total
        total = sums[0, KEPT_TOTAL]
    sums[k, TOTAL] = total * two_to(exponent(sums[k, STEADY]))


def units_at(
    i: Whole, places: Wholes2, sizes: Reals2, codes: Reals2, told: Reals2, width: Real, x: Reals2, count: Whole
) -> None:  # fmt: skip
    """Metadata, payload and offset units of rank i at `count` points, into `x`."""
    c, row = places[CODE_OF, i], places[TOLD_BY, i]
    length, slots, fullest = sizes[LENGTH, i], sizes[SLOTS, i], sizes[FULLEST, i]
    if codes[c, COUNTED] != 0.0:
        run_program(codes, c, PROGRAMS, told, row, slots, length, fullest, x, count, BITS_AT)
        run_program(codes, c, PROGRAMS + 2 * PROGRAM_STEPS, told, row, slots, length, fullest, x, count, PAYLOAD_AT)
    else:
        code_bits(codes, c, told, row, slots, length, fullest, width, x, count)
    if codes[c, COMPRESSED] != 0.0:
        for j in range(count):
            x[OFFSETS_AT, j] = x[FIBERS_AT, j] + slots * x[OCCUPIED_AT, j]
    else:
        for j in range(count):
            x[OFFSETS_AT, j] = x[FIBERS_AT, j] + x[FIBERS_AT, j] * length


def enter_units(sums: Reals2, pointers: Whole, metadata_bits: Real, payload_bits: Real, out: Reals2, i: Whole) -> None:
    """Write the units of rank i to `out`; the last column is -1 if some number is negative or not finite."""
    out[i, METADATA] = sums[0, TOTAL]
    out[i, PAYLOAD] = sums[2, TOTAL]
    out[i, LARGEST_METADATA] = sums[0, AT_LARGEST]
    out[i, LARGEST_PAYLOAD] = sums[2, AT_LARGEST]
    out[i, METADATA_BITS] = metadata_bits
    out[i, PAYLOAD_BITS] = payload_bits
    out[i, OFFSETS] = sums[1, TOTAL] if pointers else 0.0
    out[i, LARGEST_OFFSETS] = sums[1, AT_LARGEST] if pointers else 0.0
    bits = metadata_bits >= 0.0 and metadata_bits < inf and payload_bits >= 0.0 and payload_bits < inf
    out[i, NARROW] = 0.0 if bits and sums[0, ODD] + sums[1, ODD] + sums[2, ODD] == 0.0 else -1.0


def sum_units(
    places: Wholes2, sizes: Reals2, tiles: Reals2, chances: Reals, pairs: Reals2, filled: Reals, codes: Reals2, told: Reals2,
    read: Flags, pointers: Whole, one: Whole, actual: Whole, cut: Wholes2, pieces: Reals2, span: Wholes, x: Reals2,
    sums: Reals2, out: Reals2,
) -> None:  # fmt: skip
    """Units (n, 9) of ranks: metadata, payload, metadata and payload of the fullest tile, bits per metadata and per
    payload unit, offsets, offsets of the fullest tile, status. Status 1: the code cannot be read, though `read` (F,)
    tells that it is to be; -1: some number is negative or not finite. Without `pointers`, offsets are 0.

    `cut` (2, m): rank, ascending, and bin replaced by pieces. `pieces` (4, m): fibers, occupied positions, groups and
    probability."""
    piece = 0
    sums[0, KEPT_TILE] = -1.0
    for i in range(places.shape[1]):
        c, row = places[CODE_OF, i], places[TOLD_BY, i]
        counted = 1 if codes[c, COUNTED] != 0.0 else 0
        span_of(i, places, sizes, tiles, pairs, one, span)
        stop = piece
        for _ in range(piece, cut.shape[1]):
            if cut[0, stop] != i:
                break
            stop += 1
        width = told[row, WIDTHS] if counted else entry_width(codes, c, told, row, sizes[USUAL, i])
        for k in range(3):
            sums[k, TOTAL] = 0.0
            sums[k, ODD] = 0.0
            sums[k, AT_LARGEST] = 0.0
            sums[k, STEADY] = 0.0
        even = 0.0
        for block in range(span[POINTS_OF] // BLOCK + 1):
            start = block * BLOCK
            count = gather(i, start, places, sizes, chances, pairs, filled, span, actual, x, BLOCK)
            for j in range(piece, stop):
                if cut[1, j] >= start and cut[1, j] < start + count:
                    x[CHANCE_AT, cut[1, j] - start] = 0.0
            units_at(i, places, sizes, codes, told, width, x, count)
            last = 1 if start + count > span[POINTS_OF] else 0
            even = x[EVEN_AT, count - 1]
            add_column(x, BITS_AT, count, sums, 0, block == 0, last)
            add_column(x, OFFSETS_AT, count, sums, 1, block == 0, last)
            if counted:
                add_column(x, PAYLOAD_AT, count, sums, 2, block == 0, last)
        for _ in range(piece, stop):
            count = min(stop - piece, BLOCK)
            if count == 0:
                break
            for j in range(count):
                x[FIBERS_AT, j] = pieces[0, piece + j]
                x[OCCUPIED_AT, j] = pieces[1, piece + j]
                x[GROUPS_AT, j] = pieces[2, piece + j]
                x[CHANCE_AT, j] = pieces[3, piece + j]
            units_at(i, places, sizes, codes, told, width, x, count)
            add_column(x, BITS_AT, count, sums, 0, 0, 0)
            add_column(x, OFFSETS_AT, count, sums, 1, 0, 0)
            if counted:
                add_column(x, PAYLOAD_AT, count, sums, 2, 0, 0)
            piece += count
        for k in range(3):
            settle(places[OF_TILE, i], tiles, chances, sums, k)
        unit_bits = width if counted else 1.0
        enter_units(sums, pointers, unit_bits, told[row, COUNT_BITS] if counted else 0.0, out, i)
        if read[c] and out[i, NARROW] == 0.0 and not counted and not code_readable(codes, c, told, row, width, even):
            out[i, NARROW] = 1.0


def sum_columns(
    places: Wholes2, tiles: Reals2, chances: Reals, starts: Wholes, ends: Wholes, points: Reals2, columns: Reals2,
    sums: Reals2, out: Reals2,
) -> None:  # fmt: skip
    """(2 c, n) expectation and value at the largest occupancy of columns (c, P) of units at points. `ends` (n,): index
    of the largest occupancy."""
    sums[0, KEPT_TILE] = -1.0
    for i in range(places.shape[1]):
        for k in range(columns.shape[0]):
            total = 0.0
            steady = columns[k, starts[i]]
            for j in range(starts[i], starts[i + 1]):
                total += points[3, j] * columns[k, j]
                if columns[k, j] != steady and j != ends[i]:
                    steady = -1.0
            sums[k, TOTAL] = total
            sums[k, STEADY] = steady
            settle(places[OF_TILE, i], tiles, chances, sums, k)
            out[2 * k, i] = sums[k, TOTAL]
            out[2 * k + 1, i] = columns[k, ends[i]]
