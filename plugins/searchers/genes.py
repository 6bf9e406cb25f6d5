"""What searchers and operators share about genes. Shapes: n genomes of G genes, int64."""

from __future__ import annotations

import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Array, Context, Genomes, PerDesign, PerGene, Rows, Scored, shifted

MAPPING = frozenset({"bounds", "order"})
"""Columns of designs that are loops."""


class Seen:
    """The genomes proposed so far, by hash, so that no evaluation is spent twice; forgets all beyond `limit`."""

    def __init__(self, limit: float = 1_000_000) -> None:
        self.limit = limit
        self.hashes: set[int] = set()

    def new(self, genomes: Genomes) -> Rows:
        """Rows of genomes not seen before, ascending, the first of equal ones; all have been seen then."""
        if len(self.hashes) > self.limit:
            self.hashes.clear()
        rows = []
        for row, key in enumerate(_hashes(genomes)):
            if key not in self.hashes:
                self.hashes.add(key)
                rows.append(row)
        return np.array(rows, dtype=np.int64)

    def known(self, genomes: Genomes) -> PerDesign:
        """(n,) bool, which genomes have been seen."""
        return np.array([key in self.hashes for key in _hashes(genomes)], dtype=bool)


def _hashes(genomes: Genomes) -> list[int]:
    data = genomes.tobytes()
    width = max(len(data) // max(len(genomes), 1), 1)
    return [hash(data[row * width : (row + 1) * width]) for row in range(len(genomes))]


def neighbourhood(space: Space, genome: PerGene) -> Genomes:
    """All genomes that differ from `genome` (G,) in one gene; of a gene with many values only 64."""
    rows = []
    for gene, (low, high) in enumerate(zip(space.low, space.high, strict=True)):
        values = np.arange(low, high + 1) if high - low < 64 else np.unique(np.linspace(low, high, 64).astype(np.int64))
        values = values[values != genome[gene]]
        rows.append(np.repeat(genome[None, :], len(values), axis=0))
        rows[-1][:, gene] = values
    return np.concatenate(rows) if rows else genome[None, :][:0]


def renewed(space: Space, good: Genomes, guesses: Genomes, share: float, rng: np.random.Generator) -> Genomes:
    """Good designs (n, G) with a part of each taken from a guess (n, G): all loops of a `share`, one segment of the others."""
    count, names = len(good), list(space.slices)
    loops = np.array([bool(MAPPING.intersection(space.segments[name].provides)) for name in names])
    kind = rng.random(count)[:, None]
    taken = np.eye(len(names), dtype=bool)[rng.integers(0, len(names), size=count)]
    taken = np.where((kind < share) & loops.any(), loops, taken)
    by_gene = np.repeat(taken, [part.stop - part.start for part in space.slices.values()], axis=1)
    return np.where(by_gene, guesses, good)


def another(values: Array, low: Array, high: Array, rng: np.random.Generator) -> Array:
    """Other values of genes, uniform within their bounds low..high; genes with a single value keep it."""
    return shifted(values, rng.integers(1, np.maximum(high - low + 1, 2), size=values.shape), low, high)


def high_sensitivity(context: Context) -> PerGene:
    """(G,) bool, the genes of high sensitivity, as far as the searcher has calibrated them."""
    high: PerGene = context.notes.get("high_sensitivity", np.zeros(len(context.space), dtype=bool))
    return high


def steps(genomes: Genomes, which: Array, space: Space, rng: np.random.Generator) -> Genomes:
    """Genomes with the genes marked in `which` moved to a neighbouring value, turned back at the bounds."""
    up = np.where(rng.random(genomes.shape) < 0.5, 1, -1)
    up = np.where(genomes + up > space.high, -1, np.where(genomes + up < space.low, 1, up))
    return np.where(which & (space.high > space.low), genomes + up, genomes)


def pick_some(allowed: Array, chance: Array, rng: np.random.Generator) -> Array:
    """One allowed gene per genome at random, and each other allowed one with probability `chance` (n, 1); (n, G) bool.

    Rows of `allowed` (n, G) without any True stay empty.
    """
    draw = rng.random(allowed.shape)
    first = np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=1)
    picked = allowed & (draw < chance)
    picked[np.arange(len(allowed)), first] = True
    return picked & allowed


def unique(scored: Scored) -> Scored:
    """Without repeated genomes; the first of each stays, in the given order."""
    return scored.take(Seen().new(scored.genomes))


def valid(scored: Scored) -> Scored:
    return scored.take(np.isfinite(scored.scores))


def part_starts(space: Space) -> PerGene:
    """(G,) bool, where a natural part of the genome begins: a segment, or a tensor's or dimension's run of genes."""
    stems = [(name, gene.rpartition(".")[0]) for name, part in space.slices.items() for gene in space.names[part]]
    return np.array([i == 0 or stem != stems[i - 1] for i, stem in enumerate(stems)], dtype=bool)
