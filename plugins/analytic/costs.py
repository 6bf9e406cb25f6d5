"""Cycles with bandwidth and energy from the counts (sections 8 and 9 of the model)."""

from __future__ import annotations

import numpy as np

from .actions import GATE, SKIP
from .layout import Layout
from .sparse import Compute, Counts

Array = np.ndarray


def gone_as(kind: Array | None, gone: Array, which: int) -> Array | float:
    """The part of gated-or-skipped counts that is of one kind."""
    return 0.0 if kind is None else np.where(kind == which, gone, 0.0)


class LevelCost:
    """Energy and demand of one tensor at one level; everything (B,), one instance unless said otherwise."""

    def __init__(self, layout: Layout, s: int, counts: Counts, batch: int) -> None:
        level = layout.levels[s]
        energy = layout.energies[s]
        kind, packed = counts.kind, counts.metadata
        gated_read, gated_update = gone_as(kind, counts.gone_read, GATE), gone_as(kind, counts.gone_update, GATE)
        skipped_read, skipped_update = gone_as(kind, counts.gone_read, SKIP), gone_as(kind, counts.gone_update, SKIP)
        spent = counts.read * energy["read"] + counts.fill * energy["fill"] + counts.update * energy["update"]
        spent = spent + gated_read * energy["gated_read"] + gated_update * energy["gated_update"]
        spent = spent + skipped_read * energy["skipped_read"] + skipped_update * energy["skipped_update"]
        read = counts.read + gated_read
        written = counts.fill + counts.update + gated_update
        self.bits: dict[str, Array] = {}
        if packed is not None:
            width = float(level.metadata_width)
            word = float(level.word_bits)
            bits = {
                "read": packed.bits(packed.read, batch),
                "fill": packed.bits(packed.fill, batch),
                "update": packed.bits(packed.update, batch),
            }
            timed_read, timed_update = bits["read"], bits["update"]
            if counts.metadata_gone_read and kind is not None:
                gone_read = packed.bits(counts.metadata_gone_read, batch)
                gone_update = packed.bits(counts.metadata_gone_update, batch)
                for name, which in (("gated", GATE), ("skipped", SKIP)):
                    bits[f"{name}_read"] = np.where(kind == which, gone_read, 0.0)
                    bits[f"{name}_update"] = np.where(kind == which, gone_update, 0.0)
                timed_read = timed_read + bits["gated_read"]
                timed_update = timed_update + bits["gated_update"]
            for action, amount in bits.items():
                prefix, _, name = action.rpartition("_")
                key = f"{prefix}_metadata_{name}" if prefix else f"metadata_{name}"
                if energy[key]:
                    spent = spent + np.ceil(amount / width) * energy[key]
            read = read + np.floor(timed_read / word)
            written = written + np.floor((bits["fill"] + timed_update) / word)
            self.bits = bits
        self.energy_pj = spent
        self.read = read
        self.written = written


def level_cycles(
    layout: Layout, s: int, costs: list[tuple[int, LevelCost]], used: Array, active: Array, compute_cycles: Array
) -> tuple[Array, Array]:
    """Cycles of one level and its slowdown; `active` (T, B) expected instances in use of the `used` (B,) ones."""
    level = layout.levels[s]
    read = np.zeros_like(compute_cycles)
    written = np.zeros_like(compute_cycles)
    busy = np.where(compute_cycles > 0.0, compute_cycles, 1.0)
    for t, cost in costs:
        alive = active[t] > 0.0
        share = used / np.where(alive, active[t], 1.0)
        read += np.where(alive, np.ceil(cost.read / share), 0.0) / busy
        written += np.where(alive, np.ceil(cost.written / share), 0.0) / busy
    slowdown = np.ones_like(busy)
    demands = ((level.read_bandwidth, read), (level.write_bandwidth, written), (level.bandwidth, read + written))
    for bandwidth, demand in demands:
        if bandwidth is not None:
            slowdown = np.minimum(slowdown, bandwidth / np.maximum(demand, bandwidth))
    cycles = np.ceil(busy / slowdown)
    # nothing computed: the level still moves its words (the evaluator divides by zero there)
    return np.where((compute_cycles > 0.0) | (slowdown < 1.0), cycles, 0.0), slowdown


def compute_energy(layout: Layout, compute: Compute) -> Array:
    actual, gated, skipped = layout.mac
    return compute.actual * actual + compute.gated * gated + compute.skipped * skipped
