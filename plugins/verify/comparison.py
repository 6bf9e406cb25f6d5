"""Executed over analytic: of whole cost models, and of each charge."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem

from .charges import EXECUTED, Settled, charges_of
from .simulate import Simulation

COMPARED = 3
"""Trials that are executed in all these ways."""
FIDELITIES = ("timeloop", "physical")
Cost = tuple[float, float]
"""pJ, cycles."""


@attrs.frozen
class Fidelity:
    """A cost model on one design against the execution of what it says."""

    name: str
    analytic: Cost
    executed: Cost
    full: Cost
    """Executed with every charge."""

    def ratios(self, full: bool = False) -> tuple[float, float, float]:
        """Executed over analytic: energy, cycles, EDP; NaN where nothing is expected."""
        executed = self.full if full else self.executed
        energy, cycles = (_ratio(x, y) for x, y in zip(executed, self.analytic, strict=True))
        return energy, cycles, energy * cycles


@attrs.frozen
class Effect:
    """What one charge adds to all others."""

    name: str
    analytic: Cost
    executed: Cost

    @property
    def ratios(self) -> tuple[float, float]:
        """Executed over analytic; NaN where the model adds nothing."""
        energy, cycles = (_ratio(x, y) for x, y in zip(self.executed, self.analytic, strict=True))
        return energy, cycles


def _ratio(executed: float, analytic: float) -> float:
    return executed / analytic if analytic else (1.0 if executed == analytic else math.nan)


@attrs.define(eq=False)
class Comparison:
    """Ways to pay for one design, by the model and by execution."""

    sim: Simulation
    own: Problem
    """With the design's cost model, less the charges that are not executed."""
    charges: frozenset[str]
    """Those of the design's cost model that are executed."""
    models: dict[str, Problem]
    """By name, the fidelities."""
    notes: list[str] = attrs.field(factory=list)
    paid: list[dict[str, Cost]] = attrs.field(factory=list)

    @property
    def charged(self) -> bool:
        return bool(self.models)

    @classmethod
    def of(cls, sim: Simulation) -> Comparison:
        problem = sim.problem
        own, left = _executed(problem, problem.cost_model)
        notes = [f"charge '{name}' is not executed, and is left out of what is expected" for name in left]
        models = {}
        own_model: Any = problem.cost_model
        if hasattr(own_model, "charges"):
            for name in FIDELITIES:
                model = attrs.evolve(own_model, charges=problem.registry.resolve("cost-model", name).charges)
                models[name], also = _executed(problem, model)
                notes += [f"charge '{x}' of '{name}' is not executed, and is left out" for x in also if x not in left]
        return cls(sim, own, frozenset(charge.type_name for charge in charges_of(own)), models, notes)

    @property
    def full(self) -> frozenset[str]:
        return frozenset(charge.type_name for charge in charges_of(self.models[FIDELITIES[-1]]))

    def add(self, trial: Settled, effects: bool = True) -> None:
        """Executes a trial as every fidelity says, and with `effects` without every charge."""
        every = {name: frozenset(x.type_name for x in charges_of(model)) for name, model in self.models.items()}
        found = {name: _cost(trial, charges) for name, charges in every.items()}
        for name in sorted(self.full) if effects else ():
            found["less " + name] = _cost(trial, self.full - {name}, True)
        self.paid.append(found)

    def _mean(self, name: str) -> Cost:
        energy, cycles = (math.fsum(found[name][i] for found in self.paid) / len(self.paid) for i in (0, 1))
        return energy, cycles

    def fidelities(self) -> tuple[Fidelity, ...]:
        full = self._mean(FIDELITIES[-1]) if self.paid else (0.0, 0.0)
        return tuple(
            Fidelity(name, found, self._mean(name), full)
            for name, problem in self.models.items()
            if self.paid and (found := _analytic(problem, self.sim)) is not None
        )

    def effects(self) -> tuple[Effect, ...]:
        """Of every charge of the fullest model, in its order; none if the design is invalid under it."""
        if not self.paid or (whole := _analytic(self.models[FIDELITIES[-1]], self.sim)) is None:
            return ()
        problem, executed = self.models[FIDELITIES[-1]], self._mean(FIDELITIES[-1])
        found = []
        for charge in charges_of(problem):
            others = tuple(other for other in charges_of(problem) if other is not charge)
            model: Any = problem.cost_model
            less = _analytic(_with(problem, attrs.evolve(model, charges=others)), self.sim)
            if less is not None:
                name = charge.type_name
                found.append(Effect(name, _less(whole, less), _less(executed, self._mean("less " + name))))
        return tuple(found)


def executed_over_analytic(
    problem: Problem, designs: Designs, trials: int = COMPARED, seed: int = 0
) -> dict[str, Fidelity]:
    """By name, the fidelities under which the first of `designs` is valid, against its execution on random tensors."""
    sim = Simulation(problem, designs)
    comparison = Comparison.of(sim)
    for sequence in np.random.SeedSequence(seed).spawn(trials):
        trial = sim.trial(np.random.default_rng(sequence), charged=True)
        if not trial.energy.tally.correct:
            raise AssertionError("the output is not the dense product")
        comparison.add(Settled(sim, trial), effects=False)
    return {found.name: found for found in comparison.fidelities()}


def _less(whole: Cost, part: Cost) -> Cost:
    return whole[0] - part[0], whole[1] - part[1]


def _cost(trial: Settled, charges: frozenset[str], as_modelled: bool = False) -> Cost:
    values = trial.pay(charges, as_modelled).values
    return values["energy_pj", None, None], values["cycles", None, None]


def _analytic(problem: Problem, sim: Simulation) -> Cost | None:
    """None: invalid."""
    found = problem.evaluator.evaluate_designs(sim.designs.take(slice(0, 1)))
    return None if found.reasons[0] else (float(found.energy_pj[0]), float(found.cycles[0]))


def _executed(problem: Problem, model: Any) -> tuple[Problem, list[str]]:
    """The problem with a cost model, less the charges that cannot be executed, and their names."""
    charges = tuple(getattr(model, "charges", ()))
    known = tuple(charge for charge in charges if charge.type_name in EXECUTED)
    model = attrs.evolve(model, charges=known) if len(known) < len(charges) else model
    left = [charge.type_name for charge in charges if charge not in known]
    return _with(problem, model), left


def _with(problem: Problem, model: Any) -> Problem:
    return problem if model == problem.cost_model else attrs.evolve(problem, cost_model=model)
