"""Energy from the counts and the cycles (section 9 of the model and its charges)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from sparsemap.pieces.boundary import charged
from sparsemap.pieces.contracts.base import Array, PerDesign, PerTile
from sparsemap.problem.chip import Chip

from .actions import GATE, SKIP
from .charges.intersection import compared_pj
from .charges.network import network_pj
from .counts import Counts
from .cycles import Cycles
from .layout import by_level
from .nest import DesignChoices, Nest
from .prepared import ModelTables
from .prices import gated_extra, leakage_pj_per_cycle, price
from .traffic import Traffic


@attrs.frozen(eq=False)
class Cost:
    """The last link of the chain; (B,) unless said otherwise."""

    energy_pj: PerDesign
    cycles: PerDesign
    tile_pj: PerTile
    """(T, S, B) by tensor and level, all instances, without the charges below."""
    compute_pj: PerDesign
    charges_pj: Mapping[str, PerDesign]
    """What charges add to the energy, by their names."""


def cost_of(
    known: ModelTables, nest: Nest, choices: DesignChoices, traffic: Traffic, counts: Counts, cycles: Cycles
) -> Cost:
    """Section 9, and the charges that cost energy: in the order of their names here, then those of plugins by name."""
    lay, options, chip = known.layout, known.options, choices.chip
    tile_pj, compute_pj = access_energy(chip, counts) * counts.active, compute_energy(chip, counts)
    if "short-tiles" in known.quirks and (lay.problem.chip.access_words > 1).any():
        from .forgotten import short_tiles

        tile_pj = access_energy(chip, counts, short_tiles(known, nest, choices)) * counts.active
    clusters = np.array([level.memory.cluster for level in lay.problem.levels])
    if (clusters > 1).any():
        used = nest.instances_used[: lay.S]
        tile_pj = tile_pj * (np.minimum(used, by_level(chip.instances[:-1]) / clusters[:, None]) / used)
    if choices.decoded is not None:
        from .recoding import recoding_pj

        tile_pj = tile_pj + recoding_pj(lay, known.quirks, choices, chip, counts)
    energy = compute_pj
    for s in range(lay.S):  # one by one: sums of NumPy may add in another order for another batch
        for t in range(lay.T):
            energy = energy + tile_pj[t, s]
    spent: dict[str, PerDesign] = {}
    if options.intersection:
        spent["intersection"] = compared_pj(known, choices, counts)
    if options.leakage:
        spent["leakage"] = leakage_pj_per_cycle(chip, nest.instances_used[: lay.S]) * cycles.total
    if options.gated:
        spent["gated"] = gated_pj(chip, counts, options.positions)
    if options.network:
        spent["network"] = network_pj(known, nest, traffic, counts, chip)
    if known.strangers:
        from .public import chip_counts

        public = chip_counts(nest, counts, cycles.total)
        for charge in known.strangers:
            spent[charge.type_name] = charged(charge, "pj", public, chip)
    for added_pj in spent.values():
        energy = energy + added_pj
    return Cost(energy, cycles.total, tile_pj, compute_pj, spent)


def access_energy(chip: Chip, counts: Counts, ratio: PerTile | float = 1.0) -> PerTile:
    """(T, S, B) pJ of one instance; `ratio`: accesses for every one of whole accesses."""
    together = by_level(chip.access_words)
    whole = bool((together == 1).all())

    def words(count: Array) -> Array:
        """Those of whole accesses."""
        return count if whole else np.ceil(count / together) * together * ratio

    spent = words(counts.read) * price(chip, "read") + words(counts.fill) * price(chip, "fill")
    spent = spent + words(counts.update) * price(chip, "update")
    for name, kind in (("gated", GATE), ("skipped", SKIP)):
        mask = counts.kind == kind
        spent = spent + words(counts.gone_read) * mask * price(chip, f"{name}_read")
        spent = spent + words(counts.gone_update) * mask * price(chip, f"{name}_update")
    for action, bits in counts.bits.items():
        prefix, _, name = action.rpartition("_")
        each = price(chip, f"{prefix}_metadata_{name}" if prefix else f"metadata_{name}")
        if each.any():
            spent = spent + np.ceil(bits / by_level(chip.metadata_width)) * each
    return spent


def compute_energy(chip: Chip, counts: Counts) -> PerDesign:
    """(B,) pJ."""
    computes = counts.computes
    actual, gated, skipped = (chip.mac_pj[action] for action in ("compute", "gated", "skipped"))
    return computes.actual * actual + computes.gated * gated + computes.skipped * skipped


def total(parts: PerTile) -> PerDesign:
    """The sum over tensors and levels, one by one: sums of NumPy may add in another order for another batch."""
    found = parts[0, 0]
    for s in range(parts.shape[1]):
        for t in range(parts.shape[0]):
            found = found + parts[t, s] if s or t else found
    return found


def gated_pj(chip: Chip, counts: Counts, positions: bool) -> PerDesign:
    """(B,) what gated accesses and computes cost beyond their own price (docs/model.md, `gated`); with `positions` a unit
    that passes an empty one is clocked as well."""
    residual = chip.gated_residual

    spent = counts.gone_read * gated_extra(chip, "read") + counts.gone_update * gated_extra(chip, "update")
    for action in ("read", "update"):
        bits = counts.bits.get(f"gated_{action}")
        if bits is not None:
            spent = spent + np.ceil(bits / by_level(chip.metadata_width)) * gated_extra(chip, f"metadata_{action}")
    added = total(spent * ((counts.kind == GATE) * counts.active))
    each = np.maximum(0.0, residual * chip.mac_pj["compute"] - chip.mac_pj["gated"])
    idle = counts.computes.gated
    return added + idle * each + (counts.computes.passed * (residual * chip.mac_pj["compute"]) if positions else 0.0)
