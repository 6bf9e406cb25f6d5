"""What `moves.c` does to tilings, in NumPy: the same, where it was not compiled."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from sparsemap.pieces.contracts import Array
from sparsemap.problem.problem import Problem

from .tile_moves import DRAWN, ENDS, TRIES, Levels, filled_levels, nonzeros_of, staying, temporal_genes


def varied(changed: Array, problem: Problem, dims: Array, primes: Array, drawn: Array, ways: Array) -> None:
    """`vary_tiling` by what was drawn, in place."""
    genes, known, levels = changed.copy(), Levels.of(problem), len(problem.mapping_levels)
    count, batch = changed.shape
    kind, keys = drawn[0], drawn[DRAWN:]
    fills = np.flatnonzero((kind >= ENDS[0]) & (kind < ENDS[1]))
    rows = np.arange(batch)
    first = (drawn[1] * count).astype(np.int64)
    before = genes[first, rows]
    target = 1 + (before + (drawn[2] * (levels - 1)).astype(np.int64)) % levels
    # a swap partner: the factor with the largest random key among those on another level
    others = np.where(genes != before, keys, -1.0)
    second = others.argmax(axis=0)
    swap = (kind < ENDS[0]) & (others[second, rows] >= 0.0)
    changed[first, rows] = np.where(swap, genes[second, rows], target)
    changed[second[swap], rows[swap]] = before[swap]
    loops = np.flatnonzero(kind >= ENDS[3])
    changed[:, loops] = _move_loops(genes[:, loops], dims, first[loops], target[loops], keys[:, loops], drawn[4, loops])
    which = (drawn[3, fills] * len(known.spatial)).astype(np.int64)
    away = np.where(drawn[4, fills] < 0.3, 1 + (drawn[5, fills] * levels).astype(np.int64), 0)
    for at, index in enumerate(known.spatial):
        mine = np.flatnonzero(which == at)
        own, given = ways[:, (mine[:, None] * TRIES + np.arange(TRIES)).ravel()], genes[:, fills[mine]]
        changed[:, fills[mine]] = filled_levels(given, int(index), problem, dims, primes, away[mine], own)
    stays = np.flatnonzero((kind >= ENDS[1]) & (kind < ENDS[2]))
    changed[:, stays] = staying(genes[:, stays], problem, dims, drawn[3:, stays])


def filled(genes: Array, dims: Array, primes: Array, away: Array, ways: Array, here: int, limit: float) -> Array:
    """`filled_levels` of the level of the gene `here`."""
    count, D = genes.shape[1], len(ways) - len(genes)
    genes = np.where((away > 0) & (genes == here), away, genes)
    tried = np.repeat(genes, TRIES, axis=1)
    there = tried == here
    used = np.where(there, primes[:, None], 1.0).prod(axis=0)
    order = (ways[:D][dims] + 0.3 * ways[D:]).argsort(axis=0)
    comes = ~np.take_along_axis(there, order, axis=0)
    for fits, more in zip(comes, primes[order], strict=True):
        fits &= used * more <= limit
        np.multiply(used, more, out=used, where=fits)
    gene, row = np.nonzero(comes)
    tried[order[gene, row], row] = here
    return tried[:, np.arange(count) * TRIES + used.reshape(-1, TRIES).argmax(axis=1)]


def _move_loops(genes: Array, dims: Array, first: Array, target: Array, keys: Array, kind: Array) -> Array:
    """All factors of a dimension that are on the level of its factor `first` (B,) move to `target` (B,).

    The loop of the same dimension there comes back in return (3 of 10), or that of another dimension (5 of 10), or none:
    `keys` (g, B) and `kind` (B,) are drawn.
    """
    before = genes[first, np.arange(genes.shape[1])]
    there, own = genes == target, dims[:, None] == dims[first]
    keys = np.where(there & ~own, keys, -1.0)
    other = (dims[:, None] == dims[keys.argmax(axis=0)]) & (keys.max(axis=0) >= 0.0)
    returns = there & ((own & (kind < 0.3)) | (other & (kind >= 0.3) & (kind < 0.8)))
    return np.where(own & (genes == before), target, np.where(returns, before, genes))


def fit_fanout(genes: Array, problem: Problem, primes: Array, order: Array) -> None:
    temporal = temporal_genes(problem)
    for index, level in enumerate(problem.mapping_levels):
        if not level.spatial:
            continue
        here = genes == index + 1
        used = np.where(here, primes[:, None], 1.0).prod(axis=0)
        for gene in order:
            over = np.flatnonzero((used > level.limit) & here[gene])
            if over.size:
                genes[gene, over] = temporal[level.storage] + 1
                used[over] /= primes[gene]


def fit_buffers(genes: Array, problem: Problem, packed: Array | None, dims: Array, primes: Array, order: Array) -> None:
    storage = np.array([level.storage for level in problem.mapping_levels])
    spatial = np.array([level.spatial for level in problem.mapping_levels])
    temporal = temporal_genes(problem)  # where a factor goes that leaves the tile of the next inner level
    nonzeros = nonzeros_of(problem)
    for level in reversed(problem.levels[1:]):
        if level.capacity_bits is None:
            continue
        room = np.floor(level.capacity_bits / level.word_bits)
        inside = storage[genes - 1] >= level.index
        extent = np.ones((len(problem.dims), genes.shape[1]))
        for gene in range(len(genes)):
            extent[dims[gene]] *= np.where(inside[gene], primes[gene], 1.0)
        needed = _tile_words(problem, level.index, extent, nonzeros, packed)
        for parallel, gene in product((False, True), order):
            over = np.flatnonzero((needed > room) & inside[gene] & (spatial[genes[gene] - 1] == parallel))
            if not over.size:
                continue
            genes[gene, over] = temporal[level.index - 1] + 1
            extent[dims[gene], over] /= primes[gene]
            smaller = None if packed is None else packed[:, over]
            needed[over] = _tile_words(problem, level.index, extent[:, over], nonzeros, smaller)


def _tile_words(problem: Problem, level: int, extent: Array, nonzeros: list[float], packed: Array | None) -> Array:
    """Words that a level needs at most for its tiles of all tensors, (B,)."""
    extents = dict(zip(problem.dims, extent, strict=True))
    copies = problem.remember((_tile_words,), lambda: problem.cost_model.copies(problem))
    total: Any = 0.0
    for t, tensor in enumerate(problem.tensors):
        if not problem.stores(t, level):
            continue
        words: Any = problem.resident.get((t, level), math.prod(tensor.shape(extents)))
        if packed is not None:
            words = np.where(packed[t], np.minimum(words, nonzeros[t]), words)
        total = total + (words if copies is None else words * copies[t, level])
    return np.broadcast_to(np.asarray(total, dtype=np.float64), extent.shape[1:]).copy()
