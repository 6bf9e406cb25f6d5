"""Changes of a tiling that keep it sensible: factors swap or move together, and give way where fan-out or buffers overflow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sparsemap.pieces.contracts import Array, Tensor
from sparsemap.problem.problem import Problem

from .choices import compiled, compressed_tensors, moving

SWAPS, FILLS, STAYS, LOOPS = 0.30, 0.12, 0.13, 0.25
"""Shares of the moves: two factors swap levels; a spatial level is filled; a tensor stays where it is during the loops of a
level; whole loops move. The others move one factor."""
ENDS = np.array([SWAPS, SWAPS + FILLS, SWAPS + FILLS + STAYS, 1.0 - LOOPS])
"""Where these end, and where loops begin, of a number from 0 to 1."""
FILLED = 0.8
"""Share of the guesses that fill a spatial level."""
STAYING = 0.5
"""Share of the guesses in which some tensor stays during the loops of some level."""
TRIES = 4
"""Ways to fill a spatial level of which the fullest is taken."""
DRAWN = 6
"""Numbers drawn for each move, beside those of its factors: kind, factor, level, and three that each kind takes its own way."""


class Levels(NamedTuple):
    """What moves ask of the mapping levels of a problem."""

    spatial: Array  # (n,) those over instances, where there are several ..
    limits: Array  # .. and the fan-outs
    temporal: Array  # (S,) by storage level, the gene of loops in time
    moves: Array  # (T, D) bool, whether a dimension moves a tensor

    @classmethod
    def of(cls, problem: Problem) -> Levels:
        return problem.remember((cls,), lambda: cls._made(problem))

    @classmethod
    def _made(cls, problem: Problem) -> Levels:
        several = [i for i, level in enumerate(problem.mapping_levels) if level.spatial and level.limit > 1]
        return cls(
            np.array(several, dtype=np.int64),
            np.array([problem.mapping_levels[i].limit for i in several], dtype=np.float64),
            np.array([index + 1 for _, index in sorted(temporal_genes(problem).items())], dtype=np.int64),
            moving(problem),
        )


def vary_tiling(genes: Array, problem: Problem, dims: Array, primes: Array, rng: np.random.Generator) -> Array:
    """A neighbour of every tiling, (g, B): a factor moves to another level, or swaps with one there; so do whole loops;
    or factors from anywhere fill a spatial level.

    `dims` (g,) is the dimension of every factor, `primes` (g,) what it is, float64.
    """
    (count, batch), levels, changed = genes.shape, len(problem.mapping_levels), genes.copy()
    if count == 0 or levels < 2:
        return changed
    known = Levels.of(problem)
    drawn = rng.random((DRAWN + count, batch))
    fills = np.flatnonzero((drawn[0] >= ENDS[0]) & (drawn[0] < ENDS[1]))
    ways = rng.random((len(problem.dims) + count, TRIES * fills.size))
    given = changed, dims, primes, drawn, ways, ENDS, known.spatial, known.limits, known.temporal, known.moves, levels
    if compiled is None or compiled.vary(*given) is None:
        from .plain_moves import varied

        varied(changed, problem, dims, primes, drawn, ways)
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
    here, limit, changed = index + 1, problem.mapping_levels[index].limit, genes.copy()
    if compiled is not None and compiled.filled(changed, dims, primes, away, ways, here, limit) is not None:
        return changed
    from .plain_moves import filled

    return filled(genes, dims, primes, away, ways, here, limit)


def guess_tiling(count: int, problem: Problem, dims: Array, primes: Array, rng: np.random.Generator) -> Array:
    """Tilings (g, count) whose dimensions have loops on one to three levels, and mostly full spatial levels."""
    levels, rows = len(problem.mapping_levels), np.arange(count)
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


def repair_tiling(
    genes: Array, problem: Problem, columns: Mapping[str, Array], dims: Array, primes: Array, rng: np.random.Generator
) -> Array:
    """Factors leave spatial levels that exceed their fan-out, then buffers whose tiles do not fit, in random order."""
    changed, order, packed = genes.copy(), rng.permutation(len(genes)), compressed_tensors(problem, columns)
    if compiled is not None:
        figures = problem.remember((repair_tiling,), lambda: _figures(problem))
        some = np.zeros((len(problem.tensors), 0), dtype=bool) if packed is None else np.ascontiguousarray(packed)
        if compiled.fit(changed, dims, primes, order, *figures, some, len(problem.dims)) is not None:
            return changed
    from .plain_moves import fit_buffers, fit_fanout

    fit_fanout(changed, problem, primes, order)
    fit_buffers(changed, problem, packed, dims, primes, order)
    return changed


def _figures(problem: Problem) -> tuple[Array, ...]:
    """What `fit` in `moves.c` asks of a problem."""
    temporal, levels, tensors = temporal_genes(problem), problem.mapping_levels, problem.tensors
    fanouts = [(i + 1, level.limit, temporal[level.storage] + 1) for i, level in enumerate(levels) if level.spatial]
    buffers = [(x, bits) for x in reversed(problem.levels[1:]) if (bits := x.capacity_bits) is not None]
    rooms = [(x.index, np.floor(bits / x.word_bits), temporal[x.index - 1] + 1) for x, bits in buffers]
    ranks = [(t, r, rank) for t, tensor in enumerate(tensors) for r, rank in enumerate(tensor.ranks)]
    terms = [(t, r, problem.dims.index(dim), factor) for t, r, rank in ranks for dim, factor in rank]
    copies, nonzeros = problem.cost_model.copies(problem), nonzeros_of(problem)
    stored = [
        (problem.resident.get((t, x.index), np.nan), nonzeros[t], 1.0 if copies is None else copies[t, x.index])
        if problem.stores(t, x.index) else (0.0, 0.0, 0.0)
        for x, _ in buffers for t in range(len(tensors))
    ]  # fmt: skip
    return (
        np.array(fanouts, dtype=np.float64).reshape(-1, 3), np.array([level.spatial for level in levels], dtype=bool),
        np.array([level.storage for level in levels], dtype=np.int64), np.array(rooms, dtype=np.float64).reshape(-1, 3),
        np.array(terms, dtype=np.int64).reshape(-1, 4), np.array(stored, dtype=np.float64).reshape(-1, len(tensors), 3),
    )  # fmt: skip


def temporal_genes(problem: Problem) -> dict[int, int]:
    """The mapping level of the temporal loops of every storage level."""
    return {level.storage: i for i, level in enumerate(problem.mapping_levels) if not level.spatial}


def nonzeros_of(problem: Problem) -> list[float]:
    """Nonzeros per tensor, in the scenario with most."""

    def of(tensor: Tensor) -> float:
        shape = tensor.shape(problem.sizes)
        return float(np.ceil(tensor.density.occupancy(shape).density * math.prod(map(float, shape))))

    def count() -> list[float]:
        fitted = [problem, *(scenario.problem for scenario in problem.scenarios.values() if scenario.must_fit)]
        return [max(map(of, same)) for same in zip(*(x.tensors for x in fitted), strict=True)]

    return problem.remember((nonzeros_of,), count)
