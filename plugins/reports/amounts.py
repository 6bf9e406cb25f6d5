"""How amounts of designs are put into words beside each other."""

from __future__ import annotations

import math

from sparsemap.problem.levels import Level
from sparsemap.spec.units import format_count, format_energy


def bandwidth_text(level: Level) -> str:
    """`read 8, write 4`, in words a cycle; "" where nothing is limited."""
    known = {"read": level.read_bandwidth, "write": level.write_bandwidth, "both": level.bandwidth}
    return ", ".join(f"{name} {value:.4g}" for name, value in known.items() if value is not None)


COST_NAMES = {"seconds": "time", "power_w": "power", "area_mm2": "area"}


def numbers_text(energy_pj: float, cycles: float) -> list[str]:
    """EDP, energy and cycles; dashes for an invalid design."""
    if not math.isfinite(energy_pj):
        return ["-", "-", "-"]
    return [f"{energy_pj * cycles:.3e}", format_energy(energy_pj), format_count(cycles)]


def change_text(new: float, old: float) -> str:
    """`-12.3 %`, or `57.3x` from ten times on."""
    if not old:
        return "-"
    return f"{new / old:.3g}x" if new / old >= 10 else f"{100 * (new / old - 1):+.1f} %"
