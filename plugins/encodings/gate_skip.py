"""Skip and gate mechanisms as one gene per place (Section IV-F, sub-segment L2/L3/C-S/G)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from sparsemap.kinds import Array, Genes, Piece, Segment

from .choices import build_candidates, choice_genes, encode_choices

if TYPE_CHECKING:
    from sparsemap.designs import Designs
    from sparsemap.problem import Problem


@attrs.frozen(kw_only=True)
class GateSkip(Segment):
    """One gene per storage level with `gate_skip`, outermost first, then one for the compute unit if it has it.

    Provides `mechanisms` (A, B) int8, the candidate at each place.
    """

    type_name: ClassVar[str] = "gate-skip"
    provides: ClassVar[tuple[str, ...]] = ("mechanisms",)

    candidates: tuple[str, ...] = attrs.field(validator=[attrs.validators.min_len(1), attrs.validators.max_len(127)])
    """Names of mechanisms; gene value i chooses the i-th, from 0."""

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        path = f"{self.name or self.type_name}.candidates"
        return {"mechanism": build_candidates(problem, "mechanism", self.candidates, path)}

    def genes(self, problem: Problem) -> Genes:
        return choice_genes(self._names(problem), len(self.candidates))

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        return {"mechanisms": genes.astype(np.int8)}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        return encode_choices(designs.columns["mechanisms"], self._names(problem), self.candidates)

    def _names(self, problem: Problem) -> tuple[str, ...]:
        return tuple(f"gate-skip.{place.name}" for place in problem.places)
