"""Results of a search beside the best design: scenarios, executed designs, the front."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap import Best, Objective, Result
from sparsemap.files import aligned
from sparsemap.pieces.contracts import styled

from .tables import Cell, PageTable, number, numbers
from .wording import numbers_text

FRONT_SHOWN = 8
EXECUTED = ("energy_pj", "cycles")


def scenario_lines(best: Best) -> list[str]:
    """Cost and gap to the bound in each scenario."""
    rows = [["", "weight", "EDP", "energy", "cycles", "over the bound"]]
    for name, there in best.scenarios.items():
        gap = f"{there.gap:.2f}x" if there.gap is not None and math.isfinite(there.gap) else "-"
        weight = f"{best.problem.scenarios[name].weight:.3g}"
        rows.append([name, weight, *numbers_text(there.energy_pj, there.cycles), gap])
    lines = [styled("scenarios that the score is of", "strong"), *(f"  {line}" for line in aligned(rows))]
    if unfit := " and ".join(name for name, there in best.scenarios.items() if not math.isfinite(there.energy_pj)):
        lines.append(styled(f"  the design does not fit at {unfit}, which the score leaves out", "warning"))
    return lines


def executed_table(designs: Sequence[Mapping[str, Any]]) -> PageTable:
    """Executed designs: claim, executed over claimed, corrected score, and the largest difference."""
    rows: list[list[Cell]] = []
    for i, one in enumerate(designs):
        needed, at = one.get("executed_over_claimed", {}), f"executed.{i}."
        shares = [number(needed.get(x), "{:.3f}x".format, f"{at}executed_over_claimed.{x}") for x in EXECUTED]
        scores = [number(one[x]["score"], "{:.4g}".format, f"{at}{x}.score") for x in ("claimed", "corrected")]
        part = f"not executed: {one['refused']}" if one.get("refused") else next(iter(one.get("parts", {})), "-")
        rows.append([f"{i + 1}", scores[0], *shares, scores[1], part])
    return PageTable(["", "claimed score", "energy", "cycles", "corrected score", "differs most in"], rows)


def executed_lines(result: Result) -> list[str]:
    title = "the best designs executed on sampled tensors: executed over claimed, ranked by the corrected score"
    lines = executed_table(result.to_dict()["executed"]).lines(align="<>>>><", margin=2)
    if ran := next((one.execution for one in result.executed if one.execution), None):
        lines.append("  at " + ", ".join(f"{dim} {size:,}" for dim, size in ran.sizes.items()))
    return [styled(title, "strong"), *lines]


def front_table(front: Sequence[Mapping[str, Any]], objective: Objective, shown: Sequence[int]) -> PageTable:
    """Designs of a front by their objectives, with their units."""
    heads = zip(objective.names, objective.units, strict=True)
    rows: list[list[Cell]] = []
    for i in shown:
        seen = front[i]["objectives"]
        cells = [number(seen[name], "{:.4g}".format, f"front.{i}.objectives.{name}") for name in objective.names]
        rows.append([f"{i + 1}", *cells, *numbers(front[i], f"front.{i}.")])
    head = ["", *(f"{name} ({unit})" if unit else name for name, unit in heads), "EDP", "energy", "cycles"]
    return PageTable(head, rows)


def front_lines(result: Result, objective: Objective) -> list[str]:
    """Nondominated designs, spread evenly if there are many."""
    front, count = result.to_dict()["front"], len(result.front)
    shown = sorted({round(i * (count - 1) / (FRONT_SHOWN - 1)) for i in range(FRONT_SHOWN)})
    some = f", {len(shown)} of them" if len(shown) < count else ""
    title = f"front of {count} designs that no other one found dominates{some}"
    table = front_table(front, objective, shown)
    less = attrs.evolve(table, head=table.head[:-3], rows=[row[:-3] for row in table.rows])
    return [styled(title, "strong"), *less.lines(align="<>", margin=2)]
