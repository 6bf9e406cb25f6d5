"""The occupancies at which formats are asked for the units of ranks: those of the tile's list, and steps in between."""

from __future__ import annotations

from typing import NamedTuple

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, Nonzeros, Rows
from sparsemap.pieces.contracts.sparsity import name_bits

from .bins import CUTS, TAIL, Windows, cut
from .lookup import Lists, fingerprint, take
from .pairs import Pair, Pairs
from .tiles import Tile, Tiles


class Ranks(NamedTuple):
    """Ranks of tiles. Shapes are (1, N) words or, where the shape matters, (tensor ranks, N); all others (N,)."""

    tile: Array
    box: Array  # the part of the tile that one fiber of the rank covers
    below: Array  # the part that one position of a fiber covers
    length: Array  # L, positions of a fiber
    above: Array  # maxf, fibers of the rank in the whole tile
    format: Array
    positions: Array  # of this rank and all inside: what an offset must be able to name
    drop_empty: Array  # 1 where the parent sends no empty tiles, otherwise 0
    longest: Array  # expected non-empty positions of the fullest fiber of the tensor, where the format is padded
    group: Array  # the part that a group of positions covers, as `below`; without rows if no code has groups

    def fingerprint(self) -> Array:
        return fingerprint([*self.tile, *self.box, *self.below, *self[3:-2], *self.group], 8)


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


@attrs.frozen(eq=False)
class RankPoints:
    """n ranks, with what is known of their tiles."""

    ranks: Ranks
    tiles: Rows
    """Rows of `Tiles.columns` .."""
    tile: Tile
    """.. and the columns there."""
    box: Pair
    below: Pair
    usual: Array
    """(n,) probability that a position holds something, anywhere in the tensor; 0 where nobody asks."""
    group: Pair | None = None
    """Of groups of positions, where a code has any."""
    group_size: Array | None = None
    """(n,) positions of them."""

    @property
    def merged(self) -> Array:
        return self.tile.grain > 0.0

    def points(self, tiles: Tiles, pairs: Pairs) -> tuple[Points, Array, Points]:
        """The points rank by rank, where those of each rank end (n,), and the pieces of bins that are cut.

        The last point of a rank is its largest occupancy, which has no probability. A window in which nothing depends on
        the occupancy has one point besides.
        """
        ranks, tile = self.ranks, self.tile
        drop = ranks.drop_empty != 0.0
        flat = self.merged & ~self.below.varies & ~self.box.varies
        if self.group is not None:
            flat &= ~self.group.varies
        left_out = np.where(drop, tile.left_out, 0)
        p_at = np.where(flat, tiles.one, np.where(drop, tile.p_sent, tile.p))
        sizes = np.where(flat, 1, tile.points - left_out) + 1
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
        if self.group is not None and self.group_size is not None:
            count = np.ceil(length / np.repeat(self.group_size, sizes))
            groups = count * gather(pairs.lists, self.group.filled + left_out, self.group.filled_largest)
        there = gather(pairs.lists, self.box.filled + left_out, self.box.filled_largest)
        held = gather(pairs.lists, self.below.filled + left_out, self.below.filled_largest)
        points = Points(
            fibers=slots * there,
            length=length,
            occupied=length * _of(held, there, tiles),
            coord_bits=np.repeat(name_bits(ranks.length), sizes),
            offset_bits=np.repeat(name_bits(ranks.positions + 1.0), sizes),
            slots=slots,
            longest=np.repeat(ranks.longest, sizes),
            usual=np.repeat(self.usual, sizes),
            groups=groups,
            rank=np.repeat(np.arange(len(sizes)), sizes),
            p=gather(tiles.lists, p_at, 0.0),
        )
        return points, ends, self._pieces(points, starts, ends, tiles)

    def _pieces(self, points: Points, starts: Array, ends: Array, tiles: Tiles) -> Points:
        """Pieces of the bins in which `occupied` passes whole numbers (`bins.cut`), in order of ranks.

        The probability of bins that are cut is set to 0 in `points`.
        """
        inside = (self.merged & self.below.varies)[points.rank]
        inside[ends] = False
        rises = np.diff(np.ceil(points.occupied))
        at = np.flatnonzero((rises > 0.0) & inside[:-1] & inside[1:])
        at = at[points.p[at] + points.p[at + 1] > TAIL]
        few = (np.bincount(points.rank[at], rises[at], len(starts)) <= CUTS)[points.rank[at]]
        at = at[few]
        if not at.size:
            return take(points, at)
        rank, ranks, tile = points.rank[at], self.ranks, self.tile
        bin = at - starts[rank]
        k = tile.k[rank] + bin
        windows = Windows(
            tiles.lists.data, tile.edges, tile.sums, tile.samples, tile.origin, tile.step, tile.grain
        )  # fmt: skip

        def filled(rank: Rows, k: Nonzeros, *parts: Array) -> Array:
            """(parts, n) chance that a part of the tile holds something."""
            sub = np.concatenate([part.T[rank] for part in parts]).astype(np.int64)
            whole = np.concatenate([ranks.tile.T[rank]] * len(parts)).astype(np.int64)
            empty = tiles.occupancy.within_real(sub, whole, np.concatenate([k] * len(parts)))
            return (1.0 - np.where(np.all(sub == whole, axis=1), 0.0, empty)).reshape(len(parts), -1)

        def occupied_at(rank: Rows, k: Nonzeros) -> Array:
            there, held = filled(rank, k, ranks.box, ranks.below)
            return ranks.length[rank] * _of(held, there, tiles)

        data = tiles.lists.data
        means, found = np.stack([data[k], data[k + 1]]), np.stack([points.occupied[at], points.occupied[at + 1]])
        pieces = cut(windows, rank, bin, rises[at], means, found, occupied_at)
        points.p[starts[pieces.rank] + pieces.bin] = 0.0
        order = np.argsort(pieces.rank, kind="stable")
        rank, k = pieces.rank[order], pieces.k[order]
        there, held, *groups = filled(rank, k, ranks.box, ranks.below, *([ranks.group] if len(ranks.group) else []))
        occupied = ranks.length[rank] * _of(held, there, tiles)
        cut_points = take(points, starts[rank])._replace(
            fibers=ranks.above[rank] * there, occupied=occupied, p=pieces.p[order]
        )
        if self.group_size is None:
            return cut_points
        return cut_points._replace(groups=np.ceil(ranks.length[rank] / self.group_size[rank]) * groups[0])


def _of(held: Array, there: Array, tiles: Tiles) -> Array:
    """The share of positions that hold something: of all fibers, as in Timeloop, or of actual data of those that are there."""
    return np.minimum(1.0, held / np.where(there > 0.0, there, 1.0)) if tiles.occupancy.actual else held
