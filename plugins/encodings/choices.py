"""What segments share whose genes choose a piece from a list of candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, SpecError
from sparsemap.pieces.contracts import Array, Genes, Piece, Segment
from sparsemap.problem.designs import Designs

Candidate = str | Mapping[str, Any]
"""The name of a piece, or its table."""


def build_candidates(problem: Problem, kind: str, given: tuple[Candidate, ...], path: str) -> tuple[Piece, ...]:
    """The pieces, in order; a table without `name` is called by what it sets, such as `run-length(lanes=4)`.

    `SpecError` with the nearest name where one is not known, and where a table has the name of another candidate.
    """
    file = problem.files.get("space", "")

    def build() -> tuple[Piece, ...]:
        names = [item for item in given if isinstance(item, str)]
        pieces = []
        for i, item in enumerate(given):
            table = item if isinstance(item, str) else {"name": _name(item, kind), **item}
            pieces.append(problem.registry.build(kind, table, file, f"{path}[{i}]"))
            if not isinstance(item, str):
                if pieces[-1].name in names:
                    text = f"{pieces[-1].name!r} is the name of another candidate; give this one a name of its own"
                    raise SpecError.at(file, f"{path}[{i}]", text)
                names.append(pieces[-1].name)
        return tuple(pieces)

    return problem.remember(("candidates", kind, repr(given), path), build)


def _name(table: Mapping[str, Any], kind: str) -> str:
    values = (f"{key}={value}" for key, value in table.items() if key not in ("kind", "type", "extends"))
    return f"{table.get('extends', table.get('type', kind))}({', '.join(values)})"


@attrs.frozen(kw_only=True)
class Choices(Segment):
    """A segment whose genes choose from its candidates, without an order between them."""

    any_backend: ClassVar[bool] = True
    chosen: ClassVar[str]
    """The kind of the candidates."""

    candidates: tuple[Candidate, ...] = attrs.field(
        validator=[attrs.validators.min_len(1), attrs.validators.max_len(127)]
    )
    """Names or tables of the pieces to choose from; gene value i chooses the i-th, from 0."""

    def gene_names(self, problem: Problem) -> tuple[str, ...]:
        raise NotImplementedError

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        path = f"{self.name or self.type_name}.candidates"
        return {self.chosen: build_candidates(problem, self.chosen, self.candidates, path)}

    def genes(self, problem: Problem) -> Genes:
        names = self.gene_names(problem)
        high = np.full(len(names), len(self.candidates) - 1, dtype=np.int64)
        return Genes(names, np.zeros(len(names), dtype=np.int64), high, ordered=False)

    def encode(self, designs: Designs, problem: Problem) -> Array:
        (column,) = (designs.columns[name] for name in self.provides)
        names, candidates = self.gene_names(problem), self.choices(problem)[self.chosen]
        genes = column.reshape(len(names), column.shape[-1]).astype(np.int64)
        wrong = (genes < 0) | (genes >= len(candidates))
        if wrong.any():
            gene, row = (int(i) for i in np.argwhere(wrong)[0])
            known = f"0..{len(candidates) - 1} ({', '.join(piece.name for piece in candidates)})"
            raise DesignError(f"design {row}: '{names[gene]}' is {int(genes[gene, row])}, expected {known}")
        return genes
