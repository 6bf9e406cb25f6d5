"""Results of a cost model for a tensor at a level, part of a requested `Detail`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from ..pieces.contracts.base import Array

ShortfallRow = tuple[str, float, float, str]
"""A missing resource: the reason, the amount needed, the amount present, and a text with both amounts in their units."""


@attrs.frozen(eq=False)
class TileRanks:
    """Metadata of a tensor at a level: n ranks of tiles with their accesses, the ranks of all designs concatenated.
    Pairs are units of metadata and of payload, (n,) each, per instance."""

    batch: int
    design: Array
    """(n,) design of each rank."""
    place: Array
    """(n,) position from the innermost rank, 0 first."""
    metadata_bits: Array
    """(n,) bits per unit."""
    payload_bits: Array
    largest: tuple[Array, Array]
    """Units of the fullest tile."""
    read: tuple[Array, Array]
    fill: tuple[Array, Array]
    update: tuple[Array, Array]
    gone_read: tuple[Array, Array]
    """Accesses gated or skipped, by the action there."""
    gone_update: tuple[Array, Array]

    def bits(self, units: Sequence[Array]) -> Array:
        """(B,) bits of a pair of units."""
        return np.bincount(self.design, units[0] * self.metadata_bits + units[1] * self.payload_bits, self.batch)


@attrs.frozen(eq=False)
class TensorAtLevel:
    """A tensor at a level: accesses per instance, (B,) words."""

    read: Array
    fill: Array
    update: Array
    gone_read: Array
    """Accesses gated or skipped, by `kind`."""
    gone_update: Array
    kind: Array
    """int8: 0 no action, 1 gated, 2 skipped."""
    temporal_reductions: Array
    """Additions to partial sums held at the level."""
    metadata: TileRanks | None
    """None if the tensor has no metadata there."""
    bits: Mapping[str, Array]
    """Metadata bits by action, such as "read" or "gated_read"; empty without metadata."""
