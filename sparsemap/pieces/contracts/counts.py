"""What charges are given: counts of what designs do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .base import PerDesign, PerLevel, PerTile

if TYPE_CHECKING:
    pass


@attrs.frozen(eq=False)
class ChipCounts:
    """What B designs do on the whole chip, all instances together; with what gates and skips hold back left out.

    T tensors, S storage levels, the outermost first. An execution of one design gives the same record, with B = 1.
    """

    read: PerTile
    """(T, S, B) words read at a level, for its children and, where a model counts that, for its parent."""
    filled: PerTile
    """(T, S, B) words that come from the parent."""
    updated: PerTile
    """(T, S, B) words of the output that come from the children."""
    metadata_read_bits: PerTile
    """(T, S, B) bits of metadata that are read .."""
    metadata_filled_bits: PerTile
    metadata_updated_bits: PerTile
    computes: PerDesign
    """(B,) multiply-accumulates that are carried out .."""
    gated_computes: PerDesign
    """.. gated .."""
    skipped_computes: PerDesign
    """.. and skipped."""
    cycles: PerDesign
    """(B,) clock cycles of the design: for `Charge.cycles` without what charges of plugins add, for `Charge.pj` with that."""
    instances: PerLevel
    """(S + 1, B) instances of every level that are in use, then compute units."""
