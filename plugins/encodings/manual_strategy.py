"""A sparse strategy set by hand, for any mapping: an expert's choice before a search of mappings (Section V-E).

Sparse tensors are compressed like CSR, processing elements skip by compressed operands, the compute unit gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
from attrs.validators import deep_iterable, in_

from sparsemap import Problem
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Array, Piece

from .choices import Candidate, build_candidates, once
from .fixed import Constant
from .mechanisms import led

COLUMNS = ("formats", "mechanisms")
SLOTS = 5
DENSE, INNER, OUTER = "uncompressed", "coordinate", "offset-pair"
"""Formats of uncompressed tensors, and of the innermost and the other ranks of compressed tensors."""
SKIPS = {"P": "skip-q-by-p", "Q": "skip-p-by-q"}
"""Mechanism of the innermost storage level with one, for two operands of which one is compressed, by role."""
BOTH, COMPUTE, NONE = "skip-both", "gate-both", "none"
"""Mechanisms of that level for compressed operands only, of the compute unit, and of all other places."""


@attrs.frozen(kw_only=True)
class ManualStrategy(Constant):
    """No genes; formats follow from the densities of the tensors, mechanisms from the compressed operands.

    Valid with every mapping with fitting tiles: format slots align with the innermost ranks, so that the compressed
    format stands below all others, and only compressed operands lead."""

    type_name: ClassVar[str] = "manual-strategy"

    columns: tuple[str, ...] = attrs.field(default=COLUMNS, validator=deep_iterable(in_(COLUMNS)))
    """`formats`, `mechanisms`, or both. Densities decide in either case."""
    dense_from: float = attrs.field(default=0.9, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Smallest density of an uncompressed tensor."""

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.columns

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        found = {}
        if "formats" in self.columns:
            found["format"] = build_candidates(self, problem, "format", {x: x for x in (DENSE, INNER, OUTER)})
            found["beyond-format"] = build_candidates(self, problem, "format", {"outer": OUTER})
        if "mechanisms" in self.columns:
            found["mechanism"] = build_candidates(self, problem, "mechanism", _mechanisms(self._skip(problem)))
        return found

    def constants(self, problem: Problem) -> dict[str, Array]:
        make = {"formats": self._format_column, "mechanisms": self._mechanism_column}
        return {name: make[name](problem) for name in self.columns}

    def _is_packed(self, problem: Problem, t: int) -> bool:
        """Whether a tensor is compressed; a tensor of a single word has no rank to compress."""
        tensor = problem.tensors[t]
        moving = any(problem.sizes[dim] > 1 for dim in tensor.dims)
        return moving and tensor.density.occupancy(tensor.shape(problem.sizes)).density < self.dense_from

    def _format_column(self, problem: Problem) -> Array:
        """(T, R) int8."""
        column = np.zeros((len(problem.tensors), SLOTS), dtype=np.int8)  # DENSE
        for t, row in enumerate(column):
            if self._is_packed(problem, t):
                row[:-1], row[-1] = 2, 1
        return column

    def _skip(self, problem: Problem) -> Candidate:
        """Mechanism of the innermost storage level with one."""
        packed = [role for role, t in problem.roles.items() if t in problem.operands and self._is_packed(problem, t)]
        if not packed or len(packed) == len(problem.operands):
            return BOTH if packed else NONE
        return SKIPS[packed[0]] if len(problem.operands) == 2 else led(BOTH, packed, "skip-by")

    def _mechanism_column(self, problem: Problem) -> Array:
        """(A,) int8 column `mechanisms`."""
        skip = self._skip(problem)
        candidates = list(_mechanisms(skip).values())
        innermost = max((place.storage for place in problem.places if place.storage is not None), default=None)
        does = {innermost: skip, None: COMPUTE}
        return np.array([candidates.index(does.get(place.storage, NONE)) for place in problem.places], np.int8)

    def __attrs_post_init__(self) -> None:
        if not self.columns:
            raise SpecError.at("", self.path("columns"), f"expected at least one of {', '.join(COLUMNS)}")


def _mechanisms(skip: Candidate) -> dict[str, Candidate]:
    names: tuple[Candidate, ...] = (NONE, *SKIPS.values(), BOTH, COMPUTE, skip)
    return once({str(place): name for place, name in enumerate(names)})
