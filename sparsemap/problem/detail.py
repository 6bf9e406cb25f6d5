"""What a cost model says of one tensor at one level, where `Detail` is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from ..pieces.contracts.base import Array

ShortfallRow = tuple[str, float, float, str]
"""A resource that a design lacks: the reason, what is needed, what there is, and a text that says both in its units."""


@attrs.frozen(eq=False)
class TileRanks:
    """The metadata of one tensor at one level: n ranks of tiles with their accesses, those of all designs one after the
    other. Pairs are units of metadata and of payload, (n,) each, of one instance."""

    batch: int
    design: Array
    """(n,) whose."""
    place: Array
    """(n,) position from the innermost rank, 0 first."""
    metadata_bits: Array
    """(n,) bits of a unit."""
    payload_bits: Array
    largest: tuple[Array, Array]
    """Units of the fullest tile."""
    read: tuple[Array, Array]
    fill: tuple[Array, Array]
    update: tuple[Array, Array]
    gone_read: tuple[Array, Array]
    """Gated or skipped, as the action there says."""
    gone_update: tuple[Array, Array]

    def bits(self, units: Sequence[Array]) -> Array:
        """(B,) bits of a pair of units."""
        return np.bincount(self.design, units[0] * self.metadata_bits + units[1] * self.payload_bits, self.batch)


@attrs.frozen(eq=False)
class TensorAtLevel:
    """One tensor at one level: accesses of one instance, (B,) words."""

    read: Array
    fill: Array
    update: Array
    gone_read: Array
    """Gated or skipped, as `kind` says."""
    gone_update: Array
    kind: Array
    """int8: 0 no action, 1 gated, 2 skipped."""
    temporal_reductions: Array
    """Additions to partial sums that are held there."""
    metadata: TileRanks | None
    """None: the tensor has none there."""
    bits: Mapping[str, Array]
    """Metadata bits by action, such as "read" or "gated_read"; empty without metadata."""
