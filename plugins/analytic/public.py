"""The counts of a batch as charges of plugins get them."""

from __future__ import annotations

import numpy as np

from sparsemap import ChipCounts
from sparsemap.pieces.contracts.base import PerDesign, PerTile

from .counts import Counts
from .nest import Nest


def chip_counts(nest: Nest, counts: Counts, cycles: PerDesign) -> ChipCounts:
    """All instances together, with all filters, for designs that take so many cycles."""

    def bits(action: str) -> PerTile:
        found = counts.bits.get(action)
        return np.zeros(counts.active.shape) if found is None else found * counts.active

    active, computes = counts.active, counts.computes
    return ChipCounts(
        read=counts.read * active,
        filled=counts.fill * active,
        updated=counts.update * active,
        metadata_read_bits=bits("read"),
        metadata_filled_bits=bits("fill"),
        metadata_updated_bits=bits("update"),
        computes=computes.actual,
        gated_computes=computes.gated,
        skipped_computes=computes.skipped,
        cycles=cycles,
        instances=nest.instances_used,
    )
