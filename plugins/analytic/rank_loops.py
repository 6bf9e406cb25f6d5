"""Which loops make up a rank of a tensor: each one that moves it, but for tiles that are decoded as a whole, and where
formats flatten (6.1, 6.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, LoopBounds, PerDesign, PerTensor, Rows

from .layout import Layout

if TYPE_CHECKING:
    from .nest import Nest
    from .ranks import FormatTables


@attrs.frozen(eq=False)
class RankCounts:
    """The ranks of one tensor, loops with a bound above one that move it, (B,) each; what formats flatten counts apart."""

    count: PerDesign
    several: PerDesign
    """bool: the innermost rank takes several loops."""
    tiles: Array
    """(n, B) those in the tiles of inner levels, and none below the innermost loop."""


def rank_counts(layout: Layout, bounds: LoopBounds, decoded: PerTensor | None = None) -> list[RankCounts]:
    """By tensor."""
    found, batch = [], np.arange(bounds.shape[-1])
    for t, moves in enumerate(layout.relevant):
        loops = np.zeros((layout.S + 1, len(batch)), dtype=np.int16)  # in the tile of each level
        for group, s in enumerate(layout.block):
            loops[: s + 1] += (bounds[group, moves] > 1.0).sum(axis=0, dtype=np.int16)
        several = np.zeros(len(batch), dtype=bool)
        if decoded is not None:  # a tile that is decoded as a whole is one rank
            inside = loops[decoded[t], batch]
            several = inside > 1
            loops = np.maximum(loops - inside, 0) + (inside > 0)
        within = loops[[s for s in range(1, layout.S) if layout.stored[t, s]]]
        found.append(RankCounts(loops[0], several, np.append(within, np.zeros_like(loops[:1]), axis=0)))
    return found


def rank_ends(
    nest: Nest, t: int, rows: Rows, slots: Array, tables: FormatTables, decoded: PerTensor | None, dims: Array,
    bounds: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Of the loops (P, n) of the designs `rows`, innermost first: those that move the tensor, those that are the outermost
    one of a rank, and the formats of these. A rank is one loop but for a tile that is decoded as a whole, and where
    formats flatten."""
    lay = nest.layout
    moves = ends = (bounds > 1.0) & lay.relevant[t][dims]
    if decoded is not None:
        inside = moves & (lay.loop_blocks[:, None] >= decoded[t, rows])
        outermost = inside & (np.cumsum(inside[::-1], axis=0, dtype=np.int16)[::-1] == 1)
        ends = (moves & ~inside) | outermost
    place = np.cumsum(ends, axis=0, dtype=np.int64) - 1
    formats = tables.chosen(slots, np.maximum(place, 0), rows[None])
    flat = ends & tables.flattened[formats]
    position = np.arange(len(ends))[:, None]
    last = np.maximum.accumulate(np.where(ends & ~flat, position, -1))  # the innermost loop of the rank has the format
    formats = np.take_along_axis(formats, np.maximum(last, 0), axis=0)
    none = np.full((1, *ends.shape[1:]), len(ends))  # a rank goes on with the next one outside that is flat
    outwards = np.minimum.accumulate(np.where(ends, position, len(ends))[::-1], axis=0)
    behind = np.append(outwards[-2::-1], none, axis=0)
    goes_on = np.take_along_axis(np.append(flat, np.zeros_like(flat[:1]), axis=0), behind, axis=0)
    return moves, ends & ~goes_on, formats
