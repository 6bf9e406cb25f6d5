"""Energy of a design by level and tensor, and the limits of its cycles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..problem.evaluation import Detail
from ..problem.problem import Problem

COMPUTES, CHARGES, STALLS = "computes", "charges", "stalls"
LOST = GATED, IMBALANCE, NARROW = "gated cycles", "lane imbalance", "narrow skips"
"""Causes of cycles without a product: gated computes, accesses and positions; units that wait for a fuller one; skips
that pass fewer positions per cycle than are empty."""
ROUNDING = 1e-10
"""Share of a total attributed to rounding."""
LITTLE = 0.01
"""Share of the cycles from which imbalance or stalls are part of a limit."""


@attrs.frozen
class LevelCosts:
    """A storage level, or the compute units."""

    name: str
    energy_pj: float | None
    by_tensor: Mapping[str, float]
    """pJ by tensor; empty for the compute units."""
    cycles: float | None
    bytes_by_tensor: Mapping[str, float] = attrs.field(factory=dict)
    """Bytes read and written, with metadata, by tensor; empty if unknown, and for the compute units."""


@attrs.frozen
class Breakdown:
    """Energy and cycles of a design by level; numbers missing from the cost model are None or left out.

    The energies of rows and charges add up to `energy_pj`; the cycles of the slowest row and `waiting_cycles` to
    `cycles`."""

    rows: tuple[LevelCosts, ...]
    """From the outermost level inwards, then the compute units."""
    energy_pj: float
    cycles: float
    charges: Mapping[str, float] = {}
    """pJ outside all levels and computes, by charge of the cost model; `charges` is the rest without a name."""
    units_used: float | None = None
    """Share of the compute units with work."""
    lost: Mapping[str, float] = {}
    """Cycles of the compute units without a product, part of their cycles, by cause (`LOST`)."""

    @classmethod
    def of(cls, problem: Problem, detail: Detail, energy_pj: float, cycles: float) -> Breakdown:
        """Breakdown from the detail of an evaluation: energies and cycles by level, of the computes and of charges."""
        by_tensor, by_level = detail.energy_pj, detail.level_cycles
        rows = []
        for index, level in enumerate(problem.levels):
            parts: dict[str, float] = {}
            if by_tensor is not None:
                kept = (t for t in range(len(problem.tensors)) if problem.stores(t, index))
                parts = {problem.tensors[t].name: float(np.asarray(by_tensor)[t, index, 0]) for t in kept}
            spent = sum(parts.values()) if by_tensor is not None else None
            moved = _bytes(problem, detail, index)
            rows.append(LevelCosts(level.name, spent, parts, _at(by_level, index, 0), moved))
        spent, busy = _at(detail.compute_energy_pj, 0), _at(detail.compute_cycles, 0)
        rows.append(LevelCosts(problem.compute_name, spent, {}, busy))
        charges = {name: float(np.ravel(each)[0]) for name, each in detail.charges_pj.items()}
        used, done, lost = _at(detail.instances_used, -1, 0), _at(detail.computes, 0), dict[str, float]()
        mean, uneven = _at(detail.mean_cycles, 0), _at(detail.uneven_cycles, 0)
        if busy and used and done is not None and mean is not None and uneven is not None:
            causes = zip(LOST, (mean - done / used, uneven - mean, busy - uneven), strict=True)
            lost = {cause: count for cause, count in causes if count >= 1.0}
        return cls._whole(rows, energy_pj, cycles, charges, used and used / problem.compute_instances, lost)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], costs: Mapping[str, Any] | None = None) -> Breakdown:
        """Breakdown from a table with `energy_pj` and `cycles`, and a table in the form of `to_dict`, by default the
        same table."""
        costs = table if costs is None else costs
        rows = [LevelCosts(**row) for row in costs.get("levels", ())]
        about = costs.get("charges", {}), costs.get("units_used"), costs.get("lost_cycles", {})
        return cls._whole(rows, table["energy_pj"], table["cycles"], *about)

    @classmethod
    def _whole(
        cls, rows: Sequence[LevelCosts], energy_pj: float, cycles: float, charges: Mapping[str, float],
        used: float | None, lost: Mapping[str, float],
    ) -> Breakdown:  # fmt: skip
        """Breakdown with an additional charge for energy outside all rows and charges."""
        named = {name: pj for name, pj in charges.items() if pj}
        spent = [row.energy_pj for row in rows if row.energy_pj is not None]
        if spent and math.isfinite(energy_pj):
            rest = energy_pj - math.fsum([*spent, *named.values()])
            if abs(rest) > ROUNDING * energy_pj:
                named[CHARGES] = named.get(CHARGES, 0.0) + rest
        return cls(tuple(rows), energy_pj, cycles, named if spent else {}, used, lost)

    @property
    def known(self) -> bool:
        """Whether the cost model gives energy or cycles of any level, of the computes, or of a charge."""
        return bool(self.charges) or any(x is not None for row in self.rows for x in (row.energy_pj, row.cycles))

    @property
    def charges_pj(self) -> float:
        """pJ outside all levels and computes; 0 for a cost model without energies by level."""
        return math.fsum(self.charges.values())

    @property
    def energies(self) -> dict[str, dict[str, float]]:
        """pJ by level, compute units and charge, then by tensor, `computes` or `charges`; adds up to the energy.

        Empty for a cost model without energies by level."""
        rows = [row for row in self.rows if row.energy_pj is not None]
        spent = {row.name: dict(row.by_tensor) or {COMPUTES: row.energy_pj or 0.0} for row in rows}
        for name, pj in self.charges.items():
            spent[name if name not in spent else f"charge {name}"] = {CHARGES: pj}
        return spent

    @property
    def waiting_cycles(self) -> float:
        """Cycles of exposed transfers beyond the cycles of the slowest row; 0 if unknown."""
        slowest = max((row.cycles for row in self.rows if row.cycles is not None), default=self.cycles)
        return self.cycles - slowest if self.cycles > slowest * (1 + ROUNDING) else 0.0

    @property
    def limit(self) -> str:
        """Limit of the cycles: a level's bandwidth, or the compute units; with lost cycles and stalls that are more than
        `LITTLE`. Empty for a cost model without cycles by level."""
        timed = [row for row in self.rows if row.cycles is not None]
        if not timed:
            return ""
        compute, levels = self.rows[-1], [row for row in timed if row is not self.rows[-1]]
        slowest = max(timed, key=lambda row: row.cycles or 0.0)
        after = f", {STALLS}" if self.waiting_cycles >= LITTLE * self.cycles > 0 else ""
        if compute.cycles is not None and compute.cycles >= (slowest.cycles or 0.0):
            causes = [f", {name}" for name in LOST if self.lost.get(name, 0.0) >= LITTLE * self.cycles]
            return f"the {compute.name} units{''.join(causes)}{after}"
        names = [row.name for row in levels if row.cycles == slowest.cycles]
        return f"the bandwidth of {' and '.join(names)}{after}"

    def to_dict(self) -> dict[str, Any]:
        """Limit of the cycles, a row per level, pJ by charge, and cycles of stalls and causes, as plain data."""
        found = {"limit": self.limit, "levels": [attrs.asdict(row) for row in self.rows]}
        more = {"charges": dict(self.charges), "waiting_cycles": self.waiting_cycles, "units_used": self.units_used,
                "lost_cycles": dict(self.lost)}  # fmt: skip
        return found | {key: value for key, value in more.items() if value}

    def to_pandas(self) -> Any:
        """A data frame with a row per level, per charge, and for stalls. Columns: pJ by tensor; `energy_pj`, adding up
        to the energy; `cycles`, with the slowest level and stalls adding up to the cycles."""
        from .frames import breakdown_frame

        return breakdown_frame(self)


def limit_alone(limit: str) -> str:
    """A `Breakdown.limit` without imbalance and stalls."""
    return limit.partition(", ")[0]


def _bytes(problem: Problem, detail: Detail, level: int) -> dict[str, float]:
    """Bytes read and written at a level by all instances, by tensor."""
    found: dict[str, float] = {}
    for t, cells in enumerate(detail.cells or ()):
        if (cell := cells[level]) is not None and detail.instances_active is not None and problem.stores(t, level):
            words = float(cell.read[0] + cell.fill[0] + cell.update[0])
            metadata = math.fsum(float(cell.bits[name][0]) for name in ("read", "fill", "update") if name in cell.bits)
            bits = words * float(detail.bits(problem.levels[level])[t]) + metadata
            found[problem.tensors[t].name] = bits * float(detail.instances_active[t, level, 0]) / 8.0
    return found


def _at(values: Any, *index: int) -> float | None:
    return None if values is None else float(np.asarray(values)[index])
