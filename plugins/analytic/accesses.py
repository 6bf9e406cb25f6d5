"""Accesses to metadata: how often every rank is read, filled and updated, and what filters leave of that (6.3, 7.2)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerTile, Rows

from .metadata import Metadata, bits_of
from .nest import Nest
from .occupancy.lookup import take


def accesses(metadata: Metadata, nest: Nest, count: PerTile) -> list[Array]:
    """(N,) dense accesses to metadata and to payload, rounded up; `count` (T, S, B) of words."""
    cell, units = metadata.cell, metadata.units
    ratio = count.reshape(-1)[cell] / nest.tile_words[:, : metadata.shape[1]].reshape(-1)[cell]
    return [np.ceil(units.metadata * ratio), np.ceil(units.payload * ratio)]


@attrs.frozen(eq=False)
class MetadataAccesses:
    """Accesses of one instance, as (metadata, payload)."""

    entries: Metadata
    read: Sequence[Array]
    """(N,) each."""
    fill: Sequence[Array]
    update: Sequence[Array]
    gone: Rows
    """(n,) entries of which accesses are gated or skipped, as the action of the cell says .."""
    gone_read: Sequence[Array]
    """.. and how many (n,)."""
    gone_update: Sequence[Array]

    def bits(self, gated: PerTile, skipped: PerTile) -> dict[str, PerTile]:
        """(T, S, B) bits by action, such as "read" or "gated_read"; `gated` and `skipped` are bool."""
        shape, cell, units = self.entries.shape, self.entries.cell, self.entries.units
        if not len(cell):
            return {}
        found = {name: bits_of(shape, cell, units, *getattr(self, name)) for name in ("read", "fill", "update")}
        masks = {name: mask for name, mask in (("gated", gated), ("skipped", skipped)) if mask.any()}
        cell, units = cell[self.gone], take(units, self.gone)
        for name in ("read", "update") if masks else ():
            lost = bits_of(shape, cell, units, *getattr(self, f"gone_{name}"))
            found |= {f"{prefix}_{name}": lost * mask for prefix, mask in masks.items()}
        return found
