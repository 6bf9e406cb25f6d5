"""A manual sparse strategy for any mapping: the choice of an expert before searching mappings (Section V-E).

Sparse tensors are compressed like CSR; the processing elements skip where a compressed operand is empty, and the
compute unit gates the remaining computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
from attrs.validators import deep_iterable, in_

from sparsemap import Problem
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Array, Piece, naming

from .choices import Candidate, build_candidates, once
from .fixed import Constant
from .mechanisms import led

COLUMNS = ("formats", "mechanisms")


@attrs.frozen(kw_only=True)
class ManualStrategy(Constant):
    """No genes; formats follow from the densities of the tensors, mechanisms from the set of compressed operands.

    Valid with every mapping with fitting tiles: format slots align with the innermost ranks, so the compressed format
    lies below all others, and only compressed operands lead skipping."""

    type_name: ClassVar[str] = "manual-strategy"

    columns: tuple[str, ...] = attrs.field(default=COLUMNS, validator=deep_iterable(in_(COLUMNS)))
    """Columns provided: `formats`, `mechanisms`, or both. Densities decide in either case."""
    dense_from: float = attrs.field(default=0.9, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Density from which a tensor is stored uncompressed."""
    slots: int = attrs.field(default=5, validator=attrs.validators.ge(1))
    """Rank slots of every tensor."""
    inner: str = attrs.field(default="coordinate", metadata=naming("format"))
    """Format of the innermost rank of a compressed tensor."""
    outer: str = attrs.field(default="offset-pair", metadata=naming("format"))
    """Format of a compressed tensor's other ranks, including ranks beyond the slots."""
    dense: str = attrs.field(default="uncompressed", metadata=naming("format"))
    """Format of the other tensors."""
    skip_by_p: str = attrs.field(default="skip-q-by-p", metadata=naming("mechanism"))
    """Mechanism of the innermost storage level with a mechanism, if only the first operand is compressed."""
    skip_by_q: str = attrs.field(default="skip-p-by-q", metadata=naming("mechanism"))
    """Mechanism there if only the second operand is compressed."""
    skip_both: str = attrs.field(default="skip-both", metadata=naming("mechanism"))
    """Mechanism there if all operands are compressed. With three or more operands and some compressed, only the
    compressed operands lead."""
    compute: str = attrs.field(default="gate-both", metadata=naming("mechanism"))
    """Mechanism of the compute unit."""
    none: str = attrs.field(default="none", metadata=naming("mechanism"))
    """Mechanism of all other places, and without compressed operands."""

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.columns

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        found = {}
        if "formats" in self.columns:
            found["format"] = build_candidates(self, problem, "format", self._formats())
            found["beyond-format"] = build_candidates(self, problem, "format", {"outer": self.outer})
        if "mechanisms" in self.columns:
            candidates = self._mechanisms(self._skip(problem))
            found["mechanism"] = build_candidates(self, problem, "mechanism", candidates)
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
        """(T, R) int8 column `formats`."""
        candidates = list(self._formats().values())
        column = np.full((len(problem.tensors), self.slots), candidates.index(self.dense), dtype=np.int8)
        for t, row in enumerate(column):
            if self._is_packed(problem, t):
                row[:-1], row[-1] = candidates.index(self.outer), candidates.index(self.inner)
        return column

    def _skip(self, problem: Problem) -> Candidate:
        """Mechanism of the innermost storage level with a mechanism."""
        packed = [role for role, t in problem.roles.items() if t in problem.operands and self._is_packed(problem, t)]
        if not packed or len(packed) == len(problem.operands):
            return self.skip_both if packed else self.none
        if len(problem.operands) == 2:
            return self.skip_by_p if packed == ["P"] else self.skip_by_q
        return led(self.skip_both, packed, "skip-by")

    def _mechanism_column(self, problem: Problem) -> Array:
        """(A,) int8 column `mechanisms`."""
        skip = self._skip(problem)
        candidates = list(self._mechanisms(skip).values())
        innermost = max((place.storage for place in problem.places if place.storage is not None), default=None)
        does = {innermost: skip, None: self.compute}
        return np.array([candidates.index(does.get(place.storage, self.none)) for place in problem.places], np.int8)

    def _formats(self) -> dict[str, Candidate]:
        return once({key: getattr(self, key) for key in ("dense", "inner", "outer")})

    def _mechanisms(self, skip: Candidate) -> dict[str, Candidate]:
        keys = ("none", "skip_by_p", "skip_by_q", "skip_both", "compute")
        return once({**{key: getattr(self, key) for key in keys}, "": skip})

    def __attrs_post_init__(self) -> None:
        if not self.columns:
            raise SpecError.at("", self.path("columns"), f"expected at least one of {', '.join(COLUMNS)}")
