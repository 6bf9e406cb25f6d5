"""The occupancies at which formats are asked for the units of ranks: those of the tile's list, and steps in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, Nonzeros, Rows

from .. import native
from .bins import CUTS, Windows, cut
from .lookup import chunks, take
from .pairs import Pair
from .tiles import TAIL, Tile, Tiles
from .units import NONE, Ranks

if TYPE_CHECKING:
    from .units import UnitTables


@attrs.frozen(eq=False)
class RankPoints:
    """n ranks, with what is known of their tiles."""

    ranks: Ranks
    tile: Tile
    box: Pair
    below: Pair
    usual: Array
    """(n,) probability that a position holds something, anywhere in the tensor; 0 where nobody asks."""
    group: Pair | None = None
    """Of groups of positions, where a code has any."""
    group_size: Array | None = None
    """(n,) positions of them."""

    @classmethod
    def of(cls, tables: UnitTables, ranks: Ranks, most: int) -> Iterator[RankPoints]:
        """The ranks, in their order: no more than so many points at once."""
        tile = tables.tiles.at(tables.tiles.rows(ranks.tile))
        tiles, *subs = ([*part] for part in (ranks.tile, ranks.box, ranks.below, ranks.group) if len(part))
        parts = [tables.pairs.rows(tiles, part) for part in subs]
        usual = np.zeros(len(ranks.length)) if tables.empty is None else 1.0 - tables.empty(list(ranks.below))
        size = tables.group[ranks.format.astype(np.int64)] if len(ranks.group) else None
        for some in chunks(tile.points, most):
            box, below, *group = (tables.pairs.at(part[some]) for part in parts)
            sizes = None if size is None else size[some]
            yield cls(take(ranks, some), take(tile, some), box, below, usual[some], group[0] if group else None, sizes)

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


def cut_bins(tables: UnitTables, ranks: Ranks, given: tuple[Any, ...]) -> tuple[Array, Array]:
    """Pieces in place of bins, as `units.c` takes them: rank and bin (2, m), and fibers, occupied, groups and p (4, m)."""
    steps = native.units.steps(*given, TAIL, float(CUTS))
    rank, bin = np.frombuffer(steps[0], dtype=np.int64).reshape(2, -1)
    rises, *occupied = np.frombuffer(steps[1]).reshape(3, -1)
    some, place = np.unique(rank, return_inverse=True)
    if not some.size:
        return NONE
    (part,) = RankPoints.of(tables, take(ranks, some), 1 << 62)
    cut = part.pieces(tables.tiles, place, bin, rises, np.stack(occupied))
    return np.stack([some[cut.rank], cut.bin]), np.stack([cut.fibers, cut.occupied, cut.groups, cut.p])


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
