"""Expected units of ranks by calling their formats, at the occupancies of the tile and at pieces between."""

from __future__ import annotations

import numpy as np

from sparsemap import Fiber
from sparsemap.inner.arrays import UNIT
from sparsemap.pieces.boundary import units_of
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.sparsity import name_bits

from ..inner import functions
from .lookup import chunks
from .pairs import POINTS_AT_ONCE
from .pieces import cut_bins
from .tiles import Tile
from .units import Placed, Ranks, RankUnits, UnitTables

POINTS = Tile._fields.index("points")


def expected(tables: UnitTables, ranks: Ranks) -> RankUnits:
    """Units of ranks: one call per format for all k of its ranks, then expectations of all ranks, in batches of bounded
    size."""
    rows = tables.tiles.rows(ranks.shape(0))
    sizes = tables.tiles.table.data[rows, POINTS]
    found = [expected_at(tables, ranks.take(some)) for some in chunks(sizes, POINTS_AT_ONCE)]
    return RankUnits(*map(np.concatenate, zip(*found, strict=True)))


def points_of(tables: UnitTables, ranks: Ranks, given: Placed) -> tuple[Array, Array, Array]:
    """Points of ranks (4, P), their starts by rank (n + 1,), and the index of the largest occupancy of each rank (n,)."""
    fixed = *given, tables.tiles.one, tables.tiles.occupancy.actual
    cut, pieces = cut_bins(tables, ranks, given)
    sizes = np.empty(len(ranks), dtype=np.int64)
    span, scratch = np.empty(functions.SPANS, dtype=np.int64), np.empty((UNIT.ROWS, functions.BLOCK))
    functions.count_points(*given, tables.tiles.one, span, sizes)
    starts = np.append(0, np.cumsum(sizes + np.bincount(cut[0], minlength=len(sizes))))
    points = np.empty((4, starts[-1]))
    functions.list_points(*fixed, cut, pieces, span, starts, scratch, points)
    return points, starts, starts[:-1] + sizes - 1


def expected_at(tables: UnitTables, ranks: Ranks) -> RankUnits:
    """Units of ranks, with all points at once."""
    given, _ = tables.placed(ranks)
    points, starts, ends = points_of(tables, ranks, given)
    count, form_of = len(ends), ranks.format
    rank, (_, slots, _, longest, usual, _) = np.repeat(np.arange(count), np.diff(starts)), given.sizes
    bits = name_bits(ranks.length), name_bits(ranks.positions + 1.0)
    found, columns = RankUnits(*np.zeros((9, count))), np.zeros((3, points.shape[1]))
    for number in np.flatnonzero(np.bincount(form_of)):
        mine = np.flatnonzero((form_of == number)[rank])
        own = form_of == number
        (fibers, occupied, groups, _), of = points[:, mine], rank[mine]
        coord_bits, offset_bits, *each = (column[of] for column in (*bits, slots, longest, usual))
        fiber = Fiber(fibers, ranks.length[of], occupied, coord_bits, offset_bits, each[0], each[1], each[2], groups)
        form, outer = tables.formats[number]
        units = units_of(form, fiber, outer)
        columns[0, mine], columns[1, mine] = units.metadata, units.payload
        if tables.pointers:
            there = fiber.slots * fiber.occupied if form.compressed else fiber.fibers * fiber.length
            columns[2, mine] = fiber.fibers + there
        narrow = 0.0 if outer is None else np.logical_not(units.readable)
        last = np.searchsorted(mine, ends[own])
        each_unit = {"metadata_bits": units.metadata_bits, "payload_bits": units.payload_bits, "narrow": narrow}
        for name, value in each_unit.items():
            getattr(found, name)[own] = np.asarray(value)[last] if np.ndim(value) else value
    out = np.empty((6, count))
    functions.sum_columns(
        given.places, given.tiles, given.chances, starts, ends, points, columns, np.zeros((3, functions.SUMS)), out
    )
    for k, name in enumerate(("metadata", "payload", "offsets")):
        getattr(found, name)[:], getattr(found, f"largest_{name}")[:] = out[2 * k], out[2 * k + 1]
    return found
