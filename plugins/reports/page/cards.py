"""Chips side by side at the top of a comparison: compute units, memories and clock of each, with bars of the costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap.pieces.contracts.hardware import BANDWIDTHS
from sparsemap.pieces.data_specs import Hardware
from sparsemap.spec.units import format_energy

from ..compare.sides import Compared
from ..tables import Cell, number
from ..wording import CHIP_COSTS, COST_NAMES

MOST = 4
"""Largest number of chips side by side."""
BARS = {"seconds": CHIP_COSTS["seconds"], "energy_pj": format_energy, "area_mm2": CHIP_COSTS["area_mm2"]}
"""Costs with a bar."""


@attrs.frozen
class Bar:
    label: str
    value: Cell
    share: float
    """Share of the largest value among the chips, in percent."""


@attrs.frozen
class ChipCard:
    name: str
    rows: Sequence[tuple[str, str]]
    """Names of levels and keys, with amounts."""
    bars: Sequence[Bar]


def counts_of(hardware: Mapping[str, Any]) -> list[tuple[str, int, Any]]:
    """Name, instances and capacity of every level of a hardware table; last the compute units."""
    rows, count = list[tuple[str, int, Any]](), 1
    for level in hardware["levels"]:
        rows.append((level["name"], count, level.get("capacity")))
        count *= level.get("fanout", 1)
    return [*rows, (hardware.get("compute", {}).get("name", "MAC"), count, None)]


def cards(sides: Sequence[Compared], with_costs: bool = True) -> list[ChipCard]:
    """A card for each of two to four chips; none for results on one chip, or with an unknown one."""
    if not 2 <= len({side.hardware for side in sides}) == len(sides) <= MOST or not all(side.chip for side in sides):
        return []
    known = [key for key in BARS if with_costs and all(side.value(key) for side in sides)]
    most = {key: max(side.value(key) or 0.0 for side in sides) for key in known}
    found = []
    for side in sides:
        bars = [
            Bar(
                COST_NAMES.get(key, "energy"),
                number(side.value(key), BARS[key]),
                100 * (side.value(key) or 0.0) / most[key],
            )
            for key in known
        ]
        found.append(ChipCard(side.hardware, _rows(side), bars))
    return found


def _rows(side: Compared) -> list[tuple[str, str]]:
    *memories, (name, count, _) = counts_of(side.chip)
    rows = [(name, f"{count:,}")]
    for level, (memory, instances, capacity) in zip(side.chip["levels"], memories, strict=True):
        several = f"{instances:,} × " if instances > 1 else ""
        wide = " + ".join(dict.fromkeys(str(level[key]) for key in BANDWIDTHS if level.get(key)))
        rows.append(
            (memory, ", ".join(filter(None, [f"{several}{capacity}" if capacity else level.get("standard"), wide])))
        )
    clock = side.chip.get("clock", attrs.fields(Hardware).clock.default)
    return [*rows, ("clock", clock), ("technology", side.technology)]
