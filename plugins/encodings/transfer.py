"""Designs of one problem rewritten for another: the same orders and inner tiles, and choices by name.

Dimensions match by name; others lie in the outermost level, at their place in the workload."""

from __future__ import annotations

import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array, Piece
from sparsemap.primes import divisors, prime_factors
from sparsemap.problem.designs import Designs
from sparsemap.problem.similarity import pairs

from .choices import stationary


def moved_order(designs: Designs, source: Problem, target: Problem) -> Array | None:
    """(L, D', B) int8 orders of the target: loops of common dimensions keep their order; None: the designs have none."""
    if "order" not in designs.columns:
        return None
    order = designs.columns["order"]
    levels, _, batch = order.shape
    place = {dim: i for i, dim in enumerate(target.dims)}
    moved = np.empty((levels, len(place), batch), dtype=np.int8)
    for level in range(levels):
        for row in range(batch):
            known = [source.dims[axis] for axis in order[level, :, row]]
            dims = [dim for dim in known if dim in place]
            for dim in target.dims:
                if dim not in dims:
                    dims.insert(place[dim], dim)
            moved[level, :, row] = [place[dim] for dim in dims]
    return moved


def moved_bounds(
    designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
) -> Array | None:
    """(L, D', B) bounds of the target, with `fill` in spatial levels left empty; None: the designs have no loops."""
    if "bounds" not in designs.columns:
        return None
    bounds = scaled_bounds(designs.columns["bounds"], source, target)
    bounds, stays = filled_bounds(bounds, target, rng) if fill else bounds, stationary(target)
    return stays.bounds(bounds) if stays else bounds


def scaled_bounds(bounds: Array, source: Problem, target: Problem) -> Array:
    """(L, D, B) -> (L, D', B): from the innermost level, the largest fitting divisors up to the source's bounds."""
    levels, _, batch = bounds.shape
    scaled = np.ones((levels, len(target.dims), batch))
    for axis, (dim, size) in enumerate(target.sizes.items()):
        for row in range(batch):
            left = size
            for level in range(levels - 1, 0, -1):
                if dim in source.dims:
                    most = bounds[level, source.dims.index(dim), row]
                    factor = max(divisor for divisor in divisors(left) if divisor <= most)
                    scaled[level, axis, row] = factor
                    left //= factor
            scaled[0, axis, row] = left
    return scaled


def filled_bounds(bounds: Array, problem: Problem, rng: np.random.Generator) -> Array:
    """(L, D, B) -> (L, D, B): move prime factors, largest first, into spatial levels with room; ties at random."""
    filled = bounds.copy()
    spatial = [(i, level.limit) for i, level in enumerate(problem.mapping_levels) if level.spatial]
    temporal = [i for i, level in enumerate(problem.mapping_levels) if not level.spatial]
    for row in range(bounds.shape[2]):
        mine = filled[:, :, row]
        factors = [(p, i, d) for i in temporal for d, bound in enumerate(mine[i]) for p in prime_factors(int(bound))]
        order = sorted(rng.permutation(len(factors)).tolist(), key=lambda place: -factors[place][0])
        for level, limit in spatial:
            used, rest = mine[level].prod(), []
            for place in order:
                prime, origin, dim = factors[place]
                if used * prime <= limit:
                    mine[origin, dim] /= prime
                    mine[level, dim] *= prime
                    used *= prime
                else:
                    rest.append(place)
            order = rest
    return filled


def moved_formats(
    designs: Designs, source: Problem, target: Problem, here: tuple[Piece, ...], guess: Array, slots: int
) -> Array | None:
    """(T' * R', B) positions in the candidates `here`: tensors match by role, ranks from the innermost; further slots
    repeat the outermost format. None: the designs have no formats."""
    if "formats" not in designs.columns:
        return None
    column, there = designs.columns["formats"], source.candidates("format")
    own_slots = np.maximum(np.arange(slots) + column.shape[1] - slots, 0)
    moved = guess.reshape(len(target.tensors), slots, -1).copy()
    for given, own in pairs(source.loops, target.loops):
        moved[own] = _by_name(column[given, own_slots], there, here, moved[own])
    return moved.reshape(guess.shape)


def moved_mechanisms(
    designs: Designs, source: Problem, target: Problem, here: tuple[Piece, ...], guess: Array
) -> Array | None:
    """(A', B) positions in the candidates `here`, at places of the same name; None: the designs have no mechanisms."""
    if "mechanisms" not in designs.columns:
        return None
    moved, there, names = guess.copy(), source.candidates("mechanism"), [place.name for place in source.places]
    for own, place in enumerate(target.places):
        if place.name in names:
            moved[own] = _by_name(designs.columns["mechanisms"][names.index(place.name)], there, here, moved[own])
    return moved


def _by_name(column: Array, there: tuple[Piece, ...], here: tuple[Piece, ...], guess: Array) -> Array:
    """Positions in the candidates `there` -> positions of equal names in `here`; the guess for missing names."""
    names = [piece.name for piece in here]
    table = np.array([names.index(piece.name) if piece.name in names else -1 for piece in there], dtype=np.int64)
    found = table[column]
    return np.where(found < 0, guess, found)
