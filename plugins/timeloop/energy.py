"""Energies per action for every component, and areas of zero.

Every action that Timeloop knows is listed: for one that is missing it would take the energy of another. Given this
table it does not call Accelergy.
"""

from __future__ import annotations

from typing import Any

from sparsemap.problem.problem import Problem

from .names import Names

STORAGE_ACTIONS = {
    "random_read": "read",
    "random_fill": "write",
    "random_update": "write",
    "random_metadata_read": "metadata_read",
    "random_metadata_fill": "metadata_write",
    "random_metadata_update": "metadata_write",
} | {
    f"{kind}_{part}{action}": f"{kind}_{part}{action}"
    for kind in ("gated", "skipped")
    for part in ("", "metadata_")
    for action in ("read", "fill", "update")
}
"""Timeloop's action -> SparseMap's."""
FREE_ACTIONS = ("decompression_count", "compression_count")
"""A tensor is compressed at all levels or at none, so nothing is ever packed or unpacked on the way."""
COMPUTE_ACTIONS = {"mac_random": "compute", "mac_gated": "gated", "mac_skipped": "skipped"}


def energy_table(problem: Problem, names: Names) -> dict[str, Any]:
    """The table of the file `ERT.yaml`, in pJ."""
    tables = []
    for level, name in enumerate(names.levels):
        actions = {action: problem.energy_pj(level, own) for action, own in STORAGE_ACTIONS.items()}
        tables.append(_component(name, actions | dict.fromkeys(FREE_ACTIONS, 0.0)))
    macs = {action: problem.mac_pj(own) for action, own in COMPUTE_ACTIONS.items()}
    tables.append(_component(names.compute, macs))
    return {"ERT": {"version": 0.3, "tables": tables}}


def area_table(names: Names) -> dict[str, Any]:
    """The table of the file `ART.yaml`. Without area there is no distance, hence no wire energy either."""
    components = [*names.levels, names.compute]
    return {"ART": {"version": 0.3, "tables": [{"name": f"system.{name}", "area": 0.0} for name in components]}}


def _component(name: str, actions: dict[str, float]) -> dict[str, Any]:
    rows = [{"name": action, "energy": float(energy)} for action, energy in actions.items()]
    return {"name": f"system.{name}", "actions": rows}
