"""The granules of a tensor: what its formats store or leave out together, beyond the nonzeros (6.5)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, PerTensor, Rows

from .nest import Nest
from .occupancy import TensorTables
from .rank_loops import rank_ends
from .ranks import FormatTables
from .stored import parts


@attrs.frozen(eq=False)
class Granules:
    """The granules of one tensor in n designs whose formats store more than nonzeros."""

    t: int
    rows: Rows
    extent: Array
    """(D, B) extents of the granule; 1 in other designs."""
    density: PerDesign
    """(n,) stored words per word of the tensor."""
    width: PerDesign
    """(n,) positions that padded fibers store, infinity in other designs .."""
    dim: Array
    """.. the dimension (n,) of their rank .."""
    longest: PerDesign
    """.. all positions of it (n,) .."""
    outer: Array
    """.. and (n,) bool, whether ranks above leave empty fibers out."""

    def joined(self, extent: Array | Sequence[Array], rows: Rows) -> list[Array]:
        """Extents (D, n) of what is known to be empty if extents (D, n) of the designs `rows` are: all granules they touch."""
        return [np.maximum(e, self.extent[d][rows]) for d, e in enumerate(extent)]

    def enter(
        self,
        nest: Nest,
        table: TensorTables,
        among: Rows,
        drops: Array,
        packed: Array,
        words: Array,
        occupied: Array,
        density: Array,
    ) -> None:
        """Sets the most that these designs hold, the share of the tiles that is sent, and their stored words per word,
        (S, B): the last step in making a `StoredTiles`."""
        lay, rows = nest.layout, self.rows
        mine = np.searchsorted(among, rows)
        for s in range(lay.S):
            if lay.stored[self.t, s]:
                sent, here = np.ones(len(rows)), packed[s, mine]
                if lay.parent(self.t, s) is not None:
                    sent = np.where(drops[s, mine], self._sent(nest, s, table), 1.0)
                words[s, rows] = np.where(here, self._largest(nest, s, table), words[s, rows])
                occupied[s, rows] = sent
                left = np.minimum(self.density / np.where(sent > 0.0, sent, 1.0), 1.0)
                density[s, rows] = np.where(here, left, 1.0)

    def _sent(self, nest: Nest, s: int, table: TensorTables) -> PerDesign:
        """(n,) share of the tiles of level s that are sent by a parent that sends no empty ones."""
        tile, columns = nest.extents[s][:, self.rows], np.arange(len(self.rows))
        whole = self.joined(tile, self.rows)  # a tile is empty if all granules that it touches are
        sent = 1.0 - table.empty(parts(nest, self.t, whole, table))
        positions = tile[self.dim, columns] / np.minimum(tile, self.extent[:, self.rows])[self.dim, columns]
        some = 1.0 - (1.0 - np.minimum(self.density, 1.0)) ** np.maximum(positions, 1.0)
        padded = np.where(positions < self.longest, some, np.where(self.outer, sent, 1.0))  # padding is sent as well
        return np.where(np.isfinite(self.width), padded, sent)

    def _largest(self, nest: Nest, s: int, table: TensorTables) -> PerDesign:
        """(n,) words that the tile of level s stores at most."""
        tile = nest.extents[nest.layout.spans(self.t, s)][:, self.rows]
        granule = np.minimum(tile, self.extent[:, self.rows])
        words = nest.volume(self.t, tile)
        most = table.largest_stored(parts(nest, self.t, tile, table), parts(nest, self.t, granule, table))
        columns = np.arange(len(self.rows))
        positions = np.clip(tile[self.dim, columns] / granule[self.dim, columns], 1.0, self.longest)
        padded = words * np.minimum(1.0, np.ceil(self.width) / positions)
        return np.where(np.isfinite(self.width), padded, np.minimum(words, most))


def granules_of(
    nest: Nest, t: int, rows: Rows, slots: Array, formats: FormatTables, table: TensorTables,
    decoded: PerTensor | None = None,
) -> Granules | None:  # fmt: skip
    """6.5 for tensor t in the designs `rows`, which compress it; `slots` is (R, B). None: all store nonzeros only."""
    lay = nest.layout
    dims, bounds = nest.loops(lay.inwards, rows)
    moves, rank, chosen = rank_ends(nest, t, rows, slots, formats, decoded, dims, bounds)
    compressed = rank & formats.compressed[chosen]
    at, columns = compressed.argmax(axis=0), np.arange(len(rows))
    position = np.arange(len(dims))[:, None]
    begin = np.where(rank & (position < at), position + 1, 0).max(axis=0)  # behind the rank inside that one
    inside = np.where(moves & (position < begin), bounds, 1.0)
    below = np.stack([np.where(dims == d, inside, 1.0).prod(axis=0) for d in range(lay.D)])
    dim, length, format = dims[at, columns], bounds[at, columns], chosen[at, columns]

    def grown(positions: Array) -> Array:
        """`below` with so many positions (n,) of the innermost compressed rank."""
        extent = below.copy()
        extent[dim, columns] *= positions
        return extent

    granule, fiber = grown(np.minimum(formats.block[format], length)), grown(length)
    density = 1.0 - table.empty(parts(nest, t, granule, table))
    padded = formats.padded[format]
    outer = (compressed & (position > at)).any(axis=0)
    width = np.full(len(rows), np.inf)
    if padded.any():
        count = nest.volume(t, lay.sizes[:, None]) / nest.volume(t, fiber)
        longest = table.longest(parts(nest, t, fiber, table), parts(nest, t, below, table), count)
        kept = np.where(outer, 1.0 - table.empty(parts(nest, t, fiber, table)), 1.0)
        filled = length * (1.0 - table.empty(parts(nest, t, below, table)))
        # the fullest fiber has no fewer positions than those that are kept have on average
        longest = np.maximum(longest, filled / np.where(kept > 0.0, kept, 1.0))
        width = np.where(padded, np.minimum(longest, length), np.inf)
        density = np.where(padded, kept * width / length, density)
    some = np.flatnonzero((nest.volume(t, granule) > 1.0) | padded)
    if not some.size:
        return None
    extent = np.ones((lay.D, nest.batch))
    extent[:, rows[some]] = granule[:, some]
    return Granules(t, rows[some], extent, density[some], width[some], dim[some], length[some], outer[some])
