"""Accesses to metadata: how often every rank is read, filled and updated, and what filters leave of that (6.3, 7.2)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerTile, Rows

from .metadata import Metadata, bits_of
from .nest import Nest
from .occupancy import RankUnits
from .occupancy.lookup import take


@attrs.frozen(eq=False)
class RankCells:
    """The entries of `Metadata` in the C columns of counts."""

    shape: tuple[int, int, int]
    """(T, S, C)"""
    cell: Array
    """(N,) index into (T, S, C), flat."""
    place: Array
    units: RankUnits
    """Of the first entries, those of `Metadata`; the others are some of them again."""
    again: Rows | None = None
    """Which entries of `Metadata` the others are .."""
    alike: tuple[Rows, Array] | None = None
    """.. and for the last n columns, (n,) the column, and (T, S, n) bool: the cell has the entries of the same cell there,
    and none of its own."""

    @classmethod
    def of(cls, metadata: Metadata, designs: Rows, same: Array) -> RankCells:
        """All B designs, and once more the n `designs`, but for cells that are the `same`, (T, S, n)."""
        if not designs.size:
            return cls(metadata.shape, metadata.cell, metadata.place, metadata.units)
        (tensors, levels, batch), count = metadata.shape, len(designs)
        needed, further = np.zeros(metadata.shape, dtype=bool), np.zeros(batch, dtype=np.int64)
        needed[..., designs] = ~same
        further[designs] = np.arange(count) + batch
        again = np.flatnonzero(needed.reshape(-1)[metadata.cell])
        tile = metadata.cell // batch
        design = metadata.cell[again] - tile[again] * batch
        cell = np.concatenate([metadata.cell + tile * count, tile[again] * (batch + count) + further[design]])
        place = np.concatenate([metadata.place, metadata.place[again]])
        units = RankUnits(*(np.concatenate([part, part[again]]) for part in metadata.units))
        return cls((tensors, levels, batch + count), cell, place, units, again, (designs, same))

    def accesses(self, metadata: Metadata, nest: Nest, count: PerTile) -> list[Array]:
        """(N,) dense accesses to metadata and to payload, rounded up; `count` (T, S, B) of words."""
        cell, units = metadata.cell, metadata.units
        ratio = count.reshape(-1)[cell] / nest.tile_words[:, : self.shape[1]].reshape(-1)[cell]
        found = [np.ceil(units.metadata * ratio), np.ceil(units.payload * ratio)]
        return found if self.again is None else [np.concatenate([part, part[self.again]]) for part in found]

    def bits(self, counts: Sequence[Array], entries: Rows | None = None) -> Array:
        """(T, S, C) bits of some accesses, those of all entries or of some."""
        units, cell = (self.units, self.cell) if entries is None else (take(self.units, entries), self.cell[entries])
        found = bits_of(self.shape, cell, units, *counts)
        if self.alike is not None:
            column, same = self.alike
            last = found[..., -len(column) :]
            last[:] = np.where(same, np.take(found, column, axis=-1), last)
        return found


@attrs.frozen(eq=False)
class MetadataAccesses:
    """Accesses of one instance, as (metadata, payload)."""

    cells: RankCells
    read: Sequence[Array]
    """(N,) each."""
    fill: Sequence[Array]
    update: Sequence[Array]
    gone: Rows
    """(n,) entries of which accesses are gated or skipped, as the action of the cell says .."""
    gone_read: Sequence[Array]
    """.. and how many (n,)."""
    gone_update: Sequence[Array]

    def bits(self, gated: PerTile, skipped: PerTile, batch: int) -> dict[str, PerTile]:
        """(T, S, C) bits by action, such as "read" or "gated_read"; `gated` and `skipped` are bool. What is skipped takes no
        time: it is of the first `batch` columns alone."""
        cells = self.cells
        if not len(cells.cell):
            return {}
        found = {name: cells.bits(getattr(self, name)) for name in ("read", "fill", "update")}
        masks = {name: mask for name, mask in (("gated", gated), ("skipped", skipped)) if mask.any()}
        if masks:
            gone = {name: cells.bits(getattr(self, f"gone_{name}"), self.gone) for name in ("read", "update")}
            for prefix, mask in masks.items():
                of = slice(None) if prefix == "gated" else slice(batch)
                for name, lost in gone.items():
                    found[f"{prefix}_{name}"] = lost[..., of] * mask[..., of]
        return found
