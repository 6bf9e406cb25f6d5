"""What `fast.c` does for the bound, in NumPy: loaded where there is no compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows
from sparsemap.primes import Divisors


def classes(bounds: Array, order: Array, sizes: Array, options: Sequence[Array], index: Array) -> Array:
    """(B,) class of each design, as `ClassTable.index` has them; `options` by dimension."""
    inside = sizes[:, None] / bounds[0]
    place = np.zeros(bounds.shape[-1], dtype=np.int64)
    right = np.ones(bounds.shape[-1], dtype=bool)
    for d, option in enumerate(options):
        at = np.minimum(np.searchsorted(option, inside[d]), len(option) - 1)
        right &= option[at] == inside[d]
        place = place * len(option) + at
    busy = np.take_along_axis(bounds[0], order[0].astype(np.intp), axis=0) > 1.0  # by position
    last = len(sizes) - 1 - busy[::-1].argmax(axis=0)
    loop = np.where(busy.any(axis=0), order[0][last, np.arange(len(last))], 0)
    return np.where(right, index[place, loop], -1)


def move(part: Array, turns: Array, sizes: Array, wanted: Array, loop: Array, giving: list[int]) -> None:
    """Gives the loops `part` (L, D, B) inside the first group extents `wanted` (D, B), and puts `loop` (B,) innermost in it.
    Factors that go come from the groups `giving`, in this order."""
    D, whole = part.shape[1], part.prod(axis=0)
    for d, size in enumerate(sizes):
        divisors = Divisors.of(int(size))
        held = divisors.within(part[:, d])  # (primes, L, B)
        spare = held[:, 1:].sum(axis=1) - divisors.within(wanted[d])
        held[:, giving[0]] += np.maximum(-spare, 0)
        np.maximum(spare, 0, out=spare)
        for group in giving:
            gone = np.minimum(spare, held[:, group])
            held[:, group] -= gone
            spare -= gone
        part[1:, d] = 1.0
        for powers, count in zip(divisors.powers, held, strict=True):
            part[1:, d] *= powers[count[1:]]
        part[0, d] = whole[d] / part[1:, d].prod(axis=0)
    position = np.where(turns[0] == loop, D, np.arange(D)[:, None])
    turns[0] = np.take_along_axis(turns[0], np.argsort(position, axis=0, kind="stable"), axis=0)


def cheapest(drawn: Array, at: Array, within: Array, counts: Array, sizes: Array, energy: Array, way: Array) -> Array:
    """(B,) of some tiles inside another one the one of the least `energy` (K, n), row `way` (B,): the first of equal ones.
    Numbers `drawn` (D, B, n) pick divisors of the extents with places `at` (D, B); the others: `ClassTable.inside`."""
    place = np.zeros(drawn.shape[1:], dtype=np.int64)
    first = start = 0
    for numbers, mine, size in zip(drawn, at, sizes.tolist(), strict=True):
        nth = (numbers * counts[first + mine, None]).astype(np.int64)
        place = place * size + within[start + mine[:, None] * size + nth]
        first, start = first + size, start + size * size
    picked = np.take_along_axis(place, energy[way[:, None], place].argmin(axis=1)[:, None], axis=1)
    return picked[:, 0]


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


def ways(found: Array, base: Array, rows: Rows, every: Sequence[tuple[Any, ...]]) -> None:
    """In place, the least (K, n) of `base` (n,) and what each way adds to it: the row k of `found`, for which of the tiles (N,)
    there is one, what is added by tile (N,) or None, and (n,) of the tiles `rows` what comes then."""
    for k, some, whole, *parts in every:
        pj = base if whole is None else base + whole[rows]
        for part in parts:
            pj = pj + part
        np.minimum(found[k], pj, out=found[k], where=some[rows])
