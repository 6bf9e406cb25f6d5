"""Where the energy of a design goes, by level and tensor, and what its cycles wait for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Exporter, Result
from sparsemap.files import aligned, percent
from sparsemap.pieces.contracts import styled
from sparsemap.problem.problem import Problem
from sparsemap.spec.units import format_count, format_energy


@attrs.frozen
class Row:
    """A storage level, or the compute units."""

    name: str
    energy_pj: float | None
    by_tensor: Mapping[str, float]
    """pJ by tensor; empty for the compute units."""
    cycles: float | None


@attrs.frozen
class Breakdown:
    """Energy and cycles of one design by level; what a cost model does not tell is None or missing."""

    rows: tuple[Row, ...]
    energy_pj: float
    cycles: float

    @classmethod
    def of(cls, problem: Problem, detail: Mapping[str, Any], energy_pj: float, cycles: float) -> Breakdown:
        """From the detail of an evaluation: `energy_pj` (T, S, B), `level_cycles` (S, B), `compute_energy_pj` and
        `compute_cycles` (B,), each of which may be missing."""
        by_tensor, by_level = detail.get("energy_pj"), detail.get("level_cycles")
        rows = []
        for index, level in enumerate(problem.levels):
            parts: dict[str, float] = {}
            if by_tensor is not None:
                kept = (t for t in range(len(problem.tensors)) if problem.stores(t, index))
                parts = {problem.tensors[t].name: float(np.asarray(by_tensor)[t, index, 0]) for t in kept}
            spent = sum(parts.values()) if by_tensor is not None else None
            rows.append(Row(level.name, spent, parts, _at(by_level, index, 0)))
        name = problem.compute_name
        spent, busy = _at(detail.get("compute_energy_pj"), 0), _at(detail.get("compute_cycles"), 0)
        return cls((*rows, Row(name, spent, {}, busy)), energy_pj, cycles)

    @property
    def limit(self) -> str:
        """What limits the cycles: a level's bandwidth, or the compute units; "" where the cost model does not say."""
        timed = [row for row in self.rows if row.cycles is not None]
        if not timed:
            return ""
        compute, levels = self.rows[-1], [row for row in timed if row is not self.rows[-1]]
        slowest = max(timed, key=lambda row: row.cycles or 0.0)
        if compute.cycles is not None and compute.cycles >= (slowest.cycles or 0.0):
            return f"the {compute.name} units"
        names = [row.name for row in levels if row.cycles == slowest.cycles]
        return f"the bandwidth of {' and '.join(names)}"

    def to_dict(self) -> dict[str, Any]:
        """What limits the cycles, and a row per level, as plain data."""
        return {"limit": self.limit, "levels": [attrs.asdict(row) for row in self.rows]}


@attrs.frozen(kw_only=True)
class BreakdownText(Exporter):
    """Energy by level and tensor, and cycles by level, as a text table."""

    type_name: ClassVar[str] = "breakdown"
    file_name: ClassVar[str] = "breakdown.txt"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        return "\n".join(breakdown_lines(breakdown_of(result), problem)) + "\n"

    def data(self, result: Result, problem: Problem) -> dict[str, Any]:
        found = breakdown_of(result)
        return {"energy_pj": found.energy_pj, "cycles": found.cycles, **found.to_dict()}


def breakdown_of(result: Result) -> Breakdown:
    """The breakdown of the best design of a result."""
    best = result.found
    return Breakdown.of(best.problem, best.detail, best.energy_pj, best.cycles)


def breakdown_lines(found: Breakdown, problem: Problem) -> list[str]:
    """The table, or a line that there is none if the cost model gives no detail."""
    if all(row.energy_pj is None and row.cycles is None for row in found.rows):
        return ["the cost model reports no energy and cycles by level"]
    names = [tensor.name for tensor in problem.tensors]
    lines = [["", *names, "energy", "", "cycles"]]
    compute = found.rows[-1].cycles
    for row in found.rows:
        parts = [format_energy(row.by_tensor[name]) if name in row.by_tensor else "-" for name in names]
        spent = "-" if row.energy_pj is None else format_energy(row.energy_pj)
        share = "" if row.energy_pj is None or not found.energy_pj else percent(row.energy_pj / found.energy_pj)
        lines.append([row.name, *parts, spent, share, _cycles(row, compute, row is found.rows[-1])])
    sums = [format_energy(sum(row.by_tensor.get(name, 0.0) for row in found.rows)) for name in names]
    lines.append(["total", *sums, format_energy(found.energy_pj), "", format_count(found.cycles)])
    *body, total = aligned(lines)
    return [*body, styled(total, "strong")]


def _cycles(row: Row, compute: float | None, last: bool) -> str:
    """The cycles of a level, or that it delivers as fast as the compute units work."""
    if row.cycles is None:
        return "-"
    if not last and compute is not None and row.cycles <= compute:
        return "keeps up"
    return format_count(row.cycles)


def _at(values: Any, *index: int) -> float | None:
    return None if values is None else float(np.asarray(values)[index])
