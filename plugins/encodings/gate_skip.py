"""Skip and gate mechanisms as one gene per place (Section IV-F, sub-segment L2/L3/C-S/G)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap.backend import backend_of
from sparsemap.pieces.contracts import Array
from sparsemap.problem.problem import Place, Problem

from .choices import Choices


@attrs.frozen(kw_only=True)
class GateSkip(Choices):
    """One gene per storage level with `gate_skip`, outermost first, then one for the compute unit if it has it.

    Provides `mechanisms` (A, B) int8, the candidate at each place.
    """

    type_name: ClassVar[str] = "gate-skip"
    provides: ClassVar[tuple[str, ...]] = ("mechanisms",)
    chosen: ClassVar[str] = "mechanism"

    def gene_names(self, problem: Problem) -> tuple[str, ...]:
        return tuple(f"gate-skip.{place.name}" for place in problem.places)

    def explain(self, problem: Problem) -> str:
        return ", ".join(place.name for place in problem.places)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        xp = backend_of(genes)
        return {"mechanisms": xp.astype(genes, xp.int8)}

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """A mechanism that needs metadata of a tensor without any gives way to a random one that does not."""
        if "formats" not in columns:
            return genes
        flags = np.array([f.compressed for f in problem.candidates("format")], dtype=bool)
        packed = flags[columns["formats"][:, -1]]  # a tensor is compressed if its innermost rank is
        needs = problem.remember((self.type_name, "needs"), lambda: self._needs(problem))
        changed = genes.copy()
        for place, table in enumerate(needs):
            lacking = np.flatnonzero((table[genes[place]].T & ~packed).any(axis=0))
            if not lacking.size:
                continue
            possible = ~(table[:, :, None] & ~packed[None, :, lacking]).any(axis=1)
            keys = np.where(possible, rng.random(possible.shape), -1.0)
            best = keys.argmax(axis=0)
            found = keys[best, np.arange(len(lacking))] >= 0.0
            changed[place, lacking[found]] = best[found]
        return changed

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """At the compute unit only the action of a mechanism counts, and which metadata it needs."""
        table = problem.remember((self.type_name, self.name, "canonical"), lambda: self._first_alike(problem))
        return np.take_along_axis(table, genes, axis=1)

    def _first_alike(self, problem: Problem) -> Array:
        """(A, M) int64: per place, the first candidate that does the same as each."""
        table = np.tile(np.arange(len(self.candidates)), (len(problem.places), 1))
        for row, place in zip(table, problem.places, strict=True):
            if place.storage is None:
                does = [_at_compute(mechanism, place) for mechanism in self.choices(problem)["mechanism"]]
                row[:] = [does.index(one) for one in does]
        return table

    def _needs(self, problem: Problem) -> list[Array]:
        """Per place (M, T) bool: the candidate needs metadata of the tensor."""
        tables = []
        for place in problem.places:
            table = np.zeros((len(self.candidates), len(problem.tensors)), dtype=bool)
            for m, mechanism in enumerate(self.choices(problem)["mechanism"]):
                if mechanism.needs_metadata(place):
                    for rule in mechanism.filters(place):
                        table[m, list(problem.filter_tensors(mechanism, rule)[1])] = True
            tables.append(table)
        return tables


def _at_compute(mechanism: Any, place: Place) -> tuple[Any, ...]:
    """What makes a difference at the compute unit: the action, how much it catches, and who must have metadata."""
    rules = mechanism.filters(place)
    empty = np.linspace(0.0, 1.0, 5)
    caught = {(rule.action, *mechanism.eliminated(place, rule, empty).tolist()) for rule in rules}
    leaders = {leader for rule in rules for leader in rule.leaders} if mechanism.needs_metadata(place) else set()
    return type(mechanism), caught, leaders
