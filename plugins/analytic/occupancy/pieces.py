"""Pieces in place of the bins of merged windows (`bins`) in which what formats round passes a whole number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, Nonzeros, Rows

from .. import native
from .lookup import take
from .tiles import TAIL, Tile
from .units import NONE, Ranks

if TYPE_CHECKING:
    from .units import UnitTables

CUTS = 1 << 12
"""Ranks with more steps than this in one window are left uncut: at thousands of steps, none matters."""


@attrs.frozen(eq=False)
class Windows:
    """The merged windows of n ranks; all but `store` (n,)."""

    store: Array
    """Holds `Bins.edges` and `Bins.sums` .."""
    edges: Array
    sums: Array
    """.. from these places on."""
    samples: Array
    origin: Array
    step: Array
    grain: Array


@attrs.frozen(eq=False)
class Pieces:
    """Pieces of bins, (n,) each."""

    rank: Array
    bin: Array
    k: Array
    """Mean occupancy."""
    p: Array


def cut(
    windows: Windows, rank: Array, bin: Array, rises: Array, means: Array, occupied: Array,
    occupied_at: Callable[[Array, Array], Array],
) -> Pieces:  # fmt: skip
    """Pieces, by rank, those before a step and then those behind the last one of a bin, of the bins in which `occupied` passes a
    whole number.

    In n places, in order of rank and bin, `occupied` takes `rises` > 0 steps from the mean of a bin to that of the
    next; `means` and `occupied` there are (2, n). `occupied_at(rank, k)` is the function itself: a step is placed by
    linear interpolation, which in so small a range is less than one occupancy off, and by the four values around.
    """
    if native.units is not None and (found := _cut_in_c(windows, rank, bin, rises, means, occupied, occupied_at)):
        return found
    from .pieces_uncompiled import cut as cut_in_numpy

    return cut_in_numpy(windows, rank, bin, rises, means, occupied, occupied_at)


def _cut_in_c(
    windows: Windows, rank: Array, bin: Array, rises: Array, means: Array, occupied: Array,
    occupied_at: Callable[[Array, Array], Array],
) -> Pieces | None:  # fmt: skip
    """`cut` by the loops of `units.c`; None: an array is not known there."""
    count = int(rises.sum())
    source, (value, first), near = np.empty(count, np.int64), np.empty((2, count)), np.empty(4 * count)
    given = windows.grain, rank, rises, *map(np.ascontiguousarray, (means, occupied))
    if native.units.near(*given, source, value, first, near) is None:
        return None
    w, around = windows, occupied_at(np.repeat(rank[source], 4), near)
    places, numbers = np.empty((2, 2 * count), np.int64), np.empty((2, 2 * count))
    given = w.store, w.edges, w.sums, w.samples, w.origin, w.step, w.grain, rank, bin, source, value, first, around
    made = native.units.cut(*given, places, numbers)
    return None if made is None else Pieces(*places[:, :made], *numbers[:, :made])


class RankPieces(NamedTuple):
    """Pieces in place of bins that are cut, in order of ranks, (m,)."""

    rank: Rows
    bin: Array
    fibers: Array
    occupied: Array
    groups: Array
    p: Array


def pieces(
    tables: UnitTables, ranks: Ranks, tile: Tile, rank: Rows, bin: Array, rises: Array, occupied: Array
) -> RankPieces:
    """In m places, ascending, `occupied` (2, m) takes `rises` > 0 steps from a bin to the next one."""
    tiles, data = tables.tiles, tables.tiles.lists.data
    windows = Windows(data, tile.edges, tile.sums, tile.samples, tile.origin, tile.step, tile.grain)

    def filled(rank: Rows, k: Nonzeros, *parts: Array) -> Array:
        """(parts, n) chance that a part of the tile holds something."""
        sub = np.concatenate([part.T[rank] for part in parts]).astype(np.int64)
        whole = np.concatenate([ranks.tile.T[rank]] * len(parts)).astype(np.int64)
        empty = tiles.occupancy.within_real(sub, whole, np.concatenate([k] * len(parts)))
        return (1.0 - np.where(np.all(sub == whole, axis=1), 0.0, empty)).reshape(len(parts), -1)

    def occupied_at(rank: Rows, k: Nonzeros) -> Array:
        there, held = filled(rank, k, ranks.box, ranks.below)
        return ranks.length[rank] * tables.share_of(held, there)

    k = tile.k[rank] + bin
    found = cut(windows, rank, bin, rises, np.stack([data[k], data[k + 1]]), occupied, occupied_at)
    rank, k = found.rank, found.k
    there, held, *groups = filled(rank, k, ranks.box, ranks.below, *([ranks.group] if len(ranks.group) else []))
    listed = tables.groups_of(ranks)[rank] * groups[0] if groups else np.zeros(len(rank))
    fibers, occupied = ranks.above[rank] * there, ranks.length[rank] * tables.share_of(held, there)
    return RankPieces(rank, found.bin, fibers, occupied, listed, found.p)


def cut_bins(tables: UnitTables, ranks: Ranks, given: tuple[Any, ...]) -> tuple[Array, Array]:
    """Pieces in place of bins, as `units.c` takes them: rank and bin (2, m), and fibers, occupied, groups and p (4, m)."""
    steps = native.units.steps(*given, TAIL, float(CUTS))
    if steps is None or not steps[0]:
        return NONE
    rank, bin = np.frombuffer(steps[0], dtype=np.int64).reshape(2, -1)
    rises, *occupied = np.frombuffer(steps[1]).reshape(3, -1)
    some, place = np.unique(rank, return_inverse=True)
    cut_ranks = take(ranks, some)
    tile = tables.tiles.at(tables.tiles.rows([*cut_ranks.tile]))
    found = pieces(tables, cut_ranks, tile, place, bin, rises, np.stack(occupied))
    return np.stack([some[found.rank], found.bin]), np.stack([found.fibers, found.occupied, found.groups, found.p])
