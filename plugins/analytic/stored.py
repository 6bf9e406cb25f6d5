"""What formats store beyond the nonzeros: whole blocks, dense parts below coordinates, fibers of one length (6.5).

The *granule* of a tensor is the part that its formats store or leave out together: `block` positions of the innermost
compressed rank, and all that lies below them. It is stored if it holds any nonzero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerLevel, PerTile

from .layout import Layout
from .nest import DesignChoices, Nest
from .occupancy import TensorTables

if TYPE_CHECKING:
    from .granules import Granules
    from .prepared import ModelTables


@attrs.frozen(eq=False)
class StoredTiles:
    """What levels hold of tiles, all (T, S, B) but for the granules."""

    words: PerTile
    """Words of data that the tile of one instance may hold, which the capacity check adds up."""
    occupied: PerTile
    """Share of the instances that get a tile at all."""
    density: PerTile
    """Stored words per word of these tiles (5.6, 6.5)."""
    granules: Mapping[int, Granules]
    """By tensor, where formats store more than nonzeros."""


def stored_of(known: ModelTables, nest: Nest, choices: DesignChoices) -> StoredTiles:
    """What the tiles of every tensor hold at every level (5.6, 6.5)."""
    lay = known.layout
    kept = lay.stored[:, :, None]
    words = np.where(kept, nest.tile_words[:, : lay.S], 0.0)
    occupied, density = np.ones(words.shape), np.ones(words.shape)
    granules = {}
    for t, table in enumerate(known.tables):
        rows = np.flatnonzero(choices.packed[t, 0])
        if not len(rows):
            continue
        if table.by_shape:
            shapes = [np.concatenate([part[rows] for part in parts]) for parts in zip(*nest.boxes[t], strict=True)]
        else:
            shapes = [nest.tile_words[t][: lay.S][:, rows].reshape(-1)]
        tile = table.tile(shapes)
        tile = type(tile)(*(part.reshape(lay.S, len(rows)) for part in tile))
        drops = sends_no_empty(lay, known.quirks, choices.packed, t)[:, rows]
        packed = kept[t] & choices.packed[t][:, rows]
        words[t][:, rows] = np.where(packed, tile.largest, words[t][:, rows])
        occupied[t][:, rows] = np.where(drops, tile.occupied, 1.0)
        left = np.where(drops, tile.density_occupied, tile.density)
        density[t][:, rows] = np.where(packed, left, 1.0)
        if not known.formats.pads:
            continue
        from .granules import granules_of

        more = granules_of(nest, t, rows, choices.slots[t], known.formats, table, choices.decoded)
        if more is not None:
            more.enter(nest, table, rows, drops, packed, words[t], occupied[t], density[t])
            granules[t] = more
    for (t, home), room in lay.problem.resident.items():
        there: Array | float = room
        if t in lay.problem.slides and lay.tensors[t].name not in lay.problem.workload.resident_words:
            there = nest.volume(t, _turn(nest, home, lay.problem.slides[t]))
        words[t, home] = words[t, home] * there / nest.tile_words[t, home]
    return StoredTiles(words, occupied, density, granules)


def _turn(nest: Nest, home: int, dim: int) -> Array:
    """(D, B) extents of one turn of the loop along which a tensor slides by: all of the other dimensions."""
    turn = np.broadcast_to(nest.layout.sizes[:, None], nest.extents[0].shape).copy()
    turn[dim] = nest.extents[home][dim]
    return turn


def sends_no_empty(lay: Layout, quirks: frozenset[str], packed: PerTile, t: int) -> PerLevel:
    """(S, B) bool: a level gets no empty tiles of tensor t: it has their metadata, and so has the next outer one. A level
    that holds them decoded gets their zeros (but with Q18)."""
    found = np.zeros(packed.shape[1:], dtype=bool)
    for s in range(1, lay.S):
        parent = lay.parent(t, s)
        if parent is not None:
            found[s] = packed[t, parent] if "Q18" in quirks else packed[t, s]
    return found


def parts(nest: Nest, t: int, extent: Array | Sequence[Array], table: TensorTables) -> list[Array]:
    """What the tables want to know of a part of tensor t with extents (D, n)."""
    return nest.box(t, extent) if table.by_shape else [nest.volume(t, extent)]
