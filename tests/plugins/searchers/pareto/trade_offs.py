"""A space small enough to look at every design, in which energy and delay pull in different directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
from registered import classes
from toy_problem import ToyMemory, ToyTechnology, ToyWorkload, toy_hardware

from sparsemap import CostModel, Evaluation, Genes, Segment
from sparsemap.pieces.data_specs import SpaceSpec
from sparsemap.pieces.registry import Origin, Registry
from sparsemap.problem.problem import Problem

HIGH = np.array([11, 11, 7, 2])
EVERY = np.stack(np.meshgrid(*[np.arange(high + 1) for high in HIGH], indexing="ij"), axis=-1).reshape(-1, len(HIGH))
"""All 3456 genomes."""


@attrs.frozen(kw_only=True)
class Knobs(Segment):
    type_name: ClassVar[str] = "knobs"
    provides: ClassVar[tuple[str, ...]] = ("knobs",)

    def genes(self, problem: Problem) -> Genes:
        return Genes(("x", "y", "u", "v"), np.zeros(4, np.int64), HIGH.astype(np.int64))

    def decode(self, genes: np.ndarray, problem: Problem) -> Mapping[str, np.ndarray]:
        return {"knobs": genes.astype(np.float64)}


@attrs.frozen(kw_only=True)
class TradeOff(CostModel):
    """x buys speed with energy, y does so in another place; u wastes both, v is a trap; some designs do not fit."""

    type_name: ClassVar[str] = "trade-off"
    needs: ClassVar[tuple[str, ...]] = ("knobs",)

    def evaluate(self, designs: Any, problem: Problem, detail: bool = False) -> Evaluation:
        x, y, u, v = designs.columns["knobs"]
        energy = 5.0 + x**1.5 + 2.0 * y + 3.0 * np.abs(u - 4) + 4.0 * (v == 1)
        cycles = 1000.0 / (1.0 + x) + 300.0 / (1.0 + y) + 10.0 * np.abs(u - 4) + 20.0 * (v == 2) * (x < 6)
        reasons = (x + y + u > 24).astype(np.uint64)
        bad = reasons != 0
        costs = {"energy_pj": np.where(bad, np.inf, energy), "cycles": np.where(bad, np.inf, cycles)}
        return Evaluation(costs, reasons, ("fit",))


def registry() -> Registry:
    found = Registry()
    expressions = [cls for cls in classes("declarative") if cls.kind == "objective"]
    for cls in (*expressions, *classes("searchers"), Knobs, TradeOff, ToyWorkload, ToyMemory, ToyTechnology):
        found.add_type(cls, Origin("test"))
    for name, score, text in (("energy", "energy_pj", "energy, pJ"), ("delay", "cycles", "execution time, cycles")):
        table = {"kind": "objective", "name": name, "score": score, "description": text}
        found.add_spec(table, Origin("test"))
    return found


def problem(objective: Any = "pareto:energy,delay") -> Problem:
    known = registry()
    return Problem(
        workload=ToyWorkload(name="trade"),
        hardware=toy_hardware("offs"),
        space_spec=SpaceSpec(name="knobs", segments=("knobs",)),
        cost_model=TradeOff(name="trade-off"),
        objective=known.build("objective", objective),
        registry=known,
    )


def hypervolume(values, reference) -> float:
    """The area that rows (n, 2) dominate up to the reference point (2,)."""
    inside = values[(values < reference).all(axis=1)]
    first, second = inside[np.lexsort(inside.T[::-1])].T
    widths = np.diff(np.append(first, reference[0]))
    return float((widths * (reference[1] - np.minimum.accumulate(second))).sum())
