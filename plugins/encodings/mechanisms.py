"""Mechanisms as genes (Section IV-F): one per S/G place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.pieces.boundary import eliminated_of, filters_of
from sparsemap.pieces.contracts import ALL_OPERANDS, Array, naming
from sparsemap.problem.designs import Designs
from sparsemap.problem.levels import Place

from .choices import Candidate, Choices, candidates_of, compressed_tensors, per_tensor
from .inner import functions


@attrs.frozen(kw_only=True)
class GateSkip(Choices):
    """One gene per storage level with `gate_skip`, outermost first, then one for the compute unit if it has
    `gate_skip`.

    Provides `mechanisms` (A, B) int8, the candidate at each place. With three or more operands there are additional
    candidates, one per subset of leading operands: 19 with three operands, compared with seven with two."""

    type_name: ClassVar[str] = "gate-skip"
    provides: ClassVar[tuple[str, ...]] = ("mechanisms",)
    chosen: ClassVar[str] = "mechanism"

    candidates: tuple[Candidate, ...] = candidates_of("mechanism")

    led: Mapping[str, str] = attrs.field(factory=dict, metadata=naming("mechanism"))
    """With three or more operands: by name prefix, a candidate led by all operands, to be offered with fewer leaders
    too, such as `skip-by = "skip-both"`. In `skip-by-pr`, P and R lead, and each operand is filtered on the leaders
    other than itself."""

    def all_candidates(self, problem: Problem) -> tuple[Candidate, ...]:
        roles = [role for role, t in problem.roles.items() if t in problem.operands]
        some = [few for count in range(1, len(roles)) for few in combinations(roles, count)] if len(roles) > 2 else []
        named = [(name, base) for name, base in self.led.items() if base in self.candidates]
        return *self.candidates, *(led(base, few, name) for name, base in named for few in some)

    def gene_names(self, problem: Problem) -> tuple[str, ...]:
        return tuple(f"gate-skip.{place.name}" for place in problem.places)

    def explain(self, problem: Problem) -> str:
        return ", ".join(place.name for place in problem.places)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        return {"mechanisms": self.built(genes, problem).astype(np.int8)}

    def owned(self, problem: Problem) -> Array | None:
        if problem.hardware.units is None:
            return None
        from .owned import owned_mechanisms, some

        found = self.choices(problem)["mechanism"]
        return some(owned_mechanisms(found, problem), problem, "mechanisms", found)

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Match mechanisms by name, at places of the same name."""
        from .transfer import moved_mechanisms

        guess = self.guess(len(designs), target, rng)
        return moved_mechanisms(designs, source, target, self.choices(target)["mechanism"], guess)

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Replace a mechanism without the metadata it needs by a random mechanism not lacking metadata."""
        compressed = compressed_tensors(problem, columns)
        if compressed is None or not len(genes):
            return genes
        needs, owned, levels = problem.remember((GateSkip.repair, self), lambda: self._repairs(problem))
        packed, decoded = compressed.view(np.uint8), columns.get("decoded")
        if decoded is None:
            decoded = np.full(packed.shape, len(problem.levels), dtype=np.int8)
        changed, where = np.array(self.built(genes, problem), order="C"), np.empty((2, genes.size), dtype=np.int64)
        given = levels, packed, per_tensor(decoded.astype(np.int8, copy=False), problem)
        if count := functions.lacking(changed, needs, *given, where):
            functions.replace(changed, needs, owned, *given, where, count, rng.random(owned.shape[1] * count))
        return changed

    def _repairs(self, problem: Problem) -> tuple[Array, Array, Array]:
        """(A M, T) table of `needs`, (A, M) candidates of each place, (A,) last storage level before the place."""
        needs, owned = self.needs(problem), self.owned(problem)
        inner = len(problem.levels) - 1
        levels = [inner if place.storage is None else place.storage for place in problem.places]
        return (
            needs.reshape(-1, needs.shape[2]).view(np.uint8),
            (np.ones(needs.shape[:2], dtype=bool) if owned is None else owned).view(np.uint8),
            np.array(levels, dtype=np.int64),
        )

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Merge equivalent mechanisms: at the compute unit, only a mechanism's action and metadata requirements count."""
        table = problem.remember((GateSkip.canonical, self), lambda: self.first_alike(problem))
        genes = self.built(genes, problem)
        alike = table[np.arange(len(table))[:, None], genes]
        return np.where(self.built(alike, problem) == alike, alike, genes)

    def first_alike(self, problem: Problem) -> Array:
        """(A, M) int64: per place, the first candidate equivalent to each candidate."""
        table = np.tile(np.arange(len(self.all_candidates(problem))), (len(problem.places), 1))
        for row, place in zip(table, problem.places, strict=True):
            if place.storage is None:
                does = [_at_compute(mechanism, place, problem) for mechanism in self.choices(problem)["mechanism"]]
                row[:] = [does.index(one) for one in does]
        return table

    def needs(self, problem: Problem) -> Array:
        """(A, M, T) bool: by place, whether a candidate needs metadata of a tensor."""
        table = np.zeros((len(problem.places), len(self.all_candidates(problem)), len(problem.tensors)), dtype=bool)
        for a, place in enumerate(problem.places):
            for m, mechanism in enumerate(self.choices(problem)["mechanism"]):
                if mechanism.needs_metadata(place):
                    for _, _, leaders in problem.filters(mechanism, place):
                        table[a, m, list(leaders)] = True
        return table


def led(base: str, roles: Sequence[str], name: str) -> Candidate:
    """Variant of the mechanism `base` led by these operands only, named for example `skip-by-pr`."""
    filters = [{"target": ALL_OPERANDS, "leader": list(roles)}]
    return {"extends": base, "name": f"{name}-{''.join(roles).lower()}", "filters": filters}


def _at_compute(mechanism: Any, place: Place, problem: Problem) -> tuple[Any, ...]:
    """Effect at the compute unit: the action, the share caught, and the leaders with required metadata."""
    rules = filters_of(mechanism, place)
    empty = np.linspace(0.0, 1.0, 5)
    caught = {(rule.action, *eliminated_of(mechanism, place, rule, empty).tolist()) for rule in rules}
    found = problem.filters(mechanism, place) if mechanism.needs_metadata(place) else []
    leaders = {leader for _, _, leaders in found for leader in leaders}
    return type(mechanism), caught, leaders
