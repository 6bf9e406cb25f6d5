"""Gene helpers of searchers and operators. Shapes: n genomes of G genes, int64."""

from __future__ import annotations

import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Genomes, PerDesign, PerGene, Rows

MAPPING = frozenset({"bounds", "order"})
"""Columns of designs describing loops."""


class Seen:
    """The genomes proposed so far, by hash, so that no evaluation is spent twice; all are forgotten beyond `limit`."""

    def __init__(self, limit: float = 1_000_000) -> None:
        self.limit = limit
        self.hashes: set[int] = set()

    def new(self, genomes: Genomes) -> Rows:
        """Rows of new genomes, ascending, the first of equal genomes; marks all as seen."""
        rows = self.unseen(genomes)
        self.add(genomes[rows])
        return rows

    def unseen(self, genomes: Genomes) -> Rows:
        """Rows of new genomes, as `new`, without marking them as seen."""
        first: dict[int, int] = {}
        for row, key in enumerate(_hashes(genomes)):
            if key not in self.hashes:
                first.setdefault(key, row)
        return np.array([*first.values()], dtype=np.int64)

    def add(self, genomes: Genomes) -> None:
        if len(self.hashes) > self.limit:
            self.hashes.clear()
        self.hashes.update(_hashes(genomes))

    def known(self, genomes: Genomes) -> PerDesign:
        """(n,) bool: whether each genome has been seen."""
        return np.array([key in self.hashes for key in _hashes(genomes)], dtype=bool)


def _hashes(genomes: Genomes) -> list[int]:
    if not genomes.size:
        return [0] * len(genomes)
    return list(
        map(hash, np.ascontiguousarray(genomes).view(f"V{genomes.itemsize * genomes.shape[1]}").ravel().tolist())
    )


def neighbourhood(space: Space, genome: PerGene) -> Genomes:
    """All genomes different from `genome` (G,) in one gene; at most 64 values per gene."""
    rows = []
    for gene, (low, high) in enumerate(zip(space.low, space.high, strict=True)):
        values = np.arange(low, high + 1) if high - low < 64 else np.unique(np.linspace(low, high, 64).astype(np.int64))
        values = values[values != genome[gene]]
        rows.append(np.repeat(genome[None, :], len(values), axis=0))
        rows[-1][:, gene] = values
    return np.concatenate(rows) if rows else genome[None, :][:0]


def renewed(space: Space, good: Genomes, guesses: Genomes, share: float, rng: np.random.Generator) -> Genomes:
    """Good designs (n, G), each with a part replaced by a guess (n, G): all loops for a `share` of the designs, a
    single segment for the others."""
    count, names = len(good), list(space.slices)
    loops = np.array([bool(MAPPING.intersection(space.segments[name].provides)) for name in names])
    kind = rng.random(count)[:, None]
    taken = np.eye(len(names), dtype=bool)[rng.integers(0, len(names), size=count)]
    taken = np.where((kind < share) & loops.any(), loops, taken)
    by_gene = np.repeat(taken, [part.stop - part.start for part in space.slices.values()], axis=1)
    return np.where(by_gene, guesses, good)
