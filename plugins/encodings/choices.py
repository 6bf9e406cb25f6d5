"""What segments share whose genes choose a piece from a list of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array, Genes, Piece

if TYPE_CHECKING:
    from sparsemap.problem.problem import Problem


def build_candidates(problem: Problem, kind: str, names: tuple[str, ...], path: str) -> tuple[Piece, ...]:
    """The pieces by name, in order; `SpecError` with the nearest name where one is not known."""
    file = problem.files.get("space", "")

    def build() -> tuple[Piece, ...]:
        return tuple(problem.registry.build(kind, name, file, f"{path}[{i}]") for i, name in enumerate(names))

    return problem.remember(("candidates", kind, names, path), build)


def choice_genes(names: tuple[str, ...], candidates: int) -> Genes:
    """Genes 0..candidates - 1, without an order between the values."""
    high = np.full(len(names), candidates - 1, dtype=np.int64)
    return Genes(names, np.zeros(len(names), dtype=np.int64), high, ordered=False)


def encode_choices(column: Array, names: tuple[str, ...], candidates: tuple[str, ...]) -> Array:
    """A column of candidate indices, (.., B), as genes (g, B); `DesignError` for an index without a candidate."""
    genes = column.reshape(len(names), column.shape[-1]).astype(np.int64)
    wrong = (genes < 0) | (genes >= len(candidates))
    if wrong.any():
        gene, row = (int(i) for i in np.argwhere(wrong)[0])
        known = f"0..{len(candidates) - 1} ({', '.join(candidates)})"
        raise DesignError(f"design {row}: '{names[gene]}' is {int(genes[gene, row])}, expected {known}")
    return genes
