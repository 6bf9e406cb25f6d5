"""Mistakes in the table of a segment, collected with their keys and reported together, and in the bounds of a design."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, Mistake, SpecError, listed, unknown
from sparsemap.pieces.contracts import Array, Segment


class Mistakes:
    """Mistakes of one segment; a call adds a mistake."""

    def __init__(self, segment: Segment, problem: Problem) -> None:
        self.segment, self.file = segment, problem.files.get("space", "")
        self.found: list[Mistake] = []

    def __call__(self, key: str, text: str) -> None:
        self.found.append(Mistake(self.file, self.segment.path(key), text))

    def known(self, key: str, what: str, name: str, names: Collection[str]) -> bool:
        """Whether the name is known; an unknown name is a mistake."""
        if name not in names:
            self(key, unknown(what, name, names))
        return name in names

    def order(self, key: str, given: Sequence[str], dims: Sequence[str]) -> list[int] | None:
        """Indices of dimensions from outer to inner, with omitted dimensions in workload order; None after a mistake."""
        strange = [dim for dim in given if not self.known(key, "dimension", dim, dims)]
        if len(set(given)) < len(given):
            self(key, f"names a dimension twice: {listed(given)}")
        elif not strange:
            return [dims.index(dim) for dim in (*given, *(dim for dim in dims if dim not in given))]
        return None

    def tell(self) -> None:
        if self.found:
            raise SpecError(self.found)


def refused(bounds: Array, wrong: Array, problem: Problem) -> DesignError:
    """The error for bounds (L, D, B) not multiplying to the sizes where `wrong` (D, B)."""
    dim, row = (int(i) for i in np.argwhere(wrong)[0])
    name = problem.dims[dim]
    size, given = int(problem.sizes[name]), int(problem.loops.sizes[name])
    padded = f" (padded from {given})" if given != size else ""
    found = " * ".join(f"{bound:g}" for bound in bounds[:, dim, row])
    return DesignError(
        f"design {row}: bounds of dimension '{name}' are {found} = {bounds[:, dim, row].prod():g}, "
        f"expected whole numbers that multiply up to {size}{padded}"
    )
