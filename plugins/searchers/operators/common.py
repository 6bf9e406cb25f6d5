"""What operators share about genes and designs. Shapes: n genomes of G genes, int64."""

from __future__ import annotations

import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Array, Context, Genomes, PerGene, Scored, shifted

from ..genes import Seen


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
