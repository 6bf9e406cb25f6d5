"""Compression formats as one gene per tensor and rank slot (Section IV-F, sub-segments P, Q and Z)."""

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
class RankFormats(Segment):
    """`slots` genes per tensor, operands first: the candidate format of each rank slot, outer to inner.

    Slots align with the innermost ranks: a tensor with three ranks uses its last three genes. Which loops form ranks
    follows from the mapping, so the cost model assigns them. Provides `formats` (T, R, B) int8.
    """

    type_name: ClassVar[str] = "rank-formats"
    provides: ClassVar[tuple[str, ...]] = ("formats",)

    slots: int = attrs.field(default=5, validator=attrs.validators.ge(1))
    """Rank slots R of every tensor."""
    beyond: str = ""
    """The format of ranks further out than the slots; absent: the first candidate."""
    candidates: tuple[str, ...] = attrs.field(validator=[attrs.validators.min_len(1), attrs.validators.max_len(127)])
    """Names of formats; gene value i chooses the i-th, from 0."""

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        path = f"{self.name or self.type_name}.candidates"
        found = {"format": build_candidates(problem, "format", self.candidates, path)}
        if self.beyond:
            path = f"{self.name or self.type_name}.beyond"
            found["beyond-format"] = build_candidates(problem, "format", (self.beyond,), path)
        return found

    def genes(self, problem: Problem) -> Genes:
        return choice_genes(self._names(problem), len(self.candidates))

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        return {"formats": genes.astype(np.int8).reshape(len(problem.tensors), self.slots, -1)}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        return encode_choices(designs.columns["formats"], self._names(problem), self.candidates)

    def _names(self, problem: Problem) -> tuple[str, ...]:
        return tuple(f"{tensor.name}.{slot + 1}" for tensor in problem.tensors for slot in range(self.slots))
