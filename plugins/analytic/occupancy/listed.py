"""Expected units of ranks in one pass of C (`units.c`), where all their formats are lists of positions from TOML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.sparsity import name_bits

from .. import native
from .bins import CUTS, TAIL
from .points import RankPieces, RankPoints

if TYPE_CHECKING:
    from .units import UnitTables

LOOPS = np.exp, np.expm1, np.log1p


def expected_of_lists(parts: Sequence[tuple[UnitTables, RankPoints]]) -> list[Array] | None:
    """Per part (n, 7): of bits and of offsets the sum, the one at the largest occupancy, and the one that is the same at all
    others in merged windows, else NaN; and `narrow`. None: a format is not known there, or says what is no number from 0 on."""
    formats = parts[0][0].formats
    names = "format", "length", "positions"
    joined = [np.concatenate([getattr(part.ranks, name) for _, part in parts]) for name in names]
    form_of, length, usual = joined[0].astype(np.int64), joined[1], np.concatenate([part.usual for _, part in parts])
    coord_bits, offset_bits = name_bits(length), name_bits(joined[2] + 1.0)
    codes, known = np.zeros((len(formats), 8), dtype=np.int64), np.empty((len(length), 10))
    for number in np.flatnonzero(np.bincount(form_of)):
        (form, outer), rows = formats[number], np.flatnonzero(form_of == number)
        if outer is None or not hasattr(form, "lists_of"):
            return None
        told = form.lists_of(outer, length[rows], coord_bits[rows], offset_bits[rows], usual[rows])
        if told is None:
            return None
        codes[number], known[rows] = told[0], np.transpose(told[1])
    found, first = [], 0
    for tables, part in parts:
        stop = first + len(part.tiles)
        out = _summed(tables, part, codes, known[first:stop], form_of[first:stop])
        if out is None:
            return None
        found.append(out)
        first = stop
    return found


def _summed(tables: UnitTables, part: RankPoints, codes: Array, known: Array, form_of: Array) -> Array | None:
    ranks, actual, left_out = part.ranks, tables.tiles.occupancy.actual, part.left_out
    group = part.box if part.group is None else part.group
    at_p, sizes = part.chances(tables.tiles)
    filled = [pair.filled + left_out for pair in (part.box, part.below, group)]
    places = np.stack([at_p, *filled, sizes, part.merged, form_of], axis=1).astype(np.int64)
    numbers = np.column_stack([ranks.above, ranks.length, ranks.longest, part.groups_of(slice(None)), known])
    largest = np.column_stack([pair.filled_largest for pair in (part.box, part.below, group)])
    given = tables.tiles.lists.data, tables.pairs.lists.data, places, numbers, largest, actual
    inside = part.merged & part.below.varies
    cut = RankPieces(*np.zeros((2, 0), dtype=np.int64), *np.zeros((4, 0)))
    if inside.any():
        room = int(sizes[inside].sum())
        at, values = np.empty((2, room), dtype=np.int64), np.empty((3, room))
        count = native.units.rises(*given, TAIL, float(CUTS), inside, at, values)
        if count is None:
            return None
        if count:
            cut = part.pieces(tables.tiles, at[0, :count], at[1, :count], values[0, :count], values[1:, :count])
    out = np.empty((len(sizes), 7))
    bins = np.stack([cut.rank, cut.bin])
    pieces = np.stack([cut.fibers, cut.occupied, cut.groups, cut.p])
    return None if native.units.units(*given, LOOPS, codes, bins, pieces, out) is None else out
