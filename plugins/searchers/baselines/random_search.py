"""Random search, the minimum for any other method to beat, and a variant never evaluating a design twice
(`random-pruned`).

The variant prunes as Timeloop's mapper does by default: permutations of loops with bound one, and all permutations of
the innermost level. `space.canonical` does the first, along with all other equivalences of genomes. The second holds
for dense tensors only: for a compressed tensor, the innermost loops determine the innermost rank, and so the metadata.
Like the mapper, the variant can draw bounds instead of prime factors, and end when nothing is found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Array, Genomes, Proposals, Searcher

from ..genes import Seen
from .exhaustive import Enumeration

FRUITLESS = 100
"""Consecutive batches without a new design after which even a large space counts as exhausted."""

TRIALS = 64
"""Number of genomes for testing whether swapping genes changes a design."""


@attrs.frozen(kw_only=True)
class RandomSearch(Searcher):
    """Every design uniform and independent."""

    type_name: ClassVar[str] = "random"

    batch: int = attrs.field(default=1024, validator=attrs.validators.ge(1))
    """Designs proposed at a time; affects the speed, not the result."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        while True:
            yield space.sample(self.batch, rng)


@attrs.frozen(kw_only=True)
class RandomPruned(Searcher):
    """Distinct designs in random order; when draws hardly find new designs, the remaining designs are listed, and the
    search ends."""

    type_name: ClassVar[str] = "random-pruned"

    batch: int = attrs.field(default=1024, validator=attrs.validators.ge(1))
    """Genomes drawn at a time."""
    rare: float = attrs.field(default=0.05, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Share of new designs in a batch below which the remaining designs are listed, if the space is small enough."""
    limit: float = attrs.field(default=1e6, validator=attrs.validators.gt(0))
    """Largest number of distinct designs of a small enough space."""
    draw: Literal["primes", "factorizations"] = "primes"
    """`primes`: the level of every prime factor is uniform. `factorizations`, as in Timeloop: the bounds of a dimension
    are uniform among all factorizations of the size; even splits are then rarer."""
    prune_innermost: Literal["auto", "always", "never"] = "auto"
    """Whether the innermost level keeps the first of its loop orders; `auto`: if no design compresses a tensor."""
    victory: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Number of consecutive valid designs without improvement after which the search ends; 0: unlimited."""
    timeout: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Number of consecutive invalid designs after which the search ends; 0: unlimited. Both limits are checked after
    every batch."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        seen, patience = Seen(limit=math.inf), Patience(self.victory, self.timeout)
        fruitless, small = 0, None
        alike = interchangeable(space) if self.draw == "factorizations" else []
        still = innermost_orders(space) if self._prunes(space) else []
        while fruitless < FRUITLESS:
            drawn = space.sample(self.batch, rng)
            for genes in alike:
                drawn[:, genes] = multisets(space.low[genes.start], space.high[genes.start], drawn[:, genes].shape, rng)
            drawn[:, still] = space.low[still]
            genomes = space.canonical(drawn)
            fresh = genomes[seen.new(genomes)]
            fruitless = 0 if len(fresh) else fruitless + 1
            if len(fresh) and patience.ends((yield fresh).scores):
                return
            if len(fresh) < self.rare * self.batch:
                small = Enumeration(space).count(rng) <= self.limit if small is None else small
                if small:
                    break
        if small:
            yield from self._rest(space, seen, still, rng)

    def _prunes(self, space: Space) -> bool:
        return self.prune_innermost == "always" or (self.prune_innermost == "auto" and not space.compresses)

    def _rest(self, space: Space, seen: Seen, still: Sequence[int], rng: np.random.Generator) -> Iterator[Genomes]:
        listed = (rows[(rows[:, still] == space.low[still]).all(axis=1)] for rows in Enumeration(space).genomes())
        left = [genomes[seen.new(genomes)] for genomes in listed]
        rows = rng.permutation(np.concatenate(left))
        for start in range(0, len(rows), self.batch):
            yield rows[start : start + self.batch]


class Patience:
    """Counts consecutive designs without improvement."""

    def __init__(self, victory: int, timeout: int) -> None:
        self.victory, self.timeout = victory, timeout
        self._best, self._worse, self._invalid = math.inf, 0, 0

    def ends(self, scores: Array) -> bool:
        """Whether the search should end after designs with these scores."""
        if not (self.victory or self.timeout):
            return False
        for score in scores.tolist():
            self._invalid = self._invalid + 1 if math.isinf(score) else 0
            if score < self._best:
                self._best, self._worse = score, 0
            elif math.isfinite(score):
                self._worse += 1
            if self._worse >= (self.victory or math.inf) or self._invalid >= (self.timeout or math.inf):
                return True
        return False


def interchangeable(space: Space) -> list[slice]:
    """Runs of two or more genes with exchangeable values, such as equal prime factors."""
    trials = space.sample(TRIALS, np.random.default_rng(0))
    runs, start = [], 0
    for gene in range(1, len(space) + 1):
        if gene < len(space) and (space.low[gene], space.high[gene]) == (space.low[gene - 1], space.high[gene - 1]):
            swapped = trials.copy()
            swapped[:, [gene - 1, gene]] = trials[:, [gene, gene - 1]]
            if (space.canonical(swapped) == space.canonical(trials)).all():
                continue
        if gene - start > 1:
            runs.append(slice(start, gene))
        start = gene
    return runs


def multisets(low: int, high: int, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """(n, k): k values from `low` to `high` per row, ascending, with all multisets equally likely."""
    rows, count = shape
    places = rng.random((rows, high - low + count)).argsort(axis=1)[:, :count]  # stars and bars
    return np.sort(places, axis=1) - np.arange(count) + low


def innermost_orders(space: Space) -> list[int]:
    """Genes of the loop orders of the innermost storage level, `order.L3_T` and `order.L3_S`."""
    levels = [(gene, name.partition("_")[0]) for gene, name in enumerate(space.names) if name.startswith("order.")]
    return [gene for gene, level in levels if level == levels[-1][1]]
