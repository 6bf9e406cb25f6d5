"""Numbers of mutations, choice of mates, and inheritance from both parents."""

from __future__ import annotations

import numpy as np

from sparsemap.inner.arrays import powers
from sparsemap.pieces.contracts import Array, Genomes, PerDesign


def times(ends: Array, again: float, count: int, rng: np.random.Generator) -> tuple[Array, PerDesign]:
    """Numbers of applications (m, count) of m mutations to each of `count` genomes, and the first mutation of each
    genome."""
    found = np.zeros((len(ends), count), dtype=np.int64)
    first = now = ends.searchsorted(rng.random(count), side="right")
    active = np.arange(count)
    while active.size:
        found[now, active] += 1
        active = active[rng.random(active.size) < again]
        now = ends.searchsorted(rng.random(active.size), side="right")
    return found, first


def cross(pairs: Genomes, ends: Array, rng: np.random.Generator) -> Genomes:
    """Children (n, G) of pairs (n, 2, G), half of them by whole segments, with segment ends `ends` (s,)."""
    count, genes = len(pairs), pairs.shape[2]
    by_segment = np.zeros((count, genes), dtype=bool)
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        by_segment[:, start:end] = (rng.random(count) < 0.5)[:, None]
    by_gene = rng.random((count, genes)) < 0.5
    whole = (rng.random(count) < 0.5)[:, None]
    return np.where(np.where(whole, by_segment, by_gene), pairs[:, 0], pairs[:, 1])


def pick(genomes: Genomes, count: int, greed: float, rng: np.random.Generator) -> Genomes:
    """Pairs (count, 2, G) of genomes, sorted best first, each drawn at relative place u ** greed."""
    first, second = places(len(genomes), rng.random((2, count)), greed)
    return np.stack([genomes[first], genomes[second]], axis=1)


def places(known: int, drawn: Array, greed: float) -> Array:
    """Places of parents among `known` genomes, best first, from random numbers below 1 of any shape."""
    return np.minimum((known * powers(drawn, greed)).astype(np.int64), known - 1)
