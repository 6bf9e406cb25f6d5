"""Expected units of ranks in NumPy: of any format, at the occupancies of the tile's list, and steps in between."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemap import Fiber
from sparsemap.pieces.boundary import units_of
from sparsemap.pieces.contracts.base import Array, Rows
from sparsemap.pieces.contracts.sparsity import name_bits

from .lookup import Lists, take
from .pairs import POINTS_AT_ONCE
from .pieces import CUTS, pieces
from .points import RankPoints
from .tiles import TAIL
from .units import Ranks, RankUnits, UnitTables


def expected(tables: UnitTables, ranks: Ranks) -> RankUnits:
    """One call of every format for all k of its ranks, then expectations of all ranks; not too many at once."""
    found = [expected_at(tables, part) for part in RankPoints.of(tables, ranks, POINTS_AT_ONCE)]
    return RankUnits(*map(np.concatenate, zip(*found, strict=True)))


class Points(NamedTuple):
    """Ranks at one occupancy each, (P,); the first columns are those of `Fiber`."""

    fibers: Array
    length: Array
    occupied: Array
    coord_bits: Array
    offset_bits: Array
    slots: Array
    longest: Array
    usual: Array
    groups: Array
    rank: Rows
    p: Array  # probability of the occupancy


def points_of(tables: UnitTables, listing: RankPoints) -> tuple[Points, Array, Points]:
    """The points rank by rank, where those of each rank end (n,), and the pieces of bins that are cut.

    The last point of a rank is its largest occupancy, which has no probability. A window in which nothing depends on
    the occupancy has one point besides.
    """
    ranks, left_out, tiles, pairs = listing.ranks, listing.left_out, tables.tiles, tables.pairs
    p_at, sizes = listing.chances(tiles)
    sizes = sizes + 1
    stops = np.cumsum(sizes)
    starts, ends = stops - sizes, stops - 1
    count_up = np.arange(stops[-1])

    def gather(lists: Lists, place: Array, largest: Array | float) -> Array:
        at = np.repeat(place - starts, sizes)
        at += count_up
        at[ends] = 0
        found = lists.data[at]
        found[ends] = largest
        return found

    length, slots = np.repeat(ranks.length, sizes), np.repeat(ranks.above, sizes)
    groups = np.zeros(len(length))
    if listing.group is not None:
        count = np.repeat(tables.groups_of(ranks), sizes)
        groups = count * gather(pairs.lists, listing.group.filled + left_out, listing.group.filled_largest)
    there = gather(pairs.lists, listing.box.filled + left_out, listing.box.filled_largest)
    held = gather(pairs.lists, listing.below.filled + left_out, listing.below.filled_largest)
    points = Points(
        fibers=slots * there,
        length=length,
        occupied=length * tables.share_of(held, there),
        coord_bits=np.repeat(name_bits(ranks.length), sizes),
        offset_bits=np.repeat(name_bits(ranks.positions + 1.0), sizes),
        slots=slots,
        longest=np.repeat(ranks.longest, sizes),
        usual=np.repeat(listing.usual, sizes),
        groups=groups,
        rank=np.repeat(np.arange(len(sizes)), sizes),
        p=gather(tiles.lists, p_at, 0.0),
    )
    return points, ends, _pieces(tables, listing, points, starts, ends)


def _pieces(tables: UnitTables, listing: RankPoints, points: Points, starts: Array, ends: Array) -> Points:
    """Pieces of the bins in which `occupied` passes whole numbers (`pieces.cut`), in order of ranks.

    The probability of bins that are cut is set to 0 in `points`.
    """
    inside = (listing.merged & listing.below.varies)[points.rank]
    inside[ends] = False
    rises = np.diff(np.ceil(points.occupied))
    at = np.flatnonzero((rises > 0.0) & inside[:-1] & inside[1:])
    at = at[points.p[at] + points.p[at + 1] > TAIL]
    few = (np.bincount(points.rank[at], rises[at], len(starts)) <= CUTS)[points.rank[at]]
    at = at[few]
    if not at.size:
        return take(points, at)
    rank = points.rank[at]
    found = np.stack([points.occupied[at], points.occupied[at + 1]])
    made = pieces(tables, listing.ranks, listing.tile, rank, at - starts[rank], rises[at], found)
    points.p[starts[made.rank] + made.bin] = 0.0
    own = {"fibers": made.fibers, "occupied": made.occupied, "groups": made.groups, "p": made.p}
    return take(points, starts[made.rank])._replace(**own)


def expected_at(tables: UnitTables, listing: RankPoints) -> RankUnits:
    points, ends, cut = points_of(tables, listing)
    points = Points(*map(np.concatenate, zip(points, cut, strict=True)))
    count, form_of = len(ends), listing.ranks.format.astype(np.int64)
    found, columns = RankUnits.zeros(count), np.zeros((3, len(points.p)))
    for number in np.flatnonzero(np.bincount(form_of)):
        ranks = np.flatnonzero(form_of == number)
        mine = np.flatnonzero((form_of == number)[points.rank])
        form, outer = tables.formats[number]
        fiber = Fiber(*(column[mine] for column in points[:9]))
        units = units_of(form, fiber, outer)
        columns[0, mine], columns[1, mine] = units.metadata, units.payload
        if tables.pointers:
            there = fiber.slots * fiber.occupied if form.compressed else fiber.fibers * fiber.length
            columns[2, mine] = fiber.fibers + there
        narrow = 0.0 if outer is None else np.logical_not(units.readable)
        each = {"metadata_bits": units.metadata_bits, "payload_bits": units.payload_bits, "narrow": narrow}
        for name, bits in each.items():
            getattr(found, name)[ranks] = (
                np.asarray(bits)[np.searchsorted(mine, ends[ranks])] if np.ndim(bits) else bits
            )
    merged = np.flatnonzero(listing.merged[points.rank])
    for name, column in zip(("metadata", "payload", "offsets"), columns, strict=True):
        total = getattr(found, name)
        total[:] = np.bincount(points.rank, points.p * column, count)  # in order of k, as Timeloop forms it (5.5)
        getattr(found, f"largest_{name}")[:] = column[ends]
        same = np.where(listing.merged, _same(column, points.rank, ends, merged), np.nan)
        for row in np.flatnonzero(same > 0.0):  # 0 is 0 already
            total[row] = _total(tables, listing, int(row), same[row])
    return found


def _total(tables: UnitTables, listing: RankPoints, row: int, units: float) -> float:
    """Expectation of units that are the same for all occupancies of a merged window.

    That is sum p_k u, as a sum in double, in order of k: its last bits decide what ceil makes of whole numbers, as in
    Timeloop (5.5). They depend on the mantissa of u only. Where k are left out, the sum is u.
    """
    mantissa, exponent = np.frexp(units)
    start, size = listing.tile.all_p[row], listing.tile.samples[row]
    if start:
        mantissa = np.cumsum(tables.tiles.lists.data[start : start + size] * mantissa)[-1]
    return float(np.ldexp(mantissa, exponent))


def _same(column: Array, rank: Rows, last: Rows, some: Rows) -> Array:
    """Per rank, the value that `column` has at all of its occupancies but the largest; NaN: several. `last` says where the
    largest ones are; of ranks that are not among the points `some`, the value of the first one."""
    found = column[np.append(0, last[:-1] + 1)]
    differs = some[column[some] != found[rank[some]]]
    differs = differs[last[rank[differs]] != differs]
    found[rank[differs]] = np.nan
    return found
