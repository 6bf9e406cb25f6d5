"""Small array helpers that the operators share. Shapes: n genomes of G genes, all int64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts import Array, Scored

if TYPE_CHECKING:
    from sparsemap.problem.space import Space


def new_values(genomes: Array, which: Array, space: Space, rng: np.random.Generator) -> Array:
    """Genomes with the genes marked in `which` (n, G) bool set to another value, uniform over the other values."""
    ranges = space.high - space.low + 1
    shift = rng.integers(1, np.maximum(ranges, 2), size=genomes.shape)
    moved = space.low + (genomes - space.low + shift) % ranges
    return np.where(which & (ranges > 1), moved, genomes)


def steps(genomes: Array, which: Array, space: Space, rng: np.random.Generator) -> Array:
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
    _, first = np.unique(scored.genomes, axis=0, return_index=True)
    return scored if len(first) == len(scored) else scored.take(np.sort(first))


def valid(scored: Scored) -> Scored:
    return scored.take(np.isfinite(scored.scores))


def part_starts(space: Space) -> Array:
    """(G,) bool, where a natural part of the genome begins: a segment, or a tensor's or dimension's run of genes."""
    names = space.names
    starts = np.zeros(len(names), dtype=bool)
    for part in space.slices.values():
        stems = [name.rpartition(".")[0] for name in names[part]]
        inside = [i > 0 and stem != stems[i - 1] for i, stem in enumerate(stems)]
        starts[part] = inside
        if stems:
            starts[part.start] = True
    return starts
