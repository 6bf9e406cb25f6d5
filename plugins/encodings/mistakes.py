"""What is wrong in the table of a segment, told all together, each thing at its key."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sparsemap import Problem
from sparsemap.errors import Mistake, SpecError, listed, unknown
from sparsemap.pieces.contracts import Segment


class Mistakes:
    """Those of one segment; a call adds one."""

    def __init__(self, segment: Segment, problem: Problem) -> None:
        self.segment, self.file = segment, problem.files.get("space", "")
        self.found: list[Mistake] = []

    def __call__(self, key: str, text: str) -> None:
        self.found.append(Mistake(self.file, self.segment.path(key), text))

    def known(self, key: str, what: str, name: str, names: Collection[str]) -> bool:
        """Whether the name is one of these; if not, that is a mistake."""
        if name not in names:
            self(key, unknown(what, name, names))
        return name in names

    def order(self, key: str, given: Sequence[str], dims: Sequence[str]) -> list[int] | None:
        """Dimensions from outer to inner as indices, those left out in workload order; None after a mistake."""
        strange = [dim for dim in given if not self.known(key, "dimension", dim, dims)]
        if len(set(given)) < len(given):
            self(key, f"names a dimension twice: {listed(given)}")
        elif not strange:
            return [dims.index(dim) for dim in (*given, *(dim for dim in dims if dim not in given))]
        return None

    def tell(self) -> None:
        if self.found:
            raise SpecError(self.found)
