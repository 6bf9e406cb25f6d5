"""Action counts of designs, the input of charges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .base import PerDesign, PerLevel, PerTile

if TYPE_CHECKING:
    pass


@attrs.frozen(eq=False)
class ChipCounts:
    """Action counts of B designs on the whole chip, summed over instances, after gates and skips.

    T tensors, S storage levels, the outermost first. An execution of one design gives the same record, with B = 1."""

    read: PerTile
    """(T, S, B) words read at a level, for its children and, in some models, for its parent."""
    filled: PerTile
    """(T, S, B) words filled from the parent."""
    updated: PerTile
    """(T, S, B) words of the output updated by the children."""
    metadata_read_bits: PerTile
    """(T, S, B) bits of metadata read; filled and updated bits follow."""
    metadata_filled_bits: PerTile
    metadata_updated_bits: PerTile
    computes: PerDesign
    """(B,) multiply-accumulates carried out."""
    gated_computes: PerDesign
    """(B,) multiply-accumulates gated."""
    skipped_computes: PerDesign
    """(B,) multiply-accumulates skipped."""
    cycles: PerDesign
    """(B,) clock cycles of the design: excludes charges of plugins for `Charge.cycles`, includes these for `Charge.pj`."""
    instances: PerLevel
    """(S + 1, B) instances in use at every level, then compute units."""
