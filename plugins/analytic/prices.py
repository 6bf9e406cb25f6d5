"""Energies of accesses, wires to children and leakage on a chip, for the chain, its bound and the compiled model."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel
from sparsemap.problem.chip import Chip

from .layout import by_level

PRICES = {"fill": "write", "update": "write", "metadata_fill": "metadata_write", "metadata_update": "metadata_write"}
"""Actions of the model priced as another action of a chip."""
NS = 1e9


def price(chip: Chip, action: str) -> Array:
    """(S, 1) or (S, B) pJ of one access, by the model's action name."""
    return by_level(chip.energy_pj[PRICES.get(action, action)])


def gated_extra(chip: Chip, action: str) -> Array:
    """(S, 1) or (S, B) pJ of a gated access above its listed price."""
    return np.maximum(0.0, chip.gated_residual * price(chip, action) - price(chip, f"gated_{action}"))


def leakage_pj_per_cycle(chip: Chip, used: PerLevel | float) -> Array:
    """() or (B,) pJ leaked per cycle by all memories; with power gating, unused instances leak less (docs/model.md,
    `leakage`). `used`: instances in use, (S, B) or one number for every level."""
    count, every = np.broadcast_to(used, (len(chip), *np.shape(used)[1:])), chip.instances[:-1]
    awake = [
        own if np.all(share == 1.0) else here + (own - here) * share
        for own, here, share in zip(every, count, chip.asleep, strict=True)
    ]
    power_mw = sum(number * each for number, each in zip(awake, chip.leakage_mw, strict=True))
    return power_mw * NS / chip.clock_hz  # mW * ns = pJ


def tree_sides(chip: Chip) -> list[Array]:
    """Per level, the side in mm of the square over all children of one instance; () or (B,)."""
    below, sides = chip.mac_area_mm2, []
    for s in reversed(range(len(chip))):
        sides.append(np.sqrt(chip.fanout[s] * below))
        below = chip.area_mm2[s] + chip.fanout[s] * below
    return sides[::-1]


def length_mm(copies: PerDesign, leaves: Array | int, side: Array | float) -> PerDesign:
    """Wire length in mm of an H-tree from the root to `copies` of the leaves, spread evenly."""
    copies = np.minimum(copies, leaves)
    root = np.sqrt(copies)
    return side * (1.5 * (root - 1.0) + root - copies / np.sqrt(leaves))
