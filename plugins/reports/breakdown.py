"""Where the energy of a design goes, by level and tensor, and what its cycles wait for."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from sparsemap import Exporter, Result
from sparsemap.files import aligned, percent
from sparsemap.pieces.contracts import styled
from sparsemap.problem.problem import Problem
from sparsemap.searching.breakdown import WAITING, Breakdown, LevelCosts
from sparsemap.spec.units import format_count, format_energy


@attrs.frozen(kw_only=True)
class BreakdownText(Exporter):
    """Energy by level and tensor, and cycles by level, as a text table."""

    type_name: ClassVar[str] = "breakdown"
    file_name: ClassVar[str] = "breakdown.txt"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        return "\n".join(breakdown_lines(result.breakdown(), problem)) + "\n"

    def data(self, result: Result, problem: Problem) -> dict[str, Any]:
        found = result.breakdown()
        return {"energy_pj": found.energy_pj, "cycles": found.cycles, **found.to_dict()}


def breakdown_lines(found: Breakdown, problem: Problem) -> list[str]:
    """The table, or a line that there is none if the cost model gives no detail."""
    if all(row.energy_pj is None and row.cycles is None for row in found.rows):
        return ["the cost model reports no energy and cycles by level"]
    names = [tensor.name for tensor in problem.tensors]
    lines = [["", *names, "energy", "", "cycles"]]
    for row in found.rows:
        parts = [format_energy(row.by_tensor[name]) if name in row.by_tensor else "-" for name in names]
        spent = "-" if row.energy_pj is None else format_energy(row.energy_pj)
        share = "" if row.energy_pj is None or not found.energy_pj else percent(row.energy_pj / found.energy_pj)
        lines.append([row.name, *parts, spent, share, _cycles(row, found.rows[-1])])
    for charge, spent_pj in found.charges.items():
        lines.append([charge, *("-" for _ in names), format_energy(spent_pj), percent(spent_pj / found.energy_pj), ""])
    if found.waiting_cycles:
        lines.append([WAITING, *("-" for _ in names), "", "", format_count(found.waiting_cycles)])
    sums = [format_energy(sum(row.by_tensor.get(name, 0.0) for row in found.rows)) for name in names]
    lines.append(["total", *sums, format_energy(found.energy_pj), "", format_count(found.cycles)])
    *body, total = aligned(lines)
    return [*body, styled(total, "strong")]


def _cycles(row: LevelCosts, compute: LevelCosts) -> str:
    """The cycles of a level, or that it delivers as fast as the compute units work."""
    if row.cycles is None:
        return "-"
    if row is not compute and compute.cycles is not None and row.cycles <= compute.cycles:
        return "keeps up"
    return format_count(row.cycles)
