"""A design for other programs: energies as CSV, everything as JSON; and the effect of its loop orders."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np

from sparsemap import Exporter, Result
from sparsemap.csv_files import csv_text
from sparsemap.file_formats import FileFormat
from sparsemap.files import aligned, times
from sparsemap.pieces.contracts import styled
from sparsemap.problem import design_file
from sparsemap.problem.orders import classes, orders_of, reordered
from sparsemap.problem.problem import Problem
from sparsemap.spec.unstructuring import plain

REPORT = FileFormat("report", "`report.json` of `sparsemap export --to json`")
ORDERS_SHOWN = 12
"""Classes of orders in the text; `--json` has all."""


class EnergyTable(Exporter):
    """Energy in pJ per level and tensor, and per charge; compute units have no tensor."""

    type_name: ClassVar[str] = "csv"
    file_name: ClassVar[str] = "energy.csv"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        rows = [
            {"level": row.name, "tensor": tensor, "energy_pj": energy}
            for row in result.breakdown().rows
            if row.energy_pj is not None
            for tensor, energy in (row.by_tensor or {"": row.energy_pj}).items()
        ]
        charges = result.breakdown().charges.items()
        return csv_text(rows + [{"level": f"charge {name}", "tensor": "", "energy_pj": pj} for name, pj in charges])


class JsonReport(Exporter):
    """Result, design and breakdown by level."""

    type_name: ClassVar[str] = "json"
    file_name: ClassVar[str] = "report.json"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        return json.dumps(REPORT.stamped(self.data(result, problem)), indent=2) + "\n"

    def data(self, result: Result, problem: Problem) -> dict[str, Any]:
        design = plain(design_file.dump(result.found.design, result.found.numbers))
        return {**result.to_dict(), "design": design, **result.breakdown().to_dict()}


class OrdersText(Exporter):
    """Classes of loop orders with equal cost: one order at all levels, and another order at one level.

    Above 5,040 orders as many random ones are tried (Kao et al., IISWC 2022, Section 4.4, Fig. 7, for any design).
    """

    type_name: ClassVar[str] = "orders"
    file_name: ClassVar[str] = "orders.txt"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        found = self.data(result, problem)
        rows = [["orders changed at", "tried", "valid", "classes", "best", "worst"]]
        for row in found["levels"]:
            counts = [f"{row[key]:,}" for key in ("orders", "valid", "classes")]
            rows.append([row["level"], *counts, times(row["best"]), times(row["worst"])])
        shown = found["classes"][:ORDERS_SHOWN]
        lines = [[times(group["score"]), f"{group['orders']:,} orders", group["order"]] for group in shown]
        head = styled("one order at all levels: classes of equal score, over that of the design", "strong")
        body = [*aligned(rows, "<>"), "", head, *aligned(lines, "><<")]
        body += [f"and {more:,} more"] if (more := len(found["classes"]) - ORDERS_SHOWN) > 0 else []
        return "\n".join(body) + "\n"

    def data(self, result: Result, problem: Problem) -> dict[str, Any]:
        """Scores over the design's score."""
        design, own = result.found.design.batch, result.found.score
        loops = design.columns["bounds"][:, :, 0] > 1
        rows, groups = list[dict[str, Any]](), list[dict[str, Any]]()
        levels = [(None, loops.any(axis=0)), *((at, row) for at, row in enumerate(loops) if row.sum() > 1)]
        for level, present in levels:
            dims = np.flatnonzero(present)
            orders = orders_of(dims.tolist(), len(problem.dims))
            scores = problem.evaluator.score(reordered(problem, design, orders, level)) / own
            found = classes(scores)
            ends = {"best": float(scores[found[0][0]]), "worst": float(scores[found[-1][0]])} if found else {}
            name = "all levels" if level is None else problem.mapping_levels[level].name
            counts = {"orders": len(orders), "valid": int(np.isfinite(scores).sum()), "classes": len(found)}
            rows.append({"level": name, **counts, "best": None, "worst": None, **ends})
            for group in found if level is None else ():
                order = " ".join(problem.dims[dim] for dim in orders[group[0]][: len(dims)])
                groups.append({"score": float(scores[group[0]]), "orders": len(group), "order": order})
        return {"levels": rows, "classes": groups}
