"""Exhaustive search: every distinct design once, for small spaces and for judging other searchers.

No optimum is missed. `Segment.canonical` promises, for each segment, that (1) canonical genes give the same design as
the original genes; (2) canonical genes are their own canonical genes; (3) their first genes stay canonical when the
later genes are set to their highest values. Canonical genes depend on columns of earlier segments only.

* Every design is met: rewrite the genes of any genome segment by segment, in the order of `space.canonical_order`. By
  (1) the design stays the same, by (2) further rewriting does not change the resulting genome: it is canonical.
* No canonical genome is dropped: by (3), its first genes, with the others at their highest values, are not rewritten,
  and only rewritten prefixes are dropped. A later segment reads columns of earlier, complete segments only.

The built-in encodings count as one design: equal prime factors of a dimension swapping levels (the bounds are the
same); orders differing only in loops with bound one (no such loop runs); different formats in slots beyond a tensor's
ranks (no rank uses them); mechanisms at the compute unit with the same action (nothing else counts there)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.errors import SearchError
from sparsemap.pieces.contracts import Array, Genomes, Proposals, Rows, Searcher
from sparsemap.problem.designs import Designs


@attrs.define(eq=False, slots=False)
class Enumeration:
    """Every distinct design of a space once: the tree of prefixes of canonical genomes, depth first, in blocks.

    Genes are set one after another, segment by segment in `space.canonical_order`; unset genes hold their highest
    values. A prefix is dropped if `space.canonical` would rewrite one of its genes. `block` bounds the rows held per
    gene."""

    space: Space
    block: int = 4096
    keep: Callable[[Designs], Array] | None = None
    """(B,) bool: whether to keep designs, called as soon as the columns in `reads` are set; None: keep all."""
    reads: tuple[str, ...] = ()

    @cached_property
    def plan(self) -> list[tuple[int, str, Array]]:
        """Per gene, in order of setting: position, segment, and the segment's genes set by then."""
        rows = []
        for name in self.space.canonical_order:
            part = self.space.slices[name]
            rows += [(gene, name, np.arange(part.start, gene + 1)) for gene in range(part.start, part.stop)]
        return rows

    @cached_property
    def known(self) -> int:
        """Number of genes set once the columns in `reads` are complete."""
        names = {name for name, segment in self.space.segments.items() if {*segment.provides} & {*self.reads}}
        return max((depth + 1 for depth, (_, name, _) in enumerate(self.plan) if name in names), default=0)

    def genomes(self) -> Iterator[Genomes]:
        """All canonical genomes, in blocks (n, G) int64."""
        yield from self._below(self.space.high[None, :].copy(), 0)

    def count(self, rng: np.random.Generator, probes: int = 256) -> float:
        """Estimated number of canonical genomes, by Knuth's method: the product of the branches along random paths
        down."""
        rows = np.repeat(self.space.high[None, :], probes, axis=0)
        weights = np.ones(probes)
        for depth in range(len(self.plan)):
            step, grown, branches = self.step(depth), [], []
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                children, parents = self.grow(some, depth)
                branches.append(np.bincount(parents, minlength=len(some)))
                first = np.cumsum(branches[-1]) - branches[-1]
                on = branches[-1] > 0
                grown.append(children[(first + (rng.random(len(some)) * branches[-1]).astype(np.int64))[on]])
            on = np.concatenate(branches) > 0
            rows = np.concatenate(grown)
            weights = (weights * np.concatenate(branches))[on]
        return float(weights.sum() / probes)

    def step(self, depth: int) -> int:
        """Number of rows extended at a time, so that a block holds all results."""
        gene = self.plan[depth][0]
        return max(self.block // int(self.space.high[gene] - self.space.low[gene] + 1), 1)

    def grow(self, rows: Genomes, depth: int) -> tuple[Genomes, Rows]:
        """Prefixes longer by one gene, ascending, and the index of each one's parent row."""
        gene, name, known = self.plan[depth]
        low, span = int(self.space.low[gene]), int(self.space.high[gene] - self.space.low[gene] + 1)
        parents = np.repeat(np.arange(len(rows)), span)
        children = rows[parents]
        if span > 1:
            children[:, gene] = np.tile(np.arange(low, low + span), len(rows))
            kept = (self.space.canonical(children, [name])[:, known] == children[:, known]).all(axis=1)
            children, parents = children[kept], parents[kept]
        if self.keep is not None and depth + 1 == self.known and len(children):
            kept = self.keep(self.space.decode(children))
            children, parents = children[kept], parents[kept]
        return children, parents

    def _below(self, rows: Genomes, depth: int) -> Iterator[Genomes]:
        if depth == len(self.plan):
            yield rows
            return
        step = self.step(depth)
        waiting: list[Array] = []
        for start in range(0, len(rows), step):
            waiting.append(self.grow(rows[start : start + step], depth)[0])
            if sum(map(len, waiting)) >= self.block or start + step >= len(rows):
                yield from self._below(np.concatenate(waiting), depth + 1)
                waiting = []


@attrs.frozen(kw_only=True)
class Exhaustive(Searcher):
    """Ends after proposing every design; the budget must cover all designs."""

    type_name: ClassVar[str] = "exhaustive"

    limit: float = attrs.field(default=5e7, validator=attrs.validators.gt(0))
    """Largest estimated number of distinct designs; above, the search refuses to start."""
    batch: int = attrs.field(default=4096, validator=attrs.validators.ge(1))
    """Designs evaluated at a time."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        tree = Enumeration(space, self.batch)
        if space.log10_size > np.log10(self.limit):
            designs = tree.count(rng)
            if designs > self.limit:
                raise SearchError(
                    f"searcher '{self.name or self.type_name}': the space has about {designs:.1e} distinct designs "
                    f"(10^{space.log10_size:.0f} genomes), more than {self.limit:.0e}; take a smaller workload, "
                    "or a space that fixes some of the genes"
                )
        yield from tree.genomes()
