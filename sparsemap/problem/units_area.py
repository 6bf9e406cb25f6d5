"""Area of the units that a hardware lists beside its memories and multipliers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..pieces.contracts import Technology
from ..pieces.data_specs import Hardware
from ..pieces.registry import Registry
from .chip import sparse_mm2
from .levels import Level

if TYPE_CHECKING:
    from .problem import Problem


def units_mm2(levels: Sequence[Level], technology: Technology, hardware: Hardware, registry: Registry) -> float:
    """Area of the converter, the vector unit and the sparse units of a hardware."""
    others = hardware.converter.area_mm2 if hardware.converter else 0.0
    others += hardware.vector.lanes * hardware.vector.area_mm2 if hardware.vector else 0.0
    if hardware.units is None:
        return others
    mechanisms = {
        place: [registry.get("mechanism", name).unit_macs for name in names]
        for place, names in hardware.units.mechanisms.items()
    }
    formats = [registry.get("format", name).unit_macs for names in hardware.units.formats.values() for name in names]
    numbers = (registry.get("number-format", name) for name in hardware.units.number_formats or ())
    formats += [one.unit_macs(technology) for one in numbers]
    return sparse_mm2(levels, technology, hardware, mechanisms, formats) + others


def parts_mm2(problem: Problem) -> dict[str, float]:
    """Area in mm2 by level (`Level.part`), compute units and sparse units, without empty entries."""
    chip = problem.chip
    parts = {level.part: float(level.instances * chip.area_mm2[level.index]) for level in problem.levels}
    parts[problem.compute_name] = float(chip.instances[-1] * chip.mac_area_mm2)
    parts["sparse units"] = float(chip.units_area_mm2)
    return {name: area for name, area in parts.items() if area}
