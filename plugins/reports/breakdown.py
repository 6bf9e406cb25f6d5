"""Energy of a design by level and tensor, and the limits of its cycles."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from sparsemap import Exporter, Result
from sparsemap.files import percent
from sparsemap.pieces.contracts import styled
from sparsemap.problem.problem import Problem
from sparsemap.searching.breakdown import STALLS, Breakdown, LevelCosts
from sparsemap.spec.units import format_count, format_energy

from .tables import Cell, PageTable, number

NONE = "the cost model reports no energy and cycles by level"


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
    """The table, or a line about the missing detail of the cost model."""
    if not (table := breakdown_table(found, problem)):
        return [NONE]
    *body, total = table.lines(("level", "share"), "<>")
    return [*body, styled(total, "strong")]


def breakdown_table(found: Breakdown, problem: Problem) -> PageTable | None:
    """A row for each level, the compute units, each charge, stalls, and the sums; None without any detail."""
    if all(row.energy_pj is None and row.cycles is None for row in found.rows):
        return None
    names = [tensor.name for tensor in problem.tensors]

    def energies(pj: float | None, of: str) -> list[Cell]:
        part = number((pj or 0.0) / found.energy_pj, percent) if pj is not None and found.energy_pj else ""
        return [number(pj, format_energy, of), part]

    rows: list[list[Cell]] = []
    for i, row in enumerate(found.rows):
        at = f"levels.{i}."
        parts = [number(row.by_tensor.get(name), format_energy, f"{at}by_tensor.{name}") for name in names]
        cycles = "keeps up" if keeps_up(row, found.rows[-1]) else number(row.cycles, format_count, f"{at}cycles")
        rows.append([row.name, *parts, *energies(row.energy_pj, f"{at}energy_pj"), cycles])
    none = ["-" for _ in names]
    rows += [[name, *none, *energies(pj, f"charges.{name}"), ""] for name, pj in found.charges.items()]
    if found.waiting_cycles:
        rows.append([STALLS, *none, "", "", number(found.waiting_cycles, format_count, "waiting_cycles")])
    sums = [number(math.fsum(row.by_tensor.get(name, 0.0) for row in found.rows), format_energy) for name in names]
    ends = number(found.energy_pj, format_energy, "energy_pj"), "", number(found.cycles, format_count, "cycles")
    return PageTable(["level", *names, "energy", "share", "cycles"], [*rows, ["total", *sums, *ends]])


def keeps_up(row: LevelCosts, compute: LevelCosts) -> bool:
    """Whether a level delivers as fast as the compute units work."""
    timed = row.cycles is not None and compute.cycles is not None
    return row is not compute and timed and (row.cycles or 0.0) <= (compute.cycles or 0.0)
