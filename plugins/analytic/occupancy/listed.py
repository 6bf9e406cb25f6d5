"""Expected units of ranks in one pass of C (`units.c`), where all their formats are lists of positions from TOML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows
from sparsemap.pieces.contracts.sparsity import name_bits

from .. import native
from .bins import CUTS, TAIL
from .lookup import UNKNOWN, Told, fingerprint
from .points import RankPieces, RankPoints

if TYPE_CHECKING:
    from .units import UnitTables

LOOPS = np.exp, np.expm1, np.log1p


def expected_of_lists(parts: Sequence[tuple[UnitTables, RankPoints]]) -> list[Array] | None:
    """Per part (n, 7): of bits and of offsets the sum, the one at the largest occupancy, and the one that is the same at all
    others in merged windows, else NaN; and `narrow`. None: a format is not known there, or says what is no number from 0 on."""
    one = parts[0][0]
    names = "format", "length", "positions"
    form_of, length, positions = (np.concatenate([getattr(part.ranks, name) for _, part in parts]) for name in names)
    form_of, usual = form_of.astype(np.int64), np.concatenate([part.usual for _, part in parts])

    def fill(rows: Rows) -> Any:
        found = np.zeros((len(Told._fields), len(rows)))
        for number in np.flatnonzero(np.bincount(form_of[rows])):
            (form, outer), mine = one.formats[number], np.flatnonzero(form_of[rows] == number)
            size, named, full = length[rows[mine]], positions[rows[mine]], usual[rows[mine]]
            lists_of = None if outer is None else getattr(form, "lists_of", None)
            told = lists_of and lists_of(outer, size, name_bits(size), name_bits(named + 1.0), full)
            one.codes[number], found[:, mine] = (UNKNOWN, 0.0) if told is None else told
        return Told(*found)

    known: Array = np.column_stack(one.told.find(fingerprint([form_of, length, positions, usual.view(np.int64)]), fill))
    if (one.codes[form_of, 0] == UNKNOWN).any():
        return None
    found, first = [], 0
    for tables, part in parts:
        stop = first + len(part.tiles)
        out = _summed(tables, part, one.codes, known[first:stop], form_of[first:stop])
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
