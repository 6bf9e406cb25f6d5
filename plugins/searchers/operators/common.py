"""Gene and design helpers of operators. Shapes: n genomes of G genes, int64."""

from __future__ import annotations

import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Array, Context, Genomes, PerGene, Scored, shifted

from ..genes import Seen


def another(values: Array, low: Array, high: Array, rng: np.random.Generator) -> Array:
    """Other values of genes, uniform within low..high; genes with a single value are unchanged."""
    return shifted(values, rng.integers(1, np.maximum(high - low + 1, 2), size=values.shape), low, high)


def high_sensitivity(context: Context) -> PerGene:
    """(G,) bool: whether a gene has high sensitivity; none without calibration."""
    high: PerGene = context.notes.get("high_sensitivity", np.zeros(len(context.space), dtype=bool))
    return high


def steps(genomes: Genomes, which: Array, space: Space, rng: np.random.Generator) -> Genomes:
    """Genomes with the genes flagged in `which` moved to a neighbouring value, reflected at the bounds."""
    up = np.where(rng.random(genomes.shape) < 0.5, 1, -1)
    up = np.where(genomes + up > space.high, -1, np.where(genomes + up < space.low, 1, up))
    return np.where(which & (space.high > space.low), genomes + up, genomes)


def pick_some(allowed: Array, chance: Array, rng: np.random.Generator) -> Array:
    """Pick one random allowed gene per genome, and each other allowed gene with probability `chance` (n, 1); (n, G)
    bool.

    Rows of `allowed` (n, G) without any True stay empty."""
    draw = rng.random(allowed.shape)
    first = np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=1)
    picked = allowed & (draw < chance)
    picked[np.arange(len(allowed)), first] = True
    return picked & allowed


def unique(scored: Scored) -> Scored:
    """Designs without repeated genomes, each at its first place."""
    return scored.take(Seen().new(scored.genomes))


def valid(scored: Scored) -> Scored:
    return scored.take(np.isfinite(scored.scores))


def part_starts(space: Space) -> PerGene:
    """(G,) bool: whether a natural part of the genome begins at the gene: a segment, or a tensor's or dimension's run
    of genes."""
    stems = [(name, gene.rpartition(".")[0]) for name, part in space.slices.items() for gene in space.names[part]]
    return np.array([i == 0 or stem != stems[i - 1] for i, stem in enumerate(stems)], dtype=bool)
