"""Steps of formats in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array
from sparsemap.problem.designs import slots_used

from .choices import compressing, moving

if TYPE_CHECKING:
    from .choices import RankFormats


def vary(segment: RankFormats, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
    flags, _ = segment.kinds(problem)
    tensors, batch, changed = len(problem.tensors), genes.shape[1], genes.copy()
    kind = rng.random(batch)
    ends = (0, tensors), (0, segment.slots), (0, len(flags)), (1, max(2, tensors))
    chosen, position, value, step = (rng.integers(low, high, size=batch) for low, high in ends)
    slots, rows = genes.reshape(tensors, segment.slots, batch), np.arange(batch)
    mine = slots[chosen, :, rows].T  # (slots, B)
    place = np.arange(segment.slots)[:, None]
    here, inside = place == position, place >= position
    fill = np.where(flags[value], inside, ~inside | (position == 0))
    other = slots[(chosen + step) % tensors, :, rows].T
    mine = np.where(kind < 0.4, np.where(here, value, mine), np.where(fill, value, mine))
    mine = np.where(kind > 0.9, other, mine)
    changed.reshape(slots.shape)[chosen, :, rows] = mine.T
    return changed


def guess(segment: RankFormats, count: int, problem: Problem, rng: np.random.Generator) -> Array:
    flags = compressing(segment.choices(problem)["format"])
    shape = (len(problem.tensors), 1, count)
    inner = rng.integers(0, len(flags), size=shape)
    plain = np.flatnonzero(~flags)
    above = plain[rng.integers(0, len(plain), size=shape)] if plain.size else inner
    first = np.where(rng.random(shape) < 0.5, segment.slots - 1, rng.integers(0, segment.slots, size=shape))
    slots = np.where(np.arange(segment.slots)[:, None] >= first, inner, above)
    return slots.reshape(len(problem.tensors) * segment.slots, count)


def repair(segment: RankFormats, genes: Array, problem: Problem) -> Array:
    genes = segment.built(genes, problem).copy()
    compressed, strict = segment.kinds(problem)
    slots = genes.reshape(len(problem.tensors), segment.slots, -1)
    inner = slots[:, -1].copy()  # the nearest strict format inside, or any other if there is none
    for slot in range(segment.slots - 2, -1, -1):
        slots[:, slot] = np.where(compressed[slots[:, slot]] & strict[inner], inner, slots[:, slot])
        inner = np.where(strict[inner] & ~strict[slots[:, slot]], inner, slots[:, slot])
    return slots.reshape(genes.shape)


def canonical(segment: RankFormats, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
    genes, bounds = segment.built(genes, problem).copy(), columns["bounds"]
    moves = moving(problem)
    busy = (bounds > 1.0).sum(axis=0)  # (D, B)
    for mine, dims in zip(genes.reshape(len(moves), segment.slots, -1), moves, strict=True):
        mine *= slots_used(segment.slots, busy[dims].sum(axis=0))
    return genes
