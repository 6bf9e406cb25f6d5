"""Loop orders under codes drawn at random: the encoding that the paper compares Cantor codes with (Fig. 10 a)."""

from __future__ import annotations

from collections.abc import Mapping
from math import factorial
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array, Genes

from .orders import Cantor

if TYPE_CHECKING:
    from sparsemap.problem.designs import Designs
    from sparsemap.problem.problem import Problem


@attrs.frozen(kw_only=True)
class RandomOrder(Cantor):
    """Like `cantor`, but a random one-to-one table says which order a code means: neighbours have nothing in common."""

    type_name: ClassVar[str] = "random-order"
    max_dims: ClassVar[int] = 10

    seed: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Draws the table; every mapping level uses the same one, as with Cantor codes."""

    def genes(self, problem: Problem) -> Genes:
        return attrs.evolve(super().genes(problem), ordered=False)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        return super().decode(self._tables(problem)[0][genes - 1], problem)

    def encode(self, designs: Designs, problem: Problem) -> Array:
        return self._tables(problem)[1][super().encode(designs, problem) - 1]

    def _tables(self, problem: Problem) -> tuple[Array, Array]:
        """Cantor code by random code minus one, and the inverse; both (D!,) int64."""
        return problem.remember((self.type_name, self.seed), lambda: self._draw(len(problem.dims)))

    def _draw(self, dims: int) -> tuple[Array, Array]:
        codes = np.random.default_rng(self.seed).permutation(factorial(dims)).astype(np.int64) + 1
        inverse = np.empty_like(codes)
        inverse[codes - 1] = np.arange(1, len(codes) + 1)
        return codes, inverse
