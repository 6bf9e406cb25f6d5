"""What `bounds.c` does for the bound, in NumPy: loaded where that does not apply."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from .bound_units import STEPS


def beaten(found: Array, rows: Array) -> None:
    """Into `found` (n,) which of the columns (n,) of `rows` (m, n) another one is below in all, or an earlier one equals."""
    for i, own in enumerate(rows.T):
        below = (rows <= own[:, None]).all(axis=0)
        below[i:] &= (rows[:, i:] < own[:, None]).any(axis=0)
        found[i] = below.any()


def delivered(
    found: Array, words: Array, widths: Array, extents: Array, loops: Array, turns: Array, ranks: Array, moves: Array,
    single: bool,
) -> None:  # fmt: skip
    """Into `found` (D, n), as `bound_tiles.delivered` says: `ranks` (R, 4) have the dimension and coefficient of two terms, -1
    for none; `moves` (D,): whether a dimension moves the tensor."""
    anew, every, terms = np.ones_like(words), np.where(moves[:, None], loops, turns).prod(axis=0), []
    for d, c, o, other in ranks.tolist():
        along = loops[[d] if o < 0 else [d, o]]
        idlest, all_steps = along.min(axis=0), along.prod(axis=0)
        none = (idlest > 1.0) & (o >= 0) & ((not single) | (c * extents[d] == other * extents[o]))
        anew = anew * np.where(none, idlest, all_steps)
        terms.append([(d, c, o, other, all_steps), (o, other, d, c, all_steps)][: 1 if o < 0 else 2])
    found[:] = words * anew
    for width, (d, c, o, other, along) in (
        (width, one) for width, some in zip(widths, terms, strict=True) for one in some
    ):
        uncovered, inner = words * np.minimum(1.0, c * extents[d] / width), along
        if single and o >= 0:
            inner = np.where((loops[d] > 1.0) & (other * extents[o] != 2.0 * c * extents[d]), loops[d], along)
        found[d] = every / inner * (words + (inner - 1.0) * uncovered)


def front(found: Array, energy: Array, cycles: Array) -> int:
    """Into `found` (2, m) the pairs that no other beats in both, and how many there are, as `bound.front` says."""
    order = np.lexsort((cycles, energy))
    energy, cycles = energy[order], cycles[order]
    best = cycles < np.minimum.accumulate(np.concatenate([[np.inf], cycles]))[:-1]
    rows = np.flatnonzero(best)
    groups = min(found.shape[1], len(rows))
    if groups:
        ends = np.arange(groups + 1) * (len(rows) // groups) + np.minimum(np.arange(groups + 1), len(rows) % groups)
        found[:, :groups] = energy[rows[ends[:-1]]], cycles[rows[ends[1:] - 1]]
    return groups


def inside(values: Array, sizes: Array, pairs: Array, ends: Array, taken: Array, smaller: int) -> None:
    """In place, the least of `values` (n,) over all tiles inside each one, as `TileGrid.least_inside` says."""
    found, first = values.reshape(sizes), 0
    for axis, end in enumerate(ends.tolist()):
        if taken[axis]:
            whole = found.swapaxes(0, axis)
            less = np.full_like(whole, np.inf) if axis == smaller else whole
            for place, one in pairs[first:end].tolist():
                np.minimum(less[place], whole[one], out=less[place, ...])
                if axis == smaller:
                    np.minimum(whole[place], less[place], out=whole[place, ...])
            found[...] = less.swapaxes(0, axis)
        first = end


def in_classes(
    found: Array, energy: Array, tile: Array, loop: Array, again: Array, own: Array, still: Array, moves: Array,
    sizes: Array, pairs: Array, ends: Array,
) -> None:  # fmt: skip
    """Into `found` (K, N), as `InnerTiles.in_classes` says: `energy` (K, D, n) of tiles, with `still` (D, T) of tensors that the
    loop does not move, which `moves` (T, D) says; pJ `again` (T, n) if they come again, and `own` (T, N) if they stay."""
    found[:] = energy[:, loop, tile]
    for d, k in itertools.product(range(energy.shape[1]), range(len(energy))):
        stay = np.flatnonzero(~moves[:, d])
        for some in (None, *stay):
            least = energy[k, d].copy()
            inside(least, sizes, pairs, ends, np.ones(len(sizes), dtype=bool) if some is None else ~moves[some], d)
            if some is None:
                more = sum((np.maximum(0.0, again[t] - still[d, t])[tile] for t in stay), start=np.zeros(1))
            else:
                more = np.maximum(0.0, own[some] - still[d, some])
            np.minimum(found[k], least[tile] + more, out=found[k])


def kept(
    way: Array, log_extents: Array, log_words: Array, plan: Array, tables: Sequence[Array], log_computes: float
) -> Array:
    """Share of the accesses that filters leave (`LeastAccesses.plan`), with this row of `InnerTiles.ways`."""
    found, told = np.ones_like(log_words), iter(plan.tolist())
    for _ in range(next(told)):
        there = np.ones_like(found)
        for _ in range(next(told)):
            table, stays = tables[next(told)], next(told)
            words = np.maximum(0.0, log_computes - log_words) if stays else np.zeros(1)
            for _ in range(next(told)):
                dims = [(next(told), next(told)) for _ in range(next(told))]
                words = words + reduce(
                    np.maximum, [np.maximum(0.0, log_extents[d] - way[column]) for d, column in dims]
                )
            there = there * table.take((8.0 * np.maximum(0.0, words - 1e-6)).astype(np.intp), mode="clip")
        found = np.minimum(found, there)
    return found


def units_pj(widths: Array, shape: Array, logs: Array, each: Array, *operands: Array) -> Array:
    """(n,) pJ of `LeastUnits`, in tiles with `logs` (D, n) of extents and `log_words` (2, n), where there are 2 ** `each` (D,)
    children along every dimension, or more, who hold 2 ** `cut` (2,) parts of each operand at most."""
    wide = np.clip(logs - each[:, None], 0, shape[: len(logs), None] - 1)
    pj = widths.take(np.ravel_multi_index(tuple(wide), shape[: len(logs)]))
    if not operands:
        return np.asarray(pj)
    alone, told, log_words, cut = operands
    steps = np.maximum(0.0, STEPS * (log_words - cut[:, None] - 1e-9)).astype(np.intp)
    at = np.ravel_multi_index(tuple(np.minimum(steps, shape[-2:, None] - 1)), shape[-2:])
    return np.maximum(pj + alone.take(at), told.take(at))


def shared(
    energy: Array, tiles: Rows, possible: Array, base: Array, tier: Array, rows: Array, places: Array, fits: Array,
    log_extents: Array, units: tuple[Any, ...] | None, tensors: Sequence[tuple[Any, ...]],
) -> None:  # fmt: skip
    """Into `energy` (K, D, N), infinity so far, the least over W ways to share a fan-out, as `InnerTiles.least` gives them."""
    for w, k in enumerate(tier):
        of_way = [part[w] if i in (3, 7) else part for i, part in enumerate(units or ())]
        pj = base + (units_pj(*of_way) if units else 0.0)
        for ways, single, bits, child, *filtered in tensors:
            wires, others, *_ = way = ways[w]
            term = bits * wires + others * child
            if filtered:
                every, all_bits, all_child, log_words, moves, *filters = filtered
                whole = every + (all_bits * wires + others * all_child)
                least = np.minimum(1.0, single / np.maximum(every, 1e-300))
                left = np.minimum(1.0, np.maximum(kept(way, log_extents, log_words, *filters), least))
                share = np.where(moves[:, None], left, least)
                term = np.where(moves[:, None], share * whole, term)
            pj = pj + term
        there = possible & fits[places[rows[w]].sum(axis=0)]
        found = energy[k][:, tiles]
        energy[k][:, tiles] = np.where(there, np.minimum(found, pj), found)
