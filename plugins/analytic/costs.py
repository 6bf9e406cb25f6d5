"""Cycles with bandwidth and energy from the counts (sections 8 and 9 of the model)."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import PerDesign, PerLevel, PerTile

from .actions import GATE, SKIP
from .compute import Compute
from .layout import Layout
from .metadata import Metadata
from .sparse import Counts


@attrs.define(eq=False)
class Costs:
    """Per tensor and level, for one instance."""

    energy_pj: PerTile
    """Of the B designs; all others have the columns of the counts."""
    read: PerTile
    """Words read in the time that the level has: data and metadata, gated ones included, skipped ones not."""
    written: PerTile
    bits: dict[str, PerTile]
    """Metadata bits by action, such as "read" or "skipped_update"; what is skipped, of the B designs."""


def level_costs(layout: Layout, counts: Counts, metadata: Metadata, batch: int) -> Costs:
    """Energy of every tensor at every level in the first `batch` columns, and demand in all."""
    energy = {action: np.array([row[action] for row in layout.energies])[:, None] for action in layout.energies[0]}

    def spent_on(action: str, amount: PerTile) -> PerTile:
        return amount[..., :batch] * energy[action]

    spent = spent_on("read", counts.read) + spent_on("fill", counts.fill) + spent_on("update", counts.update)
    read, written = counts.read, counts.fill + counts.update
    gate, skip = counts.kind == GATE, counts.kind == SKIP
    masks = {name: mask for name, mask in (("gated", gate), ("skipped", skip)) if mask.any()}
    for name, mask in masks.items():
        of = slice(None) if name == "gated" else slice(batch)  # what is skipped takes no time
        gone_read, gone_update = (gone[..., of] * mask[..., of] for gone in (counts.gone_read, counts.gone_update))
        spent = spent + spent_on(f"{name}_read", gone_read) + spent_on(f"{name}_update", gone_update)
        if name == "gated":
            read, written = read + gone_read, written + gone_update
    bits: dict[str, PerTile] = {}
    if len(metadata.cell):
        width = np.array([float(level.metadata_width) for level in layout.levels])[:, None]
        word = np.array([float(level.word_bits) for level in layout.levels])[:, None]
        for action in ("read", "fill", "update"):
            bits[action] = metadata.bits(getattr(metadata, action))
        timed_read, timed_write = bits["read"], bits["fill"] + bits["update"]
        if masks:
            gone_read = metadata.bits(metadata.gone_read, metadata.gone)
            gone_update = metadata.bits(metadata.gone_update, metadata.gone)
            for name, mask in masks.items():
                of = slice(None) if name == "gated" else slice(batch)
                bits[f"{name}_read"], bits[f"{name}_update"] = (
                    gone[..., of] * mask[..., of] for gone in (gone_read, gone_update)
                )
            if "gated" in masks:
                timed_read = timed_read + bits["gated_read"]
                timed_write = timed_write + bits["gated_update"]
        for action, amount in bits.items():
            prefix, _, name = action.rpartition("_")
            price = f"{prefix}_metadata_{name}" if prefix else f"metadata_{name}"
            if energy[price].any():
                spent = spent + spent_on(price, np.ceil(amount[..., :batch] / width))
        read = read + np.floor(timed_read / word)
        written = written + np.floor(timed_write / word)
    return Costs(spent, read, written, bits)


def level_cycles(
    layout: Layout, costs: Costs, used: PerLevel, active: PerTile, compute_cycles: PerDesign
) -> tuple[PerLevel, PerLevel]:
    """Cycles that each level needs and its slowdown; `active` instances are expected in use of the `used` ones."""
    busy = np.where(compute_cycles > 0.0, compute_cycles, 1.0)
    alive = active > 0.0
    share = used / np.where(alive, active, 1.0)
    # averaged over instances and rounded up tensor by tensor, then added in their order
    reads = np.where(alive, np.ceil(costs.read / share), 0.0) / busy
    writes = np.where(alive, np.ceil(costs.written / share), 0.0) / busy
    read, written = reads[0], writes[0]
    for t in range(1, layout.T):
        read, written = read + reads[t], written + writes[t]
    slowdown = np.ones(read.shape)
    for s, level in enumerate(layout.levels):
        demands = ((level.read_bandwidth, read[s]), (level.write_bandwidth, written[s]))
        for bandwidth, demand in (*demands, (level.bandwidth, read[s] + written[s])):
            if bandwidth is not None:
                slowdown[s] = np.minimum(slowdown[s], bandwidth / np.maximum(demand, bandwidth))
    cycles = np.ceil(busy / slowdown)
    # nothing computed: the level still moves its words (Timeloop divides by zero there)
    return np.where((compute_cycles > 0.0) | (slowdown < 1.0), cycles, 0.0), slowdown


def total(parts: PerTile) -> PerDesign:
    """The sum over tensors and levels, one by one: sums of NumPy may add in another order for another batch."""
    found = parts[0, 0]
    for s in range(parts.shape[1]):
        for t in range(parts.shape[0]):
            found = found + parts[t, s] if s or t else found
    return found


def compute_energy(layout: Layout, compute: Compute) -> PerDesign:
    actual, gated, skipped = layout.mac
    return compute.actual * actual + compute.gated * gated + compute.skipped * skipped
