"""What evolutionary searchers share: moves that the segments offer, crossing, neighbourhoods, and what was proposed.

moves, known = Moves(space), Seen()
children, used = moves.vary(cross(space, first, second, rng), rng)
children = space.repair(children, rng)
fresh = known.new(children)
scored = yield children[fresh]
moves.learn(used[fresh[: len(scored)]], scored.scores < bar)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts import Array

if TYPE_CHECKING:
    from sparsemap.problem.space import Space

AGAIN = 0.45
"""Chance that a genome gets another move after each."""


class Seen:
    """Genomes proposed so far, by hash, so that no evaluation is spent twice; forgets all when it grows too large."""

    LIMIT = 1_000_000

    def __init__(self) -> None:
        self.keys: set[int] = set()

    def new(self, genomes: Array) -> Array:
        """Rows of genomes that were not proposed before, in order, each distinct genome once."""
        if len(self.keys) > self.LIMIT:
            self.keys.clear()
        rows = []
        for row, genome in enumerate(np.ascontiguousarray(genomes)):
            key = hash(genome.tobytes())
            if key not in self.keys:
                self.keys.add(key)
                rows.append(row)
        return np.array(rows, dtype=np.int64)


class Moves:
    """How often each segment is varied: in proportion to how often that led to survivors, never below a floor."""

    FLOOR = 0.06

    def __init__(self, space: Space) -> None:
        self.space = space
        high, low = space.high, space.low
        self.names = [name for name, part in space.slices.items() if (high[part] > low[part]).any()]
        sizes = np.array([max(1, part.stop - part.start) for n, part in space.slices.items() if n in self.names], float)
        self.prior = np.sqrt(sizes) / np.sqrt(sizes).sum() if len(sizes) else sizes
        self.tried = 20.0 * self.prior
        self.worked = 20.0 * self.prior * 0.1

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        if not self.names:
            return np.zeros(count, dtype=np.int64)
        rates = self.worked / self.tried * np.sqrt(self.prior)
        shares = self.FLOOR + (1.0 - self.FLOOR * len(rates)) * rates / rates.sum()
        return rng.choice(len(self.names), size=count, p=shares / shares.sum())

    def vary(self, genomes: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Genomes (n, G), each changed by one move or a few, and the segment of the first move of each (n,)."""
        changed, count = genomes.copy(), len(genomes)
        used = again = self.draw(count, rng)
        active = np.arange(count)
        while active.size:
            for index, name in enumerate(self.names):
                rows = active[again == index]
                if rows.size:
                    changed[rows] = self.space.vary(changed[rows], name, rng)
            active = active[rng.random(active.size) < AGAIN]
            again = self.draw(active.size, rng)
        return changed, used

    def learn(self, used: Array, worked: Array) -> None:
        """Takes in whether designs (n,) that began with the moves `used` (n,) turned out well."""
        for index in range(len(self.names)):
            mine = used == index
            self.tried[index] = 0.9 * self.tried[index] + mine.sum() + 0.1
            self.worked[index] = 0.9 * self.worked[index] + worked[mine].sum() + 0.05


def cross(space: Space, first: Array, second: Array, rng: np.random.Generator) -> Array:
    """Segments come whole from either parent, or gene by gene."""
    by_segment = np.zeros(first.shape, dtype=bool)
    for part in space.slices.values():
        by_segment[:, part] = (rng.random(len(first)) < 0.5)[:, None]
    by_gene = rng.random(first.shape) < 0.5
    whole = (rng.random(len(first)) < 0.5)[:, None]
    return np.where(np.where(whole, by_segment, by_gene), first, second)


def neighbourhood(space: Space, genome: Array) -> Array:
    """All genomes that differ in one gene; genes with many values (orders of many dimensions) are thinned out."""
    rows = []
    for gene, (low, high) in enumerate(zip(space.low, space.high, strict=True)):
        values = np.arange(low, high + 1) if high - low < 64 else np.unique(np.linspace(low, high, 64).astype(np.int64))
        for value in values:
            if value != genome[gene]:
                row = genome.copy()
                row[gene] = value
                rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(-1, len(genome))
