"""A design for other programs: its energies as CSV, everything as JSON, the design alone as TOML."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from sparsemap import Exporter, Result
from sparsemap.csv_files import csv_text
from sparsemap.problem import design_file
from sparsemap.problem.problem import Problem
from sparsemap.spec.unstructuring import plain


class EnergyTable(Exporter):
    """One line per level and tensor with its energy in pJ, and per charge; the compute units have no tensor."""

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
    """The result, its design and its breakdown by level."""

    type_name: ClassVar[str] = "json"
    file_name: ClassVar[str] = "report.json"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        return json.dumps(self.data(result, problem), indent=2) + "\n"

    def data(self, result: Result, problem: Problem) -> dict[str, Any]:
        design = plain(design_file.dump(result.found.design, result.found.numbers))
        return {**result.to_dict(), "design": design, **result.breakdown().to_dict()}


class DesignTable(Exporter):
    """The design file, which `sparsemap evaluate` and `sparsemap show` read."""

    type_name: ClassVar[str] = "toml"
    file_name: ClassVar[str] = "design.toml"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        return result.found.text()
