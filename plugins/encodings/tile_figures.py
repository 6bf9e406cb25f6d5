"""What moves and repair of tilings ask of a problem, as arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sparsemap.pieces.contracts import Array, Tensor
from sparsemap.problem.problem import Problem

from .choices import moving

SWAPS, FILLS, STAYS, LOOPS = 0.30, 0.12, 0.13, 0.25
"""Shares of the moves: two factors swap levels; a spatial level is filled; a tensor stays where it is during the loops of a
level; whole loops move. The others move one factor."""
ENDS = np.array([SWAPS, SWAPS + FILLS, SWAPS + FILLS + STAYS, 1.0 - LOOPS])
"""Where these end, and where loops begin, of a number from 0 to 1."""
FILLED = 0.8
"""Share of the guesses that fill a spatial level."""
STAYING = 0.5
"""Share of the guesses in which some tensor stays during the loops of some level."""


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


def figures_of(problem: Problem) -> tuple[Array, ...]:
    """What a plan of `moves.c` asks, beside the factors."""
    known = Levels.of(problem)
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
        np.array([*ENDS, FILLED, STAYING]), *known,
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
