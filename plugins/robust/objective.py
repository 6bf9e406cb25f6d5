"""Objective of designs for a range of densities: `robust:edp` (Kao et al., IISWC 2022, section on sparsity).

A design is evaluated in *scenarios*: every tensor with a density `range` at each of its points, in all combinations.
The score is the weighted sum of the scenario scores, with the weights 1 / density as in the paper, or another `reduce`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import ClassVar, Literal

import attrs
import numpy as np

from sparsemap import Objective, SpecError
from sparsemap.errors import Mistake
from sparsemap.inner.arrays import exps, logs
from sparsemap.pieces.contracts import Array
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.problem import Problem
from sparsemap.problem.scenarios import Scenario

from .density import Range, Weights, check_weights

MOST = 25
"""Most scenarios of a problem; each costs as much as a whole search without scenarios."""


def _single(instance: Robust, attribute: attrs.Attribute, objective: Objective) -> None:
    if len(objective.names) > 1:
        raise ValueError(f"has {len(objective.names)} values, {', '.join(objective.names)}; expected one of one value")
    if isinstance(objective, Robust):
        raise ValueError("is robust already")


@attrs.frozen(kw_only=True)
class Robust(Objective):
    """A single score over all densities in the ranges of a workload.

    Without a range, the score of `objective`. Energy and cycles of the result are at the nominal densities."""

    type_name: ClassVar[str] = "robust"

    objective: Objective = attrs.field(validator=_single)
    """Score of a scenario: a name, a table or an expression."""
    reduce: Literal["sum", "geomean", "max"] = "sum"
    """Reduction of the scenarios' scores: weighted sum, weighted geometric mean, or largest weighted score."""
    weights: Weights | None = None
    """Weights instead of the ranges' own: a rule, or a list of numbers, one per scenario."""
    fit: Literal["all", "dense", "nominal"] = "all"
    """Where a design must be valid: at all points; dense too, so that any input fits; or at the nominal densities,
    without points that do not fit in the score."""

    @classmethod
    def from_text(cls, text: str) -> Mapping[str, str] | None:
        """The scenario objective from the text after `robust:`."""
        return {"objective": text} if text else None

    @property
    def searcher(self) -> str:  # type: ignore[override]
        return self.objective.searcher

    @property
    def units(self) -> tuple[str, ...]:
        return self.objective.units

    @property
    def costs(self) -> tuple[str, ...]:
        return self.objective.costs

    @property
    def monotone(self) -> bool:
        """Whether better costs never worsen the score; false for `fit = "nominal"`, where a design may fit a further
        scenario."""
        return self.objective.monotone and self.fit != "nominal"

    def of(self, problem: Problem) -> Objective:
        """With the scenarios of the problem and their weights."""
        ranges = {t.name: t.density for t in problem.tensors if isinstance(t.density, Range)}
        if not ranges:
            return self.objective
        scenarios = self._scenarios(problem, ranges)
        weights = np.array([scenario.weight for scenario in scenarios.values()])
        known = attrs.asdict(self, recurse=False, filter=lambda field, _: field.init)
        return RobustlyScored(**known, variants=scenarios, shares=weights)

    def score(self, evaluation: Evaluation) -> Array:
        """The score of the inner objective; scores over scenarios come from the result of `of`."""
        return self.objective.score(evaluation)

    def _scenarios(self, problem: Problem, ranges: Mapping[str, Range]) -> dict[str, Scenario]:
        """Scenarios by name, such as "P=0.1,Q=0.5"; the dense scenario comes first if designs must fit it."""
        densities = list(product(*(one.densities for one in ranges.values())))
        if len(densities) > MOST:
            counts = " * ".join(f"{len(one.densities)} of {name}" for name, one in ranges.items())
            text = f"the ranges make {len(densities)} scenarios ({counts}), expected at most {MOST}"
            raise SpecError([Mistake(problem.files.get("workload", "workload"), "density", text)])
        if isinstance(self.weights, tuple):
            try:
                check_weights(self.weights, len(densities), "scenario")
            except ValueError as error:
                raise SpecError.at("", "objective.weights", str(error)) from None
            weights = list(self.weights)
        else:
            weights = [prod(parts) for parts in product(*(x.weighed(self.weights or "") for x in ranges.values()))]
        points = dict(zip(densities, weights, strict=True))
        dense = (1.0,) * len(ranges)
        if self.fit == "dense" and dense not in points:
            points = {dense: 0.0, **points}
        found = {}
        for at, weight in points.items():
            workload, named = problem.workload, dict(zip(ranges, at, strict=True))
            if at != tuple(one.expected for one in ranges.values()):
                workload = workload.with_densities({name: ranges[name].at(density) for name, density in named.items()})
            variant = problem.variant(workload=workload, objective=self.objective)
            name = ",".join(f"{name}={density:g}" for name, density in named.items())
            found[name] = Scenario(variant, self.fit != "nominal", weight)
        return found


@attrs.frozen(kw_only=True, eq=False)
class RobustlyScored(Robust):
    """`Robust` for a problem."""

    variants: Mapping[str, Scenario]
    shares: Array
    """(scenarios,) weights; 0: not in the score."""

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        return self.variants

    @property
    def opens(self) -> bool:
        return int(np.count_nonzero(self.shares)) > 1

    def opening(self, evaluation: Evaluation) -> Array:
        """(B,) the scores at the nominal densities."""
        return self.objective.score(evaluation)

    def score(self, evaluation: Evaluation) -> Array:
        """(B,) the combined scores of the scenarios, without scenarios in which a design is invalid."""
        counted = np.flatnonzero(self.shares > 0)
        found = [evaluation.scenarios[name] for name in self.variants]
        scores = np.array([self.objective.score(found[i]) for i in counted])
        fits = np.array([found[i].valid for i in counted])
        weights = self.shares[counted][:, None]
        if self.reduce == "max":
            return np.where(fits, weights * scores, -np.inf).max(axis=0)
        left = (weights * fits).sum(axis=0)
        if self.reduce == "geomean":
            return exps((weights * logs(np.where(fits, scores, 1.0))).sum(axis=0) / left)
        scale = np.where(fits.all(axis=0), 1.0, weights.sum() / left)
        total = np.zeros(len(evaluation))
        for weight, score, fit in zip(weights, scores, fits, strict=True):  # one by one, as for a single design
            total = total + np.where(fit, weight * score, 0.0)
        return total * scale
