"""Steps of mechanisms in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array

from .choices import compressed_tensors

if TYPE_CHECKING:
    from .choices import GateSkip


def repair(
    segment: GateSkip, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator
) -> Array:
    compressed = compressed_tensors(problem, columns)
    if compressed is None:
        return genes
    decoded = columns.get("decoded")
    changed = segment.built(genes, problem).copy()
    owned = problem.remember((repair, "owned", segment), lambda: segment.owned(problem))
    for place, table in enumerate(problem.remember((repair, segment), lambda: segment.needs(problem))):
        packed = compressed
        if decoded is not None:
            level = problem.places[place].storage
            packed = packed & (decoded > (len(problem.levels) - 1 if level is None else level))
        lacking = np.flatnonzero((table[changed[place]].T & ~packed).any(axis=0))
        if not lacking.size:
            continue
        possible = ~(table[:, :, None] & ~packed[None, :, lacking]).any(axis=1)
        if owned is not None:
            possible &= owned[place][:, None]
        keys = np.where(possible, rng.random(possible.shape), -1.0)
        best = keys.argmax(axis=0)
        found = keys[best, np.arange(len(lacking))] >= 0.0
        changed[place, lacking[found]] = best[found]
    return changed


def canonical(segment: GateSkip, genes: Array, problem: Problem) -> Array:
    table = problem.remember((canonical, segment), lambda: segment.first_alike(problem))
    genes = segment.built(genes, problem)
    alike = np.take_along_axis(table, genes, axis=1)
    return np.where(segment.built(alike, problem) == alike, alike, genes)
