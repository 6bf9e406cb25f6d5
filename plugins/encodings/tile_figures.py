"""Problem figures for moves and repair of tilings, as one record (`inner/tile_facts.py`)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from sparsemap.pieces.contracts import Array, Tensor
from sparsemap.problem.problem import Problem

from .choices import moving
from .inner import functions

_wholes, _reals = partial(np.array, dtype=np.int64), partial(np.array, dtype=np.float64)


def facts_of(problem: Problem, dims: Array, factors: Array) -> Any:
    """`TileFacts` with room for one design, for factors (g,) of dimensions (g,)."""
    levels, tensors, facts = problem.mapping_levels, problem.tensors, functions.TileFacts()
    temporal = {level.storage: i + 1 for i, level in enumerate(levels) if not level.spatial}
    spatial = [i + 1 for i, level in enumerate(levels) if level.spatial]
    several = [i for i in spatial if levels[i - 1].limit > 1]
    buffers = [(x, bits) for x in reversed(problem.levels[1:]) if (bits := x.capacity_bits) is not None]
    ranks = [(t, r, rank) for t, tensor in enumerate(tensors) for r, rank in enumerate(tensor.ranks)]
    copies, nonzeros = problem.cost_model.copies(problem), nonzeros_of(problem)
    widths = problem.widths(problem.chip)
    stored = [
        (problem.resident.get((t, x.index), -1.0), nonzeros[t],
         widths[t, x.index] * (1.0 if copies is None else copies[t, x.index]))
        if problem.stores(t, x.index) else (0.0, 0.0, 0.0)
        for x, _ in buffers for t in range(len(tensors))
    ]  # fmt: skip
    facts.dims, facts.factors = dims, factors
    facts.storage = _wholes([level.storage for level in levels])
    facts.parallel = np.array([level.spatial for level in levels], dtype=np.uint8)
    facts.temporal = _wholes([level for _, level in sorted(temporal.items())])
    facts.moves = moving(problem)
    facts.spatial, facts.limits = _wholes(several), _reals([levels[i - 1].limit for i in several])
    facts.fans = _wholes([(i, temporal[levels[i - 1].storage]) for i in spatial]).reshape(-1, 2)
    facts.fan_limits = _reals([levels[i - 1].limit for i in spatial])
    facts.rooms = _wholes([(x.index, temporal[x.index - 1]) for x, _ in buffers]).reshape(-1, 2)
    facts.room_words = np.floor(_reals([bits / x.word_bits for x, bits in buffers]))
    terms = [(t, r, problem.dims.index(dim), factor) for t, r, rank in ranks for dim, factor in rank]
    facts.terms = _wholes(terms).reshape(-1, 4)
    facts.stored = _reals(stored).reshape(-1, len(tensors), 3)
    facts.row, facts.waits, facts.key = np.zeros_like(dims), np.zeros_like(dims), np.zeros_like(factors)
    facts.comes, facts.kept = np.zeros(len(dims), dtype=np.uint8), np.zeros(len(dims), dtype=np.uint8)
    facts.extent, facts.words = np.zeros(len(problem.dims)), np.zeros(len(tensors))
    return facts


def nonzeros_of(problem: Problem) -> list[float]:
    """Nonzeros per tensor, in the scenario with the most."""

    def of(tensor: Tensor) -> float:
        shape = tensor.shape(problem.sizes)
        return float(np.ceil(tensor.density.occupancy(shape).density * math.prod(map(float, shape))))

    fitted = [problem, *(scenario.problem for scenario in problem.scenarios.values() if scenario.must_fit)]
    return [max(map(of, same)) for same in zip(*(x.tensors for x in fitted), strict=True)]
