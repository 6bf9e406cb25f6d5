"""The evaluation of one design, shared by every text, figure and page."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import attrs

from sparsemap.problem.costs import Costs
from sparsemap.problem.designs import Design
from sparsemap.problem.evaluation import Detail
from sparsemap.searching.breakdown import Breakdown

from .accesses import Accesses, accesses_of


@attrs.frozen(eq=False, slots=False)
class DesignOutcome:
    design: Design
    energy_pj: float
    cycles: float
    """Both infinite where the design is not valid."""
    reasons: tuple[str, ...]
    detail: Detail

    @classmethod
    def of(cls, design: Design) -> DesignOutcome:
        found = design.problem.evaluator.evaluate_designs(design.batch, detail=True)
        numbers = float(found.energy_pj[0]), float(found.cycles[0])
        return cls(design, *numbers, found.reasons_of(0), found.detail or Detail())

    @property
    def edp(self) -> float:
        """pJ * cycles."""
        return self.energy_pj * self.cycles

    @cached_property
    def costs(self) -> dict[str, float]:
        """All costs by name, with costs of the chip such as `seconds` and `edp_js`."""
        return Costs({"energy_pj": self.energy_pj, "cycles": self.cycles}, self.design.problem.chip).floats()

    @property
    def valid(self) -> bool:
        return not self.reasons

    @property
    def fault(self) -> str:
        """`not valid: capacity:PEB`."""
        return f"not valid: {', '.join(self.reasons)}"

    @cached_property
    def breakdown(self) -> Breakdown:
        return Breakdown.of(self.design.problem, self.detail, self.energy_pj, self.cycles)

    @cached_property
    def accesses(self) -> dict[tuple[str, str], Accesses]:
        """By the names of tensor and level (`accesses_of`)."""
        return accesses_of(self.design, self.detail)

    @property
    def units(self) -> float | None:
        """Compute units in use."""
        used = self.detail.instances_used
        return None if used is None else float(used[-1, 0])

    @property
    def computes(self) -> tuple[float, float, float] | None:
        """Computes done, gated and skipped."""
        done, gated, skipped = self.detail.computes, self.detail.gated_computes, self.detail.skipped_computes
        if done is None or gated is None or skipped is None:
            return None
        return float(done[0]), float(gated[0]), float(skipped[0])

    @property
    def limit(self) -> str:
        """The limit of the cycles, `Breakdown.limit`."""
        return self.breakdown.limit

    @property
    def column(self) -> str:
        """The limit, or the fault of an invalid design."""
        return self.limit.removeprefix("the ") if self.valid else self.fault

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None where the design is not valid."""
        numbers = {"edp": self.edp, "energy_pj": self.energy_pj, "cycles": self.cycles}
        found: dict[str, Any] = {key: value if math.isfinite(value) else None for key, value in numbers.items()}
        found["costs"] = {key: value for key, value in self.costs.items() if math.isfinite(value)} if self.valid else {}
        return {**found, "limit": self.limit if self.valid else None, "reasons": list(self.reasons)}
