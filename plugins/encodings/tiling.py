"""Tilings: the mapping level of every prime factor (Section IV-B, Fig. 9), so that bounds multiply to the sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array, Genes, Segment
from sparsemap.primes import prime_factors
from sparsemap.problem.designs import Designs

from .choices import compressed_tensors, loops_of, stationary
from .inner import functions
from .padding import Padding, chosen, next_composite, next_smooth
from .tile_figures import facts_of

FILLED = 0.8
"""Share of guesses filling a spatial level."""
STAYING = 0.5
"""Share of guesses with a tensor stationary during the loops of some level."""


@attrs.frozen(kw_only=True)
class LoopTiling(Segment):
    """A segment of loop bounds: column `bounds` (L, D, B) float64."""

    provides: ClassVar[tuple[str, ...]] = ("bounds",)

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        from .transfer import moved_bounds

        found = moved_bounds(designs, source, target, rng, fill)
        return None if found is None else self.encode(Designs({"bounds": found}), target)


@attrs.frozen(kw_only=True)
class PrimeFactors(LoopTiling):
    """One gene per prime factor, 1..L: the mapping level of the factor. All factors of the first dimension come first,
    each dimension's in ascending order. Provides `bounds` (L, D, B) float64. Equal factors of a dimension may swap
    levels, so a design has several genomes; `encode` returns the genome with ascending levels of equal factors."""

    type_name: ClassVar[str] = "prime-factors"
    obeys_stationary: ClassVar[bool] = True

    padding: str = attrs.field(default="prime", validator=attrs.validators.in_(("prime", "smooth", "none", "auto")))
    """`prime`, the paper's rule: a prime size becomes the next composite number. `smooth`: a size with a prime factor
    above `largest_factor` becomes the next size without (730 = 2*5*73 -> 735 = 3*5*7*7). `none`: sizes stay.

    `auto`: `prime`, with three improvements. If `smooth` sizes fill the fan-outs so much better that all computes take
    less than 0.8 times as long, these dimensions, or all, are smooth. Such a size becomes the size with the most
    divisors up to a sixteenth larger, if it has 1.5 times as many (730 -> 756) and the cost model foresees padded sizes
    (`physical` does). And any size becomes a size with more divisors, up to an eighth larger (2048 -> 2160), if the
    cost model expects less than 0.95 times the score. A search of more than 500 designs tries other sizes as well
    (`other_sizes`)."""
    prime_threshold: int = attrs.field(default=7, validator=attrs.validators.ge(1))
    """`prime` keeps primes up to this number: filters of 3, 5 or 7 are prime and small enough for one loop."""
    largest_factor: int = attrs.field(default=7, validator=[attrs.validators.ge(2), attrs.validators.le(31)])
    """Largest prime factor of `smooth` sizes, up to 31. With 7, sizes grow by 0.6 % on average, by 9 % at most (22 ->
    24)."""

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

    def other_sizes(self, problem: Problem) -> Sequence[Mapping[str, int]]:
        from .other_sizes import others

        return others(problem) if self.padding == "auto" else ()

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
        bounds = np.ones((len(problem.mapping_levels), len(problem.dims), genes.shape[1]))
        functions.bounds_of(self._facts(problem), np.ascontiguousarray(genes, dtype=np.int64), bounds)
        return {"bounds": stays.bounds(bounds) if (stays := stationary(problem)) else bounds}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        """Genes of designs, with ascending levels for equal factors of a dimension."""
        bounds = loops_of(designs.columns, problem)
        _check(bounds, problem)
        if stays := stationary(problem):
            stays.check(bounds, designs.columns.get("order"))
        return self._levels(bounds, problem)

    def _levels(self, bounds: Array, problem: Problem) -> Array:
        genes = np.empty((len(self.factors(problem)[0]), bounds.shape[-1]), dtype=np.int64)
        functions.levels_of(self._facts(problem), bounds, genes)
        return genes

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """Vary each design: a factor or a loop moves or swaps, a spatial level is filled, or a tensor stays."""
        changed = np.array(genes, dtype=np.int64, order="C")
        count, batch = changed.shape
        if count and len(problem.mapping_levels) > 1:
            drawn = rng.random((functions.DRAWN + count, batch))
            fills = int(np.count_nonzero((drawn[0] >= functions.SWAPPING) & (drawn[0] < functions.FILLING)))
            ways = rng.random((len(problem.dims) + count, functions.TRIES * fills))
            functions.vary_tilings(self._facts(problem), changed, drawn, ways)
        return changed

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Random genes: loops on one to three levels, mostly full spatial levels, some tensor stationary."""
        facts, (dims, _), D = self._facts(problem), self.factors(problem), len(problem.dims)
        levels = len(problem.mapping_levels)
        few = rng.integers(1, levels + 1, size=(3, D, count))  # the same one twice: on fewer levels
        genes = few[rng.integers(0, 3, size=(len(dims), count)), dims[:, None], np.arange(count)]
        for index, level in enumerate(problem.mapping_levels):
            if level.spatial:
                (filled,) = (rng.random(count) < FILLED).nonzero()
                away = rng.integers(1, levels + 1, size=filled.size)
                ways = rng.random((D + len(dims), functions.TRIES * filled.size))
                functions.fill_level(facts, genes, filled, index + 1, level.limit, away, ways)
        (stays,) = (rng.random(count) < STAYING).nonzero()
        functions.stay_some(facts, genes, stays, rng.random((3, stays.size)))
        return genes

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Move factors, in random order, out of overfull fan-outs, then out of buffers with too large tiles."""
        changed, order = self._stationary(genes, problem), rng.permutation(len(genes))
        packed = compressed_tensors(problem, columns)
        if packed is None:
            packed = np.zeros((len(problem.tensors), genes.shape[1]), dtype=bool)
        functions.fit_tilings(self._facts(problem), changed, order, packed.view(np.uint8))
        return changed

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Sort the levels of equal factors of a dimension."""
        functions.ascending(self._facts(problem), changed := self._stationary(genes, problem))
        return changed

    def _stationary(self, genes: Array, problem: Problem) -> Array:
        """A copy of genes without factors that `decode` moves."""
        own = self._levels(self.decode(genes, problem)["bounds"], problem) if stationary(problem) else genes
        return np.array(own, dtype=np.int64, order="C")

    def _facts(self, problem: Problem) -> Any:
        return problem.remember((PrimeFactors._facts,), lambda: facts_of(problem, *self.factors(problem)))

    def factors(self, problem: Problem) -> tuple[Array, Array]:
        """(g,) dimension and (g,) prime factor of every gene, the primes as float64."""

        def make() -> tuple[Array, Array]:
            pairs = [(dim, prime) for dim, size in enumerate(problem.sizes.values()) for prime in prime_factors(size)]
            dims, primes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
            return dims, primes.astype(np.float64)

        return problem.shared.remember((PrimeFactors.factors, *problem.sizes.values()), make)


def _check(bounds: Array, problem: Problem) -> None:
    """Raise `DesignError` unless the bounds are whole numbers multiplying to the sizes."""
    sizes = np.array(list(problem.sizes.values()), dtype=np.float64)
    wrong = ~((bounds >= 1) & (bounds == np.floor(bounds))).all(axis=0) | (bounds.prod(axis=0) != sizes[:, None])
    if wrong.any():
        from .mistakes import refused

        raise refused(bounds, wrong, problem)
