"""Steps of tilings in NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate, groupby, pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array
from sparsemap.primes import Divisors
from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem

from .tile_figures import ENDS, FILLED, STAYING, Levels, nonzeros_of, temporal_genes

if TYPE_CHECKING:
    from .tiling import PrimeFactors

TRIES = 4
"""Ways to fill a spatial level of which the fullest is taken."""
DRAWN = 6
"""Numbers drawn for each move, beside those of its factors: kind, factor, level, and three that each kind takes its own way."""


def decode(segment: PrimeFactors, genes: Array, problem: Problem) -> Mapping[str, Array]:
    levels, (dims, primes) = len(problem.mapping_levels), segment.factors(problem)
    bounds = np.ones((levels, len(problem.dims), genes.shape[1]))
    for gene, dim, prime in zip(genes, dims, primes, strict=True):
        bounds[:, dim] *= np.where(gene == np.arange(1, levels + 1)[:, None], prime, 1.0)
    return {"bounds": bounds}


def encode(segment: PrimeFactors, designs: Designs, problem: Problem) -> Array:
    bounds = designs.columns["bounds"]
    _check(bounds, problem)
    groups, found = _groups(segment, problem), []
    for dim, size in enumerate(problem.sizes.values()):
        # by prime, from the outermost level
        found += list(Divisors.of(size).within(bounds[:-1, dim]).cumsum(axis=1))
    genes = np.ones((groups[-1].stop if groups else 0, bounds.shape[-1]), dtype=np.int64)
    for group, held in zip(groups, found, strict=True):
        place = np.arange(group.stop - group.start)[:, None, None]
        genes[group] += (held <= place).sum(axis=1)
    return genes


def canonical(segment: PrimeFactors, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
    sorted_genes = genes.copy()
    for group in _groups(segment, problem):
        sorted_genes[group].sort(axis=0)
    return sorted_genes


def _groups(segment: PrimeFactors, problem: Problem) -> list[slice]:
    """The genes of equal prime factors of one dimension."""
    runs = [len(list(same)) for _, same in groupby(zip(*segment.factors(problem), strict=True))]
    return [slice(start, stop) for start, stop in pairwise(accumulate(runs, initial=0))]


def _check(bounds: Array, problem: Problem) -> None:
    """`DesignError` unless the bounds are whole numbers that multiply up to the sizes."""
    sizes = np.array(list(problem.sizes.values()), dtype=np.float64)
    products = bounds.prod(axis=0)
    whole = ((bounds >= 1) & (bounds == np.floor(bounds))).all(axis=0)
    wrong = ~whole | (products != sizes[:, None])
    if not wrong.any():
        return
    dim, row = (int(i) for i in np.argwhere(wrong)[0])
    name, size = problem.dims[dim], int(sizes[dim])
    given = int(problem.loops.sizes[name])
    padded = f" (padded from {given})" if given != size else ""
    found = " * ".join(f"{bound:g}" for bound in bounds[:, dim, row])
    raise DesignError(
        f"design {row}: bounds of dimension '{name}' are {found} = {products[dim, row]:g}, "
        f"expected whole numbers that multiply up to {size}{padded}"
    )


def vary(segment: PrimeFactors, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
    changed, known, levels, (dims, primes) = (
        genes.copy(),
        Levels.of(problem),
        len(problem.mapping_levels),
        segment.factors(problem),
    )
    count, batch = changed.shape
    if count == 0 or levels < 2:
        return changed
    drawn = rng.random((DRAWN + count, batch))
    kind, keys = drawn[0], drawn[DRAWN:]
    fills = np.flatnonzero((kind >= ENDS[0]) & (kind < ENDS[1]))
    ways = rng.random((len(problem.dims) + count, TRIES * fills.size))
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
    return changed


def staying(genes: Array, problem: Problem, dims: Array, drawn: Array) -> Array:
    """A random tensor stays during the loops in time of a random level: those that move it go to the next level outside, or
    to the next one inside, where the loops that do not move it may come in return. `drawn` (3, B)."""
    _, _, places, moves = Levels.of(problem)
    mine = moves[(drawn[0] * len(moves)).astype(np.int64)][:, dims].T  # (g, B)
    level, kind = (drawn[1] * len(places)).astype(np.int64), drawn[2]
    outwards = (kind < 0.4) & (level > 0) | (level == len(places) - 1)
    here, other = places[level], places[np.clip(level + np.where(outwards, -1, 1), 0, len(places) - 1)]
    returns = ~mine & (genes == other) & ~outwards & (kind > 0.7)
    return np.where(mine & (genes == here), other, np.where(returns, here, genes))


def filled_levels(
    genes: Array, index: int, problem: Problem, dims: Array, primes: Array, away: Array, ways: Array
) -> Array:
    """Factors come to a spatial level while they fit, dimension after dimension, in the order of their keys `ways`
    (D + g, TRIES * B); before, its own go `away` (B,), to the level of this gene, where that is not 0."""
    count, D, here, limit = genes.shape[1], len(problem.dims), index + 1, problem.mapping_levels[index].limit
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


def guess(segment: PrimeFactors, count: int, problem: Problem, rng: np.random.Generator) -> Array:
    levels, rows, (dims, primes) = len(problem.mapping_levels), np.arange(count), segment.factors(problem)
    few = rng.integers(1, levels + 1, size=(3, len(problem.dims), count))  # the same one twice: on fewer levels
    genes = few[rng.integers(0, 3, size=(len(dims), count)), dims[:, None], rows]
    for index, level in enumerate(problem.mapping_levels):
        if not level.spatial:
            continue
        filled = np.flatnonzero(rng.random(count) < FILLED)
        away = rng.integers(1, levels + 1, size=filled.size)
        ways = rng.random((len(problem.dims) + len(dims), TRIES * filled.size))
        genes[:, filled] = filled_levels(genes[:, filled], index, problem, dims, primes, away, ways)
    stays = np.flatnonzero(rng.random(count) < STAYING)
    genes[:, stays] = staying(genes[:, stays], problem, dims, rng.random((3, stays.size)))
    return genes


def repair(
    segment: PrimeFactors, genes: Array, problem: Problem, packed: Array | None, rng: np.random.Generator
) -> Array:
    changed, order, (dims, primes) = genes.copy(), rng.permutation(len(genes)), segment.factors(problem)
    fit_fanout(changed, problem, primes, order)
    fit_buffers(changed, problem, packed, dims, primes, order)
    return changed


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
