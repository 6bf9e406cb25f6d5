"""The occupancies at which formats are asked for the units of ranks: those of the tile's list, and steps in between."""

from __future__ import annotations

from typing import NamedTuple

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, Nonzeros, Rows

from .bins import Windows, cut
from .lookup import fingerprint
from .pairs import Pair
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

    @property
    def left_out(self) -> Array:
        """(n,) how many of the first occupancies are."""
        return np.where(self.ranks.drop_empty != 0.0, self.tile.left_out, 0)

    def chances(self, tiles: Tiles) -> tuple[Array, Array]:
        """(n,) places of the probabilities, and how many there are: one in merged windows in which nothing varies."""
        flat = self.merged & ~(self.below.varies | self.box.varies | (self.group is not None and self.group.varies))
        sent = np.where(self.ranks.drop_empty != 0.0, self.tile.p_sent, self.tile.p)
        return np.where(flat, tiles.one, sent), np.where(flat, 1, self.tile.points - self.left_out)

    def groups_of(self, rows: Rows | slice) -> Array:
        """Groups of a fiber."""
        length = self.ranks.length[rows]
        return length if self.group_size is None else np.ceil(length / self.group_size[rows])

    def pieces(self, tiles: Tiles, rank: Rows, bin: Array, rises: Array, occupied: Array) -> RankPieces:
        """In m places, ascending, `occupied` (2, m) takes `rises` > 0 steps from a bin to the next one."""
        ranks, tile = self.ranks, self.tile
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
            return ranks.length[rank] * share_of(held, there, tiles)

        data = tiles.lists.data
        found = cut(windows, rank, bin, rises, np.stack([data[k], data[k + 1]]), occupied, occupied_at)
        rank, k = found.rank, found.k
        there, held, *groups = filled(rank, k, ranks.box, ranks.below, *([ranks.group] if len(ranks.group) else []))
        listed = np.zeros(len(rank)) if self.group_size is None else self.groups_of(rank) * groups[0]
        fibers, occupied = ranks.above[rank] * there, ranks.length[rank] * share_of(held, there, tiles)
        return RankPieces(rank, found.bin, fibers, occupied, listed, found.p)


class RankPieces(NamedTuple):
    """Pieces in place of bins that are cut, in order of ranks, (m,)."""

    rank: Rows
    bin: Array
    fibers: Array
    occupied: Array
    groups: Array
    p: Array


def share_of(held: Array, there: Array, tiles: Tiles) -> Array:
    """The share of positions that hold something: of all fibers, or by Timeloop, in actual data, of those that are there."""
    return np.minimum(1.0, held / np.where(there > 0.0, there, 1.0)) if tiles.occupancy.actual else held
