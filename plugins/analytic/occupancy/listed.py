"""Expected units of ranks in one pass of C (`units.c`), where all their formats are lists of positions from TOML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows
from sparsemap.pieces.contracts.sparsity import name_bits

from .. import native
from .bins import CUTS, TAIL
from .lookup import Told, fingerprint
from .points import RankPieces, RankPoints

if TYPE_CHECKING:
    from .units import AskedFormat, UnitTables

LOOPS = np.exp, np.expm1, np.log1p


def expected_of_lists(parts: Sequence[tuple[UnitTables, RankPoints]]) -> list[Array] | None:
    """Per part (n, 7): of bits and of offsets the sum, the one at the largest occupancy, and the one that is the same at all
    others in merged windows, else NaN; and `narrow`. None: a format is not known there, or says what is no number from 0 on."""
    one = parts[0][0]
    names = "format", "length", "positions"
    form_of, length, positions = (np.concatenate([getattr(part.ranks, name) for _, part in parts]) for name in names)
    form_of, usual = form_of.astype(np.int64), np.concatenate([part.usual for _, part in parts])
    codes = np.zeros((len(one.formats), 8), dtype=np.int64)
    for number in np.flatnonzero(np.bincount(form_of)).tolist():
        if number not in one.codes:
            told = _told(one.formats[number], *np.ones((3, 1)))
            one.codes[number] = None if told is None else told[0]
        if (code := one.codes[number]) is None:
            return None
        codes[number] = code

    def fill(rows: Rows) -> Told:
        found = np.empty((len(Told._fields), len(rows)))
        for number in np.flatnonzero(np.bincount(form_of[rows])).tolist():
            mine = np.flatnonzero(form_of[rows] == number)
            some = rows[mine]
            told = _told(one.formats[number], length[some], positions[some], usual[some])
            assert told is not None
            found[:, mine] = told[1]
        return Told(*found)

    known = one.told.find(fingerprint([form_of, length, positions, usual.view(np.int64)]), fill)
    known_of = np.column_stack(known)
    found, first = [], 0
    for tables, part in parts:
        stop = first + len(part.tiles)
        out = _summed(tables, part, codes, known_of[first:stop], form_of[first:stop])
        if out is None:
            return None
        found.append(out)
        first = stop
    return found


def _told(
    asked: AskedFormat, length: Array, positions: Array, usual: Array
) -> tuple[Sequence[int], Sequence[Array]] | None:
    """`lists_of` the format; None: it is not known there."""
    form, outer = asked
    if outer is None or not hasattr(form, "lists_of"):
        return None
    found: tuple[Sequence[int], Sequence[Array]] | None = form.lists_of(
        outer, length, name_bits(length), name_bits(positions + 1.0), usual
    )
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
