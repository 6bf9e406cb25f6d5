"""Every distinct design of a space once: the canonical genomes, depth first, in blocks.

Genes are set one after another, segment by segment in `space.canonical_order`; genes not yet set hold their highest
values. A beginning is dropped when `space.canonical` would rewrite one of its genes. Nothing is lost: see `exhaustive`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import attrs
import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Array, Genomes, Rows


@attrs.define(eq=False, slots=False)
class Enumeration:
    """The tree of beginnings of canonical genomes; `block` bounds the rows held per gene."""

    space: Space
    block: int = 4096

    @cached_property
    def plan(self) -> list[tuple[int, str, Array]]:
        """Per gene, in the order in which they are set: its position, its segment, the segment's genes set by then."""
        rows = []
        for name in self.space.canonical_order:
            part = self.space.slices[name]
            rows += [(gene, name, np.arange(part.start, gene + 1)) for gene in range(part.start, part.stop)]
        return rows

    def genomes(self) -> Iterator[Genomes]:
        """All canonical genomes, in blocks (n, G) int64."""
        yield from self._below(self.space.high[None, :].copy(), 0)

    def count(self, rng: np.random.Generator, probes: int = 256) -> float:
        """About how many there are, by Knuth's estimate: the product of the branches along random ways down."""
        rows = np.repeat(self.space.high[None, :], probes, axis=0)
        weights = np.ones(probes)
        for depth in range(len(self.plan)):
            children, parents = self.grow(rows, depth)
            branches = np.bincount(parents, minlength=len(rows))
            first = np.concatenate([[0], np.cumsum(branches)])[:-1]
            rows = children[first + (rng.random(len(rows)) * branches).astype(np.int64)]
            weights *= branches
        return float(weights.mean())

    def grow(self, rows: Genomes, depth: int) -> tuple[Genomes, Rows]:
        """The beginnings that are one gene longer, ascending, and the index of the row that each continues."""
        gene, name, known = self.plan[depth]
        low, span = int(self.space.low[gene]), int(self.space.high[gene] - self.space.low[gene] + 1)
        parents = np.repeat(np.arange(len(rows)), span)
        if span == 1:
            return rows, parents
        children = rows[parents]
        children[:, gene] = np.tile(np.arange(low, low + span), len(rows))
        kept = (self.space.canonical(children, [name])[:, known] == children[:, known]).all(axis=1)
        return children[kept], parents[kept]

    def _below(self, rows: Genomes, depth: int) -> Iterator[Genomes]:
        if depth == len(self.plan):
            yield rows
            return
        gene = self.plan[depth][0]
        step = max(self.block // int(self.space.high[gene] - self.space.low[gene] + 1), 1)
        waiting: list[Array] = []
        for start in range(0, len(rows), step):
            waiting.append(self.grow(rows[start : start + step], depth)[0])
            if sum(map(len, waiting)) >= self.block or start + step >= len(rows):
                yield from self._below(np.concatenate(waiting), depth + 1)
                waiting = []
