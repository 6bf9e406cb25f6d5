"""Tilings: the mapping level of every prime factor (Section IV-B, Fig. 9), so that every genome multiplies up to the sizes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, groupby, pairwise
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array, Genes, Segment
from sparsemap.primes import Divisors, prime_factors
from sparsemap.problem.designs import Designs

from .padding import Padding, chosen, next_composite, next_smooth
from .tile_moves import compiled, guess_tiling, repair_tiling, vary_tiling


@attrs.frozen(kw_only=True)
class LoopTiling(Segment):
    """A segment of loop bounds: column `bounds` (L, D, B) float64."""

    provides: ClassVar[tuple[str, ...]] = ("bounds",)

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        if "bounds" not in designs.columns:
            return None
        from .transfer import filled_bounds, scaled_bounds

        bounds = scaled_bounds(designs.columns["bounds"], source, target)
        return self.encode(Designs({"bounds": filled_bounds(bounds, target, rng) if fill else bounds}), target)


@attrs.frozen(kw_only=True)
class PrimeFactors(LoopTiling):
    """One gene per prime factor, 1..L: the mapping level that the factor belongs to.

    All factors of the first dimension come first, each dimension's in ascending order. Provides `bounds` (L, D, B)
    float64. Equal factors of a dimension may swap levels, so a design has several genomes; `encode` gives the one whose
    equal factors have ascending levels.
    """

    type_name: ClassVar[str] = "prime-factors"

    padding: str = attrs.field(default="prime", validator=attrs.validators.in_(("prime", "smooth", "none", "auto")))
    """`prime`, the paper's rule: a prime size goes to the next composite one. `smooth`: any size with a prime factor
    above `largest_factor` goes to the next size without (730 = 2*5*73 -> 735 = 3*5*7*7). `none`: sizes stay. `auto`:
    `prime`, but `smooth` where that fills the fan-outs so much better, for some dimensions, that all computes take less than
    0.8 times as long: then for all, since tiles have to fit as well, unless that fills the fan-outs worse than before, and
    to the size with the most divisors up to a sixteenth larger, if these are 1.5 times as many (730 -> 756) and the cost
    model foresees such sizes (`physical` does: it counts what is there). And any size goes to one with more divisors, up to
    an eighth larger (2048 -> 2160), where the cost model expects less than 0.95 times the score of its tiles at the level
    next to the outermost one."""
    prime_threshold: int = attrs.field(default=7, validator=attrs.validators.ge(1))
    """`prime` leaves primes up to this one alone: filters of 3, 5 or 7 are prime and small enough for one loop."""
    largest_factor: int = attrs.field(default=7, validator=[attrs.validators.ge(2), attrs.validators.le(31)])
    """Largest prime factor that `smooth` keeps, up to 31. With 7, sizes grow by 0.6 % on average, by 9 % at most (22 -> 24)."""

    def padded_sizes(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        if self.padding == "none":
            return {}
        if self.padding in ("prime", "auto"):
            return {dim: next_composite(size, self.prime_threshold) for dim, size in sizes.items()}
        return {dim: next_smooth(size, self.largest_factor) for dim, size in sizes.items()}

    def padded_for(self, problem: Problem) -> Mapping[str, int]:
        return self._padding(problem).sizes

    def why_padded(self, problem: Problem) -> str:
        return self._padding(problem).why

    def _padding(self, problem: Problem) -> Padding:
        plain = self.padded_sizes(problem.loops.sizes)
        return chosen(problem, plain, self.largest_factor) if self.padding == "auto" else Padding(plain)

    def genes(self, problem: Problem) -> Genes:
        names = [f"{dim}.{i + 1}" for dim, size in problem.sizes.items() for i in range(len(prime_factors(size)))]
        high = np.full(len(names), len(problem.mapping_levels), dtype=np.int64)
        return Genes(tuple(f"tile.{name}" for name in names), np.ones(len(names), dtype=np.int64), high)

    def explain(self, problem: Problem) -> str:
        counts = ", ".join(f"{len(prime_factors(size))} of {dim}" for dim, size in problem.sizes.items())
        return f"one mapping level per prime factor ({counts})"

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        levels, (dims, primes) = len(problem.mapping_levels), self._factors(problem)
        bounds = np.empty((levels, len(problem.dims), genes.shape[1]))
        if compiled is None or compiled.bounds(bounds, genes, dims, primes) is None:
            bounds[:] = 1.0
            for gene, dim, prime in zip(genes, dims, primes, strict=True):
                bounds[:, dim] *= np.where(gene == np.arange(1, levels + 1)[:, None], prime, 1.0)
        return {"bounds": bounds}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        bounds = designs.columns["bounds"]
        self._check(bounds, problem)
        groups, found = self._groups(problem), []
        for dim, size in enumerate(problem.sizes.values()):
            # by prime, from the outermost level
            found += list(Divisors.of(size).within(bounds[:-1, dim]).cumsum(axis=1))
        genes = np.ones((groups[-1].stop if groups else 0, bounds.shape[-1]), dtype=np.int64)
        for group, held in zip(groups, found, strict=True):
            place = np.arange(group.stop - group.start)[:, None, None]
            genes[group] += (held <= place).sum(axis=1)
        return genes

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        return vary_tiling(genes, problem, *self._factors(problem), rng)

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        return guess_tiling(count, problem, *self._factors(problem), rng)

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        return repair_tiling(genes, problem, columns, *self._factors(problem), rng)

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Equal factors of a dimension have ascending levels."""
        sorted_genes = genes.copy()
        for group in self._groups(problem):
            sorted_genes[group].sort(axis=0)
        return sorted_genes

    def _factors(self, problem: Problem) -> tuple[Array, Array]:
        """(g,) dimension and (g,) prime of every gene, float64."""

        def make() -> tuple[Array, Array]:
            pairs = [(dim, prime) for dim, size in enumerate(problem.sizes.values()) for prime in prime_factors(size)]
            dims, primes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
            return dims, primes.astype(np.float64)

        return problem.shared.remember((PrimeFactors._factors, *problem.sizes.values()), make)

    def _groups(self, problem: Problem) -> list[slice]:
        """The genes of equal prime factors of one dimension."""
        runs = [len(list(same)) for _, same in groupby(zip(*self._factors(problem), strict=True))]
        return [slice(start, stop) for start, stop in pairwise(accumulate(runs, initial=0))]

    def _check(self, bounds: Array, problem: Problem) -> None:
        """`DesignError` unless the bounds are whole numbers that multiply up to the sizes."""
        sizes = np.array(list(problem.sizes.values()), dtype=np.float64)
        products = bounds.prod(axis=0)
        whole = ((bounds >= 1) & (bounds == np.floor(bounds))).all(axis=0)
        wrong = ~whole | (products != sizes[:, None])
        if not wrong.any():
            return
        dim, row = (int(i) for i in np.argwhere(wrong)[0])
        name, size = problem.dims[dim], int(sizes[dim])
        given = int(problem.loops.sizes[name])
        padded = f" (padded from {given})" if given != size else ""
        found = " * ".join(f"{bound:g}" for bound in bounds[:, dim, row])
        raise DesignError(
            f"design {row}: bounds of dimension '{name}' are {found} = {products[dim, row]:g}, "
            f"expected whole numbers that multiply up to {size}{padded}"
        )
