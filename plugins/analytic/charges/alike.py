"""Operands whose tiles are alike within blocks: how many blocks a lane's part and those of its neighbours lie in."""

from __future__ import annotations

import math

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign

from ..layout import Layout


def reach_of(lay: Layout, bounds: Array) -> dict[int, list[Array]]:
    """By operand whose tiles are alike within blocks and by level, (D, n) extents of what a lane has of the temporal loops
    from there inwards; see `piece_of`."""
    found: dict[int, list[Array]] = {}
    for t in lay.alike:
        apart = reach = np.ones(bounds.shape[1:])
        levels = [reach]
        for s in range(lay.S - 1, -1, -1):
            group, here = lay.spatial[s], bounds[lay.temporal[s]]
            apart = apart if group is None else apart * bounds[group]
            reach, apart = piece_of(lay, t, reach, here, apart), apart * here
            levels.append(reach)
        found[t] = levels[::-1]
    return found


def piece_of(lay: Layout, t: int, reach: Array, bounds: Array | float, apart: Array) -> Array:
    """(D, n) extents of `bounds` pieces of operand t of `reach` each that begin `apart`: next to each other they would lie in
    fewer blocks, so that each counts as far as it goes until the next one begins, or its block ends."""
    further = np.maximum(reach, np.minimum(apart, blocks_of(lay, t)[:, None]))
    found: Array = bounds * np.where(np.asarray(bounds) > 1.0, further, reach)
    return found


def blocks_of(lay: Layout, t: int) -> Array:
    """(D,) how far a dimension moves within a block of tensor t."""
    found = np.ones(lay.D)
    for rank, words in zip(lay.ranks[t], lay.alike.get(t, (1,) * len(lay.ranks[t])), strict=True):
        for d, factor in rank:
            found[d] = max(1.0, words / factor)
    return found


def rarity(density: float) -> float:
    """The logarithm of the chance that a word is empty."""
    return math.log1p(-min(density, 1.0 - 1e-12))


def independent(lay: Layout, t: int, lanes: PerDesign, loops: Array, strides: Array, dim: Array) -> PerDesign:
    """(N,) of so many lanes with parts of tensor t of their own, those that are as different as independent ones."""
    places, spans = np.ones((2, len(lay.ranks[t]), loops.shape[1]))
    for r, rank in enumerate(lay.ranks[t]):
        for d, factor in rank:
            for k in np.flatnonzero(dim == d):
                places[r] *= loops[k]
                spans[r] += (loops[k] - 1.0) * strides[k] * factor
    different = np.minimum(places, np.ceil(spans / np.array(lay.alike[t])[:, None])).prod(axis=0)
    found: PerDesign = np.minimum(lanes, different)
    return found


def strides_of(lay: Layout, bounds: Array, blocks: list[int]) -> Array:
    """(K, n) by how much one step of each spatial loop of these blocks moves its dimension."""
    found = np.ones((len(blocks), lay.D, bounds.shape[-1]))
    for strides, s in zip(found, blocks, strict=True):
        for group in (*lay.temporal[s + 1 :], *(x for x in lay.spatial[s + 1 :] if x is not None)):
            strides *= bounds[group]
    return found.reshape(-1, bounds.shape[-1])


def figures_of(lay: Layout) -> Array:
    """For `waiting.c`: by operand `rarity`, then by operand `blocks_of`."""
    rare = [rarity(lay.occupancies[t].density) for t in lay.operands]
    return np.concatenate([rare, *(blocks_of(lay, t) for t in lay.operands)])
