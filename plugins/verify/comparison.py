"""Executed over analytic costs, for whole cost models and for each charge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem

from .charges import ChargedTrial, charges_of
from .leaders import STAY
from .simulate import Simulation
from .tally import Tally

COMPARED = 3
"""Trials executed under every fidelity."""
ENDS = "remainders"
"""The charge that changes the set of iterations of a padded problem: the walks with and without it differ."""
FULL = "physical"
FIDELITIES = ("timeloop", FULL)
UNREADABLE = "entry-bits"
"""Reason (followed by a tensor) for designs with code fields too narrow to write."""
OWN = "own model"
"""Name of a problem's own cost model without a name."""
Cost = tuple[float, float]
"""pJ, cycles."""


@attrs.frozen
class ExecutedCost:
    """Cost of a design under a cost model, or increment of a charge over all others, analytic and executed."""

    name: str
    analytic: Cost
    executed: Cost
    full: Cost = (math.nan, math.nan)
    """Cost of the design executed with every charge, for a cost model."""

    @property
    def ratios(self) -> tuple[float, float]:
        """Executed over analytic energy and cycles; NaN where the analytic value is 0."""
        energy, cycles = (_ratio(x, y) for x, y in zip(self.executed, self.analytic, strict=True))
        return energy, cycles


def _ratio(executed: float, analytic: float) -> float:
    return executed / analytic if analytic else (1.0 if executed == analytic else math.nan)


class CountComparison:
    """Costs of a design under several cost models, analytic and executed."""

    def __init__(self, sim: Simulation) -> None:
        problem, model = sim.problem, cast(Any, sim.problem.cost_model)
        self.sim = sim
        self.charges = charges_of(problem)
        self.models: dict[str, Problem] = {}
        """Fidelities by name; empty if the cost model has no charges."""
        self.less: dict[str, tuple[str, Problem]] = {}
        """By charge: the name of a model with the charge, and the problem without it. The model is the last fidelity,
        or the problem's own model for a charge only found there."""
        self.paid: list[dict[str, Cost]] = []
        if hasattr(model, "charges"):
            for name in FIDELITIES:
                fidelity = attrs.evolve(model, charges=problem.registry.resolve("cost-model", name).charges)
                if self._readable(other := _with(problem, fidelity)):
                    self.models[name] = other
            if self.charges not in map(charges_of, self.models.values()):
                self.models[OWN if model.name in (*FIDELITIES, "") else model.name] = problem
            for name in [name for name in self.models if name != FIDELITIES[0]]:
                whole: Any = self.models[name].cost_model
                for charge in (one for one in whole.charges if one.type_name not in self.less):
                    others = tuple(other for other in whole.charges if other is not charge)
                    without = _with(problem, attrs.evolve(whole, charges=others))
                    if self._readable(without):
                        self.less[charge.type_name] = name, without
        self.walks = {self._walked(problem): sim}
        """Simulations by the charges that change what takes place."""
        for model in (*self.models.values(), *(without for _, without in self.less.values())):
            walked = self._walked(model)
            if walked not in self.walks:
                self.walks[walked] = Simulation(model, sim.designs)
            self.walks[walked].also_pay(frozenset(charge.type_name for charge in charges_of(model)))

    def add(self, trial: ChargedTrial, effects: bool = True) -> None:
        """Charge a trial under every fidelity; with `effects`, also without each charge."""
        own = self._walked(self.sim.problem)
        trials = {own: trial}
        for walked, sim in self.walks.items():
            if walked != own:
                given = None if ENDS in walked ^ own else self._words(trial)
                rng = np.random.default_rng(len(self.paid))
                trials[walked] = ChargedTrial(sim, sim.trial(rng, True, given, compared=True))
        found = {name: _cost(trials[self._walked(model)].pay(charges_of(model))) for name, model in self.models.items()}
        for name, (_, model) in self.less.items() if effects else ():
            found["less " + name] = _cost(trials[self._walked(model)].pay(charges_of(model), as_modelled=True))
        self.paid.append(found)

    def _words(self, trial: ChargedTrial) -> dict[int, np.ndarray]:
        """The nonzeros of a trial, for another walk over the same words."""
        contents = trial.trial.energy.contents
        return {t: contents[t].mask.reshape(-1).astype(np.float64) for t in self.sim.nest.operands}

    def _walked(self, problem: Problem) -> frozenset[str]:
        changing = {STAY, ENDS} if problem.padded else {STAY}
        return frozenset(charge.type_name for charge in charges_of(problem) if charge.type_name in changing)

    def run(self, trials: int, seed: int, effects: int = 0) -> None:
        """Add trials on random tensors; the first `effects` are also charged without each charge."""
        for number, sequence in enumerate(np.random.SeedSequence(seed).spawn(trials)):
            trial = self.sim.trial(np.random.default_rng(sequence), charged=True, compared=True)
            if not trial.energy.tally.correct:
                raise AssertionError("the output is not the dense product")
            self.add(ChargedTrial(self.sim, trial), effects=number < effects)

    def _mean(self, name: str) -> Cost:
        return _mean([found[name] for found in self.paid if name in found])

    def _added(self, charge: str) -> Cost:
        """Mean increment of a charge, over the trials also charged without it."""
        less, (whole, _) = "less " + charge, self.less[charge]
        return _mean([_less(found[whole], found[less]) for found in self.paid if less in found])

    def _readable(self, problem: Problem) -> bool:
        """Whether the design's codes can be written under the problem's cost model, even if the design does not fit."""
        try:
            found = problem.evaluator.evaluate_designs(self.sim.designs.take(slice(0, 1)), detail=True)
        except SpecError:  # a format without a codec
            return False
        return not any(reason.startswith(UNREADABLE) for reason in found.reasons_of(0))

    def _analytic(self, problem: Problem) -> Cost | None:
        """Analytic cost; None: invalid."""
        found = problem.evaluator.evaluate_designs(self.sim.designs.take(slice(0, 1)))
        return None if found.reasons[0] else (float(found.energy_pj[0]), float(found.cycles[0]))

    def fidelities(self) -> tuple[ExecutedCost, ...]:
        costs = {name: self._analytic(problem) for name, problem in self.models.items()} if self.paid else {}
        known = {name: cost for name, cost in costs.items() if cost is not None}
        full = self._mean(FULL) if self.paid and FULL in self.models else (math.nan, math.nan)
        return tuple(ExecutedCost(name, cost, self._mean(name), full) for name, cost in known.items())

    def effects(self) -> tuple[ExecutedCost, ...]:
        """Increments of every charge of the last fidelity, in its order, then of the own model's additional charges.

        Empty if the design is invalid under the last fidelity."""
        if not self.paid or FULL not in self.models or self._analytic(self.models[FULL]) is None:
            return ()
        found = []
        for name, (whole, problem) in self.less.items():
            every, cost = self._analytic(self.models[whole]), self._analytic(problem)
            if every is not None and cost is not None:
                found.append(ExecutedCost(name, _less(every, cost), self._added(name)))
        return tuple(found)

    def lacking(self) -> tuple[ExecutedCost, ...]:
        """Executed increments of charges missing in the problem's own model; the analytic increment is 0."""
        if not self.paid:
            return ()
        own = {charge.type_name for charge in self.charges}
        return tuple(ExecutedCost(name, (0.0, 0.0), self._added(name)) for name in self.less if name not in own)


def executed_over_analytic(
    problem: Problem, designs: Designs, trials: int = COMPARED, seed: int = 0
) -> dict[str, ExecutedCost]:
    """Analytic and executed cost of the first of `designs`, by name of each fidelity with a valid design."""
    comparison = CountComparison(Simulation(problem, designs))
    comparison.run(trials, seed)
    return {found.name: found for found in comparison.fidelities()}


def _mean(costs: Sequence[Cost]) -> Cost:
    energy, cycles = (math.fsum(part) / len(costs) for part in zip(*costs, strict=True))
    return energy, cycles


def _less(whole: Cost, part: Cost) -> Cost:
    return whole[0] - part[0], whole[1] - part[1]


def _cost(tally: Tally) -> Cost:
    return tally.values["energy_pj", None, None], tally.values["cycles", None, None]


def _with(problem: Problem, model: Any) -> Problem:
    return problem if model == problem.cost_model else problem.variant(cost_model=model)
