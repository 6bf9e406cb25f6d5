"""The best design of a search with its numbers: as an object, and as a design file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ..errors import EvaluationError, PluginError, SpecError
from ..pieces.contracts.base import Array
from ..pieces.defaults import FIDELITIES
from ..problem.costs import Costs
from ..problem.designs import Design
from ..problem.evaluation import Detail, Evaluation
from ..problem.problem import Problem
from ..spec.units import format_count, format_energy
from .archive import Archive
from .breakdown import Breakdown

ROUNDING = 1e-9
"""Relative tolerance of scores for sums in another order."""


@attrs.frozen(eq=False, slots=False, repr=False)
class Best:
    """The best design of a search, with its problem."""

    problem: Problem
    genome: Array
    """(G,) int64."""
    own_costs: Mapping[str, float]
    """Costs of the cost model by name."""
    score: float
    values: tuple[float, ...] = ()
    """Values of several objectives, in the order of `problem.objective.names`."""
    in_scenarios: Mapping[str, Mapping[str, float]] = attrs.field(factory=dict)
    """Costs of the cost model by scenario of the problem and name; infinite if the design does not fit."""
    plain: bool = False
    """Whether the score came without an evaluation: unit and bound are then unknown."""

    def __repr__(self) -> str:
        return f"Best({self.problem.title}: {self.headline})"

    def _repr_html_(self) -> str:
        """For notebooks: the report of `sparsemap show`."""
        from .result import result_of

        return result_of(self.problem, self)._repr_html_()

    @property
    def headline(self) -> str:
        """EDP, energy and cycles with units in a line, preceded by the score if different from the EDP."""
        unit = "" if self.plain else f" {self.problem.objective.unit}".rstrip()
        score = "" if self.score == self.edp else f"score {self.score:.4g}{unit}, "
        return f"{score}EDP {self.edp:.3e} pJ * cycles, {format_energy(self.energy_pj)}, {format_count(self.cycles)} cycles"

    @cached_property
    def costs(self) -> Mapping[str, float]:
        """All costs by name: costs of the cost model, and costs derived from the chip, such as `seconds`."""
        return Costs(self.own_costs, self.problem.chip).floats()

    @property
    def energy_pj(self) -> float:
        return self.costs["energy_pj"]

    @property
    def cycles(self) -> float:
        return self.costs["cycles"]

    @property
    def edp(self) -> float:
        """Energy-delay product, pJ * cycles."""
        return self.costs["edp"]

    @property
    def edp_js(self) -> float:
        """Energy-delay product, J * s."""
        return self.costs["edp_js"]

    @property
    def seconds(self) -> float:
        """Time of the design at the clock of the chip."""
        return self.costs["seconds"]

    @property
    def power_w(self) -> float:
        """Mean power in W."""
        return self.costs["power_w"]

    @property
    def area_mm2(self) -> float:
        """Area of the whole chip in mm2, as far as known to the technology."""
        return self.costs["area_mm2"]

    @property
    def objectives(self) -> dict[str, float]:
        """The values of several objectives by name."""
        return dict(zip(self.problem.objective.names, self.values, strict=False))

    @cached_property
    def design(self) -> Design:
        """The decoded design."""
        return Design.of(self.problem, self.problem.space.decode(self.genome[None, :]))

    @cached_property
    def detail(self) -> Detail:
        """The cost model's detail of the design by level and tensor, without unknown fields."""
        return self.design.problem.evaluator.evaluate_designs(self.design.batch, detail=True).detail or Detail()

    def breakdown(self) -> Breakdown:
        """Energy by level and tensor in pJ, cycles by level, and the limit of the cycles; `to_pandas()` makes a table
        of these."""
        return Breakdown.of(self.design.problem, self.detail, self.energy_pj, self.cycles)

    @cached_property
    def scenarios(self) -> dict[str, Best]:
        """The design in each scenario of the problem, with its numbers there."""
        found = {}
        for name, costs in self.in_scenarios.items():
            problem = self.problem.scenarios[name].problem
            reasons = np.array([not math.isfinite(costs["energy_pj"])], np.uint64)
            there = Evaluation({key: np.array([cost]) for key, cost in costs.items()}, reasons, ("unfit",))
            found[name] = Best(problem, self.genome, costs, float(problem.evaluator.score(there)[0]))
        return found

    @cached_property
    def fidelities(self) -> dict[str, dict[str, Any]]:
        """The design in the other cost models for results: `edp`, `energy_pj`, `cycles`; or `reasons` if the design
        does not fit. Empty if the problem's cost model is of another type."""
        own, registry = self.problem.cost_model, self.problem.registry
        found: dict[str, dict[str, Any]] = {}
        for name in FIDELITIES:
            if not registry.has(own.kind, name):
                continue
            other = registry.get(own.kind, name)
            words = {key: getattr(own, key) for key in ("name", "description", "source")}
            if type(other) is not type(own) or attrs.evolve(other, **words) == own:
                continue
            problem = self.design.problem.variant(cost_model=other)
            try:
                there = problem.evaluator.evaluate_designs(self.design.batch)
            except PluginError as error:  # what it asks of a piece, and the problem's own cost model does not
                found[name] = {"reasons": [f"{error.mistakes[0].message} ({error.mistakes[0].file})"]}
                continue
            except SpecError as error:  # it takes none of the pieces, such as a format without a codec
                found[name] = {"reasons": [error.mistakes[0].message.partition(":")[0]]}
                continue
            except EvaluationError:
                continue
            numbers = {key: float(getattr(there, key)[0]) for key in ("edp", "energy_pj", "cycles")}
            found[name] = numbers if there.valid[0] else {"reasons": list(there.reasons_of(0))}
        return found

    @property
    def gap(self) -> float | None:
        """Score over the proven bound of the problem, below 1 for a wrong proof; None without a bound."""
        return None if self.plain else gap_of(self.score, self.problem.bound)

    @property
    def numbers(self) -> dict[str, float]:
        """EDP, energy, cycles and score; then all further costs of the cost model."""
        return {"edp": self.edp, **self.own_costs, "score": self.score}

    def text(self, folder: Path | None = None) -> str:
        """The design as a TOML file, with paths of data files relative to the target `folder`, or else absolute;
        DesignError for columns without a place in a design file."""
        from .written import design_text

        return design_text(self, folder)


def gap_of(score: float, bound: float | None) -> float | None:
    """Score over bound. A gap below 1, by more than rounding, means a wrong bound or score."""
    if not bound:
        return None
    gap = score / bound
    return gap if abs(gap - 1.0) > ROUNDING else 1.0


def best_of(problem: Problem, archive: Archive) -> Best | None:
    """The best design of an archive. Scores without an evaluation are completed by evaluating the design."""
    if archive.genome is None:
        return None
    costs, scenarios = archive.costs, archive.scenarios
    if not costs:
        evaluation = problem.evaluator.evaluate(archive.genome[None, :])
        costs, scenarios = dict(evaluation.costs.of(0).own), evaluation.costs_in_scenarios(0)
    return Best(problem, archive.genome, costs, archive.score, in_scenarios=scenarios, plain=archive.plain)
