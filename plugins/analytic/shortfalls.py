"""Resources missing for designs exceeding the hardware, for messages."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.chip import Chip
from sparsemap.spec.units import format_bits

from .layout import limited
from .validity import Reasons, data_words

Shortfall = tuple[str, float, float, str]


def needed(
    reasons: Reasons, words: Array, bits: Array, group_products: Array, chip: Chip, found: Array
) -> list[list[Shortfall]]:
    """Per design: (reason, needed, available) in loops, words or, for separate metadata, bits, and a text for messages."""
    rows: list[tuple[str, Array, Array, Array | int, str]] = []
    below = [*chip.names, reasons.layout.problem.compute_name]
    for group, mapping_level in enumerate(reasons.layout.problem.mapping_levels):
        if mapping_level.spatial:
            s = mapping_level.storage
            text = f" parallel {below[s + 1]}"
            rows.append((f"fanout:{chip.names[s]}", group_products[group], chip.fanout[s], 0, text))
    for s, name in enumerate(chip.names):
        if limited(chip.capacity_bits[s]):
            width, shared = chip.word_bits[s], chip.shared_capacity[s]
            room = np.where(shared, np.ceil(bits[s] / width), 0.0)
            rows.append((f"capacity:{name}", words[s] + room, data_words(chip, s), width, ""))
        if limited(chip.metadata_capacity_bits[s]) and not np.all(chip.shared_capacity[s]):
            limit = np.floor(chip.metadata_capacity_bits[s])
            rows.append((f"metadata-capacity:{name}", np.ceil(bits[s]), limit, 1, " for metadata"))
    return [
        [
            _lacking(name, float(_of(needed, b)), float(_of(limit, b)), float(_of(unit, b)), text)
            for name, needed, limit, unit, text in rows
            if found[b] & reasons.bit[name]
        ]
        for b in range(len(found))
    ]


def _of(figure: Array | int, design: int) -> Array | int:
    """A design's own figure, from (B,), or the common figure."""
    return figure[design] if isinstance(figure, np.ndarray) and figure.ndim else figure


def _lacking(name: str, needed: float, available: float, unit_bits: float, what: str) -> Shortfall:
    """A row for messages; `unit_bits` is 0 for loops."""
    shown = [format_bits(n * unit_bits) if unit_bits else f"{n:,.0f}" for n in (needed, available)]
    return name, needed, available, f"{name.partition(':')[2]}: needs {shown[0]}{what}, has {shown[1]}"
