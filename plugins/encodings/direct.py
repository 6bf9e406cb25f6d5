"""Encodings for comparison with the paper's: loop bounds as genes (improved on in Section IV-B), and codes of loop
orders without common features between neighbours (Fig. 10)."""

from __future__ import annotations

from collections.abc import Mapping
from math import factorial
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array, Genes
from sparsemap.problem.designs import Designs

from .orders import Cantor
from .tiling import LoopTiling


class DirectTiling(LoopTiling):
    """One gene per dimension and mapping level, 1..size: the loop bound (M1..M5, K1..K5, N1..N5 for a matmul).

    Provides `bounds` (L, D, B) float64. The bounds of most genomes do not multiply to the sizes; the cost model rejects
    these."""

    type_name: ClassVar[str] = "direct-tiling"

    def explain(self, problem: Problem) -> str:
        return f"one loop bound per dimension ({', '.join(problem.dims)}) and mapping level"

    def genes(self, problem: Problem) -> Genes:
        levels = [level.name for level in problem.mapping_levels]
        names = tuple(f"bound.{dim}.{level}" for dim in problem.dims for level in levels)
        high = np.repeat(np.array(list(problem.sizes.values()), dtype=np.int64), len(levels))
        return Genes(names, np.ones(len(names), dtype=np.int64), high)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        by_dim = genes.reshape(len(problem.dims), len(problem.mapping_levels), -1)
        return {"bounds": np.ascontiguousarray(by_dim.transpose(1, 0, 2), dtype=np.float64)}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        bounds = designs.columns["bounds"]
        sizes = np.array(list(problem.sizes.values()), dtype=np.float64)[:, None]
        wrong = (bounds < 1) | (bounds > sizes) | (bounds != np.floor(bounds))
        if wrong.any():
            level, dim, row = (int(i) for i in np.argwhere(wrong)[0])
            raise DesignError(
                f"design {row}: the bound of '{problem.dims[dim]}' in {problem.mapping_levels[level].name} is "
                f"{bounds[level, dim, row]:g}, expected a whole number in 1..{int(sizes[dim, 0])}"
            )
        return bounds.transpose(1, 0, 2).reshape(-1, bounds.shape[-1]).astype(np.int64)


@attrs.frozen(kw_only=True)
class RandomOrder(Cantor):
    """Like `cantor`, but a random one-to-one table maps codes to orders: neighbouring codes have unrelated orders."""

    type_name: ClassVar[str] = "random-order"
    max_dims: ClassVar[int] = 10

    seed: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Seed of the table; all mapping levels share the table, as with Cantor codes."""

    def genes(self, problem: Problem) -> Genes:
        return attrs.evolve(super().genes(problem), ordered=False)

    def codes(self, genes: Array, problem: Problem) -> Array:
        return self._tables(problem)[0][genes - 1]

    def coded(self, codes: Array, problem: Problem) -> Array:
        return self._tables(problem)[1][codes - 1]

    def _tables(self, problem: Problem) -> tuple[Array, Array]:
        """Cantor code by random code minus one, and the inverse table; both (D!,) int64."""

        def draw() -> tuple[Array, Array]:
            codes = np.random.default_rng(self.seed).permutation(factorial(len(problem.dims))).astype(np.int64)
            return codes + 1, codes.argsort() + 1

        return problem.shared.remember((RandomOrder, self.seed, len(problem.dims)), draw)
