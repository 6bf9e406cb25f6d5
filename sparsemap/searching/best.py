"""The best design of a search with its numbers: as an object, and as a design file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import EvaluationError, PluginError
from ..pieces.contracts.base import Array
from ..pieces.defaults import FIDELITIES
from ..problem.designs import Design
from ..problem.evaluation import Detail, Evaluation
from ..spec.units import format_count, format_energy
from .archive import Archive
from .breakdown import Breakdown

if TYPE_CHECKING:
    from ..problem.problem import Problem


@attrs.frozen(eq=False, slots=False, repr=False)
class Best:
    """The best design of a search, with the problem it solves."""

    problem: Problem
    genome: Array
    """(G,) int64."""
    energy_pj: float
    cycles: float
    score: float
    values: tuple[float, ...] = ()
    """What each of several objectives says, in the order of `problem.objective.names`."""
    in_scenarios: Mapping[str, tuple[float, float]] = attrs.field(factory=dict)
    """Energy in pJ and cycles by scenario of the problem; infinite where the design does not fit."""

    def __repr__(self) -> str:
        return f"Best({self.problem.title}: {self.headline})"

    def _repr_html_(self) -> str:
        """For notebooks: the report that `sparsemap evaluate` prints."""
        from .result import result_of

        return result_of(self.problem, self)._repr_html_()

    @property
    def headline(self) -> str:
        """EDP, energy and cycles, and the score if that is another number, with units, in a line."""
        unit = f" {self.problem.objective.unit}".rstrip()
        score = "" if self.score == self.edp else f"score {self.score:.4g}{unit}, "
        return f"{score}EDP {self.edp:.3e} pJ * cycles, {format_energy(self.energy_pj)}, {format_count(self.cycles)} cycles"

    @property
    def edp(self) -> float:
        """Energy-delay product, pJ * cycles."""
        return self.energy_pj * self.cycles

    @property
    def objectives(self) -> dict[str, float]:
        """The values of several objectives by name."""
        return dict(zip(self.problem.objective.names, self.values, strict=False))

    @cached_property
    def design(self) -> Design:
        """The decoded design."""
        return Design(self.problem, self.problem.space.decode(self.genome[None, :]))

    @cached_property
    def detail(self) -> Detail:
        """The cost model's detail of the design by level and tensor; without fields that it does not give."""
        return self.problem.evaluator.evaluate_designs(self.design.batch, detail=True).detail or Detail()

    def breakdown(self) -> Breakdown:
        """Energy by level and tensor in pJ, cycles by level, and what limits them; `to_pandas()` makes a table of it."""
        return Breakdown.of(self.problem, self.detail, self.energy_pj, self.cycles)

    @cached_property
    def scenarios(self) -> dict[str, Best]:
        """The design in each scenario of the problem, with its numbers there."""
        found = {}
        for name, (energy_pj, cycles) in self.in_scenarios.items():
            problem, reasons = self.problem.scenarios[name].problem, np.array([not math.isfinite(energy_pj)], np.uint64)
            there = Evaluation(np.array([energy_pj]), np.array([cycles]), reasons, ("unfit",))
            found[name] = Best(problem, self.genome, energy_pj, cycles, float(problem.evaluator.score(there)[0]))
        return found

    @cached_property
    def fidelities(self) -> dict[str, dict[str, Any]]:
        """The design in the other cost models that tell results: `edp`, `energy_pj`, `cycles`; or, where it does not fit,
        `reasons`. Empty if the problem's cost model is of another type."""
        own, registry = self.problem.cost_model, self.problem.registry
        found: dict[str, dict[str, Any]] = {}
        for name in FIDELITIES:
            if name not in registry.names(own.kind):
                continue
            other = registry.get(own.kind, name)
            words = {key: getattr(own, key) for key in ("name", "description", "source")}
            if type(other) is not type(own) or attrs.evolve(other, **words) == own:
                continue
            problem = self.problem.variant(cost_model=other)
            with suppress(PluginError, EvaluationError):
                there = problem.evaluator.evaluate_designs(self.design.batch)
                numbers = {key: float(getattr(there, key)[0]) for key in ("edp", "energy_pj", "cycles")}
                found[name] = numbers if there.valid[0] else {"reasons": list(there.reasons_of(0))}
        return found

    @property
    def gap(self) -> float | None:
        """Score over the proven bound of the problem; None where no bound is known."""
        bound = self.problem.bound
        return self.score / bound if bound and self.score >= bound else None

    @property
    def numbers(self) -> dict[str, float]:
        return {"edp": self.edp, "energy_pj": self.energy_pj, "cycles": self.cycles, "score": self.score}

    @property
    def scenario_numbers(self) -> dict[str, dict[str, float]]:
        """The same by scenario; what is infinite there is left out."""
        return {
            name: {key: value for key, value in there.numbers.items() if math.isfinite(value)}
            for name, there in self.scenarios.items()
        }

    def text(self) -> str:
        """The design as a TOML file; DesignError if it has columns that such a file cannot hold."""
        from ..problem import design_file
        from ..spec import toml_io

        return toml_io.dumps(design_file.dump(self.design, self.numbers, self.scenario_numbers))


def best_of(problem: Problem, archive: Archive) -> Best | None:
    """The best design of an archive. Scores told without an evaluation are completed by evaluating the design."""
    if archive.genome is None:
        return None
    energy_pj, cycles, scenarios = archive.energy_pj, archive.cycles, archive.scenarios
    if math.isnan(energy_pj):
        evaluation = problem.evaluator.evaluate(archive.genome[None, :])
        energy_pj, cycles = float(evaluation.energy_pj[0]), float(evaluation.cycles[0])
        scenarios = evaluation.numbers_in_scenarios(0)
    return Best(problem, archive.genome, energy_pj, cycles, archive.score, in_scenarios=scenarios)


def front_of(problem: Problem, archive: Archive) -> tuple[Best, ...]:
    """The designs on the front of an archive, by ascending values of the first objective."""
    front = archive.front
    if front.genomes is None:
        return ()
    found = []
    for genome, values, (score, energy_pj, cycles, *more) in zip(
        front.genomes, front.values, front.numbers.tolist(), strict=True
    ):
        there = dict(zip(problem.scenarios, zip(more[::2], more[1::2], strict=True), strict=True))
        found.append(Best(problem, genome, energy_pj, cycles, score, tuple(map(float, values)), there))
    return tuple(found)
