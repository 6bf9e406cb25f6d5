"""Changes of a tiling that keep it sensible: factors swap or move together, and give way where fan-out or buffers overflow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from sparsemap.pieces.contracts import Array, Tensor
from sparsemap.problem.problem import Problem

from .choices import compressed_tensors

SWAPS, FILLS, STAYS, LOOPS = 0.30, 0.12, 0.13, 0.25
"""Shares of the moves: two factors swap levels; a spatial level is filled; a tensor stays where it is during the loops of a
level; whole loops move. The others move one factor."""
FILLED = 0.8
"""Share of the guesses that fill a spatial level."""
STAYING = 0.5
"""Share of the guesses in which some tensor stays during the loops of some level."""
TRIES = 4
"""Ways to fill a spatial level of which the fullest is taken."""


def vary_tiling(genes: Array, problem: Problem, dims: Array, primes: Array, rng: np.random.Generator) -> Array:
    """A neighbour of every tiling, (g, B): a factor moves to another level, or swaps with one there; so do whole loops;
    or factors from anywhere fill a spatial level.

    `dims` (g,) is the dimension of every factor, `primes` (g,) what it is.
    """
    count, batch = genes.shape
    levels = len(problem.mapping_levels)
    changed = genes.copy()
    if count == 0 or levels < 2:
        return changed
    rows = np.arange(batch)
    kind = rng.random(batch)
    first = rng.integers(0, count, size=(batch,))
    before = genes[first, rows]
    target = 1 + (before - 1 + rng.integers(1, levels, size=batch)) % levels
    # a swap partner: the factor with the largest random key among those on another level
    keys = np.where(genes != before, rng.random(genes.shape), -1.0)
    second = keys.argmax(axis=0)
    swap = (kind < SWAPS) & (keys[second, rows] >= 0.0)
    other = genes[second, rows]
    changed[first, rows] = np.where(swap, other, target)
    changed[second[swap], rows[swap]] = before[swap]
    loops = np.flatnonzero(kind >= 1.0 - LOOPS)
    if loops.size:
        changed[:, loops] = _move_loops(genes[:, loops], dims, first[loops], target[loops], rng)
    spatial = [index for index, level in enumerate(problem.mapping_levels) if level.spatial and level.limit > 1]
    fills = (kind >= SWAPS) & (kind < SWAPS + FILLS)
    which = rng.integers(0, max(len(spatial), 1), size=batch)
    for at, index in enumerate(spatial):
        rows = np.flatnonzero(fills & (which == at))
        if rows.size:
            emptied = rng.random(rows.size) < 0.3
            changed[:, rows] = _filled(genes[:, rows], index, problem, dims, primes, emptied, rng)
    stays = np.flatnonzero((kind >= SWAPS + FILLS) & (kind < SWAPS + FILLS + STAYS))
    changed[:, stays] = _staying(genes[:, stays], problem, dims, rng)
    return changed


def _staying(genes: Array, problem: Problem, dims: Array, rng: np.random.Generator) -> Array:
    """A random tensor stays during the loops in time of a random level: those that move it go to the next level outside, or
    to the next one inside, where the loops that do not move it may come in return."""
    count, levels = genes.shape[1], sorted(_temporal(problem).items())
    places = np.array([index + 1 for _, index in levels])
    moves = np.array([[dim in tensor.dims for dim in problem.dims] for tensor in problem.tensors])
    mine = moves[rng.integers(0, len(moves), size=count)][:, dims].T  # (g, B)
    level, kind = rng.integers(0, len(places), size=count), rng.random(count)
    outwards = (kind < 0.4) & (level > 0) | (level == len(places) - 1)
    here, other = places[level], places[np.clip(level + np.where(outwards, -1, 1), 0, len(places) - 1)]
    returns = ~mine & (genes == other) & ~outwards & (kind > 0.7)
    return np.where(mine & (genes == here), other, np.where(returns, here, genes))


def _filled(
    genes: Array, index: int, problem: Problem, dims: Array, primes: Array, emptied: Array, rng: np.random.Generator
) -> Array:
    """Factors come to a spatial level while they fit, dimension after dimension; where it is `emptied` (B,) before, its own
    go elsewhere."""
    levels, limit, (_, count) = len(problem.mapping_levels), problem.mapping_levels[index].limit, genes.shape
    here = index + 1
    genes = np.where(emptied & (genes == here), rng.integers(1, levels + 1, size=count), genes)
    tried = np.repeat(genes, TRIES, axis=1)
    factors, there = primes.astype(np.float64), tried == here
    used = np.where(there, factors[:, None], 1.0).prod(axis=0)
    keys = rng.random((len(problem.dims), tried.shape[1]))[dims] + 0.3 * rng.random(tried.shape)
    order = keys.argsort(axis=0)
    comes = ~np.take_along_axis(there, order, axis=0)
    for fits, more in zip(comes, factors[order], strict=True):
        fits &= used * more <= limit
        np.multiply(used, more, out=used, where=fits)
    gene, row = np.nonzero(comes)
    tried[order[gene, row], row] = here
    return tried[:, np.arange(count) * TRIES + used.reshape(-1, TRIES).argmax(axis=1)]


def _move_loops(genes: Array, dims: Array, first: Array, target: Array, rng: np.random.Generator) -> Array:
    """All factors of a dimension that are on the level of its factor `first` (B,) move to `target` (B,).

    The loop of the same dimension there comes back in return (3 of 10), or that of another dimension (5 of 10), or none.
    """
    before = genes[first, np.arange(genes.shape[1])]
    there, own = genes == target, dims[:, None] == dims[first]
    keys = np.where(there & ~own, rng.random(genes.shape), -1.0)
    other = (dims[:, None] == dims[keys.argmax(axis=0)]) & (keys.max(axis=0) >= 0.0)
    kind = rng.random(genes.shape[1])
    returns = there & ((own & (kind < 0.3)) | (other & (kind >= 0.3) & (kind < 0.8)))
    return np.where(own & (genes == before), target, np.where(returns, before, genes))


def guess_tiling(count: int, problem: Problem, dims: Array, primes: Array, rng: np.random.Generator) -> Array:
    """Tilings (g, count) whose dimensions have loops on one to three levels, and mostly full spatial levels."""
    levels, rows = len(problem.mapping_levels), np.arange(count)
    genes = np.empty((len(dims), count), dtype=np.int64)
    for dim in range(len(problem.dims)):
        mine = np.flatnonzero(dims == dim)
        few = rng.integers(1, levels + 1, size=(3, count))  # the same one twice: a loop on fewer levels
        genes[mine] = few[rng.integers(0, 3, size=(len(mine), count)), rows]
    for index, level in enumerate(problem.mapping_levels):
        if not level.spatial:
            continue
        filled = np.flatnonzero(rng.random(count) < FILLED)
        genes[:, filled] = _filled(genes[:, filled], index, problem, dims, primes, np.ones(filled.size, bool), rng)
    stays = np.flatnonzero(rng.random(count) < STAYING)
    genes[:, stays] = _staying(genes[:, stays], problem, dims, rng)
    return genes


def repair_tiling(
    genes: Array, problem: Problem, columns: Mapping[str, Array], dims: Array, primes: Array, rng: np.random.Generator
) -> Array:
    """Factors leave spatial levels that exceed their fan-out, then buffers whose tiles do not fit, in random order."""
    changed = genes.copy()
    order = rng.permutation(len(genes))
    _fit_fanout(changed, problem, primes, order)
    _fit_buffers(changed, problem, columns, dims, primes, order)
    return changed


def _temporal(problem: Problem) -> dict[int, int]:
    """The mapping level of the temporal loops of every storage level."""
    return {level.storage: i for i, level in enumerate(problem.mapping_levels) if not level.spatial}


def _fit_fanout(genes: Array, problem: Problem, primes: Array, order: Array) -> None:
    temporal = _temporal(problem)
    for index, level in enumerate(problem.mapping_levels):
        if not level.spatial:
            continue
        here = genes == index + 1
        used = np.where(here, primes[:, None].astype(np.float64), 1.0).prod(axis=0)
        for gene in order:
            over = np.flatnonzero((used > level.limit) & here[gene])
            if over.size:
                genes[gene, over] = temporal[level.storage] + 1
                used[over] /= primes[gene]


def _fit_buffers(
    genes: Array, problem: Problem, columns: Mapping[str, Array], dims: Array, primes: Array, order: Array
) -> None:
    storage = np.array([level.storage for level in problem.mapping_levels])
    spatial = np.array([level.spatial for level in problem.mapping_levels])
    temporal = _temporal(problem)  # where a factor goes that leaves the tile of the next inner level
    nonzeros, packed = _nonzeros(problem), compressed_tensors(problem, columns)
    for level in reversed(problem.levels[1:]):
        if level.capacity_bits is None:
            continue
        room = np.floor(level.capacity_bits / level.word_bits)
        inside = storage[genes - 1] >= level.index
        extent = np.ones((len(problem.dims), genes.shape[1]))
        for gene in range(len(genes)):
            extent[dims[gene]] *= np.where(inside[gene], float(primes[gene]), 1.0)
        needed = _tile_words(problem, level.index, extent, nonzeros, packed)
        left = np.flatnonzero(needed > room)
        for parallel, gene in product((False, True), order):
            left = left[needed[left] > room]
            if not left.size:
                break
            over = left[inside[gene, left] & (spatial[genes[gene, left] - 1] == parallel)]
            if not over.size:
                continue
            genes[gene, over] = temporal[level.index - 1] + 1
            extent[dims[gene], over] /= primes[gene]
            smaller = None if packed is None else packed[:, over]
            needed[over] = _tile_words(problem, level.index, extent[:, over], nonzeros, smaller)


def _nonzeros(problem: Problem) -> list[float]:
    """Nonzeros per tensor, in the scenario with most."""

    def of(tensor: Tensor) -> float:
        shape = tensor.shape(problem.sizes)
        return float(np.ceil(tensor.density.occupancy(shape).density * math.prod(map(float, shape))))

    def count() -> list[float]:
        fitted = [problem, *(scenario.problem for scenario in problem.scenarios.values() if scenario.must_fit)]
        return [max(map(of, same)) for same in zip(*(x.tensors for x in fitted), strict=True)]

    return problem.remember((_nonzeros,), count)


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
