"""What `detail = True` adds: the counts of every tensor at every level, for reports and comparisons."""

from __future__ import annotations

import attrs

from sparsemap.pieces.contracts.base import PerDesign

from .costs import Costs
from .layout import Layout
from .metadata import Metadata
from .sparse import Counts, temporal_reductions
from .traffic import Traffic


@attrs.frozen(eq=False)
class TensorAtLevel:
    """One tensor at one level: accesses of one instance."""

    read: PerDesign
    fill: PerDesign
    update: PerDesign
    gone_read: PerDesign
    """Gated or skipped, as `kind` says."""
    gone_update: PerDesign
    kind: PerDesign
    """int8: 0 no action, 1 gated, 2 skipped."""
    temporal_reductions: PerDesign
    metadata: Metadata | None
    """The ranks of the tile with their accesses; the cell of an entry is its design."""
    bits: dict[str, PerDesign]
    """Metadata bits by action, such as "read" or "gated_read"; empty without metadata."""


def cell_details(
    layout: Layout, traffic: Traffic, counts: Counts, metadata: Metadata, costs: Costs
) -> list[list[TensorAtLevel | None]]:
    """[t][s]; None where a level does not store the tensor."""
    reductions = temporal_reductions(layout, traffic, counts)
    cells: list[list[TensorAtLevel | None]] = []
    for t in range(layout.T):
        cells.append([])
        for s in range(layout.S):
            if not layout.stored[t, s]:
                cells[t].append(None)
                continue
            packed = metadata.level(t, s)
            cells[t].append(
                TensorAtLevel(
                    counts.read[t, s], counts.fill[t, s], counts.update[t, s], counts.gone_read[t, s],
                    counts.gone_update[t, s], counts.kind[t, s], reductions[t, s], packed,
                    {action: bits[t, s] for action, bits in costs.bits.items()} if packed is not None else {},
                )
            )  # fmt: skip
    return cells
