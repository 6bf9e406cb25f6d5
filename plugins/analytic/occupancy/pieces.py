"""Pieces of merged-window bins (`bins`) in which rounding by a format passes a whole number.

`inner/rank_pieces.py` finds the steps and cuts the bins. In between, the density computes occupied positions around a
step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, Nonzeros, Rows

from ..inner import functions
from .pairs import Pair
from .tiles import TAIL, Tile

if TYPE_CHECKING:
    from .units import Placed, Ranks, UnitTables

CUTS = float(1 << 12)
"""Ranks with more steps in one window are not cut: among thousands of steps, none matters."""
NONE = np.zeros((2, 0), dtype=np.int64), np.zeros((4, 0))
"""Result without any pieces."""
GRAIN, VARIES = Tile._fields.index("grain"), Pair._fields.index("varies")


@attrs.frozen(eq=False)
class Windows:
    """Merged windows of n ranks, in the form of `inner/rank_pieces.py`."""

    numbers: Array
    """(3, n) origin, step and grain."""
    starts: Array
    """(3, n) starts in `store` of bin edges and of probabilities below samples; number of samples."""
    store: Array

    @classmethod
    def of(cls, tile: Tile, store: Array) -> Windows:
        return cls(
            np.stack([tile.origin, tile.step, tile.grain]), np.stack([tile.edges, tile.sums, tile.samples]), store
        )


def cut(
    windows: Windows, at: Array, steps: Array, means: Array, occupied_at: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Rank and bin (2, m) of pieces, with mean occupancy and probability (2, m). Per rank, pieces before a step come
    first, then the pieces behind the last step of each bin.

    Input: n bins with steps of `occupied`, by rank and bin (2, n) in order; `steps` (3, n): number of steps, and
    `occupied` at the mean occupancies (2, n) of the bin and the next. `occupied_at(rank, k)` is the function itself."""
    count = int(steps[0].sum())
    (rank, bin), source, (value, first), near = at, np.empty(count, np.int64), np.empty((2, count)), np.empty(4 * count)
    functions.place_steps(windows.numbers[2], rank, steps, means, source, value, first, near)
    occupied = np.ascontiguousarray(occupied_at(np.repeat(rank[source], 4), near))
    places, found = np.empty((2, 2 * count), np.int64), np.empty((2, 2 * count))
    given = windows.numbers, windows.starts, windows.store, rank, bin, source, value, first, occupied
    made = functions.cut_bins(*given, np.empty(2), places, found)
    return places[:, :made], found[:, :made]


def cut_bins(tables: UnitTables, ranks: Ranks, given: Placed) -> tuple[Array, Array]:
    """Rank and bin (2, m) of pieces, with fibers, occupied positions, groups and probability (4, m)."""
    tiles, actual = tables.tiles, tables.tiles.occupancy.actual
    if not tiles.merged:
        return NONE
    inside = (given.tiles[given.places[0], GRAIN] > 0.0) & (given.pairs[given.places[4], VARIES] != 0.0)
    room = int(given.tiles[given.places[0, inside], Tile._fields.index("points")].sum())
    at, steps, span = np.empty((2, room), np.int64), np.empty((3, room)), np.empty(functions.SPANS, np.int64)
    count = functions.find_steps(*given, tiles.one, actual, TAIL, CUTS, span, at, steps)
    if not count:
        return NONE
    at, steps = np.ascontiguousarray(at[:, :count]), np.ascontiguousarray(steps[:, :count])
    tile = tiles.at(given.places[0])

    def filled(rank: Rows, k: Nonzeros, *parts: Array) -> Array:
        """(parts, n) probability of a non-empty part of the tile."""
        sub = np.concatenate([part.T[rank] for part in parts]).astype(np.int64)
        whole = np.concatenate([ranks.tile.T[rank]] * len(parts)).astype(np.int64)
        empty = tiles.occupancy.within_real(sub, whole, np.concatenate([k] * len(parts)))
        return (1.0 - np.where(np.all(sub == whole, axis=1), 0.0, empty)).reshape(len(parts), -1)

    def occupied_at(rank: Rows, k: Nonzeros) -> Array:
        there, held = filled(rank, k, ranks.box, ranks.below)
        return ranks.length[rank] * tables.share_of(held, there)

    k = tile.k[at[0]] + at[1]
    means = np.stack([given.chances[k], given.chances[k + 1]])
    places, (k, p) = cut(Windows.of(tile, given.chances), at, steps, means, occupied_at)
    rank = places[0]
    there, held, *groups = filled(rank, k, ranks.box, ranks.below, *([ranks.group] if len(ranks.group) else []))
    listed = tables.groups_of(ranks)[rank] * groups[0] if groups else np.zeros(len(rank))
    fibers, occupied = ranks.above[rank] * there, ranks.length[rank] * tables.share_of(held, there)
    return np.ascontiguousarray(places), np.stack([fibers, occupied, listed, p])
