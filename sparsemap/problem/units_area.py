"""Area of the units that a hardware lists beside its memories and multipliers."""

from __future__ import annotations

from collections.abc import Sequence

from ..pieces.contracts import Technology
from ..pieces.data_specs import Hardware
from ..pieces.registry import Registry
from .chip import sparse_mm2
from .levels import Level


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
