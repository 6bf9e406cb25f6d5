"""What segments without genes share: columns that are the same for every design of a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array, Genes, Segment

if TYPE_CHECKING:
    from sparsemap.problem.designs import Designs
    from sparsemap.problem.problem import Problem


@attrs.frozen(kw_only=True)
class Constant(Segment):
    """A derived class says in `constants` what its columns hold."""

    def constants(self, problem: Problem) -> dict[str, Array]:
        """The columns without their batch axis."""
        raise NotImplementedError

    def genes(self, problem: Problem) -> Genes:
        self._columns(problem)  # so that wrong names are told before the search
        return Genes((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        count = genes.shape[1]
        return {name: np.repeat(value[..., None], count, axis=-1) for name, value in self._columns(problem).items()}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        for name, value in self._columns(problem).items():
            wrong = (designs.columns[name] != value[..., None]).reshape(-1, len(designs)).any(axis=0)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise DesignError(f"design {row}: '{name}' differs from what segment '{self._path()}' fixes")
        return np.zeros((0, len(designs)), dtype=np.int64)

    def _path(self, key: str = "") -> str:
        return ".".join(part for part in (self.name or self.type_name, key) if part)

    def _columns(self, problem: Problem) -> dict[str, Array]:
        return problem.remember((self.type_name, id(self)), lambda: self.constants(problem))
