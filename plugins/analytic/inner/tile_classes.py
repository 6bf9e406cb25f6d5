"""Classes of designs (`bound_classes.py`): the class of a design, moves into another class, and cheap tiles inside a
tile."""

from __future__ import annotations

from sparsemap.inner.primitives import whole
from sparsemap.inner.types import Floats2, Reals, Reals2, Reals3, Small3, Whole, Wholes, Wholes2

__all__ = ["cheapest", "classes", "move"]


def classes(
    bounds: Reals3, order: Small3, sizes: Reals, options: Reals, ends: Wholes, index: Wholes2, out: Wholes
) -> None:
    """Class (B,) of designs with bounds and orders (L, D, B), from `index` (tiles, D); -1: none. A class is the tile
    next to the outermost level and the loop innermost around it. Options for dimension d lie in `options` up to
    ends[d], ascending."""
    dims = sizes.shape[0]
    for b in range(out.shape[0]):
        tile = 0
        first = 0
        there = 1
        loop = 0
        for d in range(dims):
            inside = sizes[d] / bounds[0, d, b]
            low = first
            high = ends[d]
            steps = high - first
            for _ in range(steps):
                if low >= high:
                    break
                middle = (low + high) // 2
                if options[middle] < inside:
                    low = middle + 1
                else:
                    high = middle
            if low == ends[d]:
                low -= 1
            if options[low] != inside:
                there = 0
            tile = tile * (ends[d] - first) + low - first
            first = ends[d]
        for p in range(dims):
            d = order[0, p, b]
            if bounds[0, d, b] > 1.0:
                loop = d
        out[b] = index[tile, loop] if there else -1


def move(
    bounds: Reals3, order: Small3, sizes: Reals2, wanted: Reals2, loop: Wholes, primes: Wholes, ends: Wholes, giving: Wholes,
    held: Wholes2,
) -> None:  # fmt: skip
    """Move designs into other classes, in place: bounds and orders (L, D, B) of `sizes` (D, B) get the tiles `wanted`
    (D, B) inside the first level, with `loop` (B,) innermost around them. The primes of dimension d are listed up to
    ends[d]. Factors leave the levels `giving` (L - 1,) in this order; the first level receives missing factors.
    Scratch: (3, L)."""
    levels = bounds.shape[0]
    for b in range(loop.shape[0]):
        first = 0
        for d in range(sizes.shape[0]):
            tile = whole(wanted[d, b])
            for g in range(1, levels):
                held[0, g] = whole(bounds[g, d, b])
                held[1, g] = 1
            for i in range(first, ends[d]):
                spare = 0
                for g in range(1, levels):
                    held[2, g] = times(held[0, g], primes[i])
                    held[0, g] //= power_of(primes[i], held[2, g])
                    spare += held[2, g]
                spare -= times(tile, primes[i])
                if spare < 0:
                    held[2, giving[0]] -= spare
                    spare = 0
                for at in range(levels - 1):
                    gone = min(spare, held[2, giving[at]])
                    held[2, giving[at]] -= gone
                    spare -= gone
                for g in range(1, levels):
                    held[1, g] *= power_of(primes[i], held[2, g])
            first = ends[d]
            inside = 1.0
            for g in range(1, levels):
                bounds[g, d, b] = held[1, g]
                inside *= held[1, g]
            bounds[0, d, b] = sizes[d, b] / inside
        found = 0
        last = order.shape[1] - 1
        for p in range(last + 1):
            if order[0, p, b] == loop[b]:
                found = 1
            if found:
                order[0, p, b] = order[0, p + 1, b] if p < last else loop[b]


def times(number: Whole, prime: Whole) -> Whole:
    """Exponent of a prime in a number above 0."""
    count = 0
    for _ in range(64):
        if number % prime != 0:
            break
        number //= prime
        count += 1
    return count


def power_of(prime: Whole, count: Whole) -> Whole:
    found = 1
    for _ in range(count):
        found *= prime
    return found


def cheapest(
    drawn: Reals3, at: Wholes2, within: Wholes, counts: Wholes, sizes: Wholes, energy: Floats2, way: Wholes, out: Wholes
) -> None:
    """Cheapest of n random tiles inside another tile (B,), by `energy` (K, tiles) in row `way` (B,); the first among
    equals.

    Numbers `drawn` (D, B, n) below 1 pick divisors of the extents at places `at` (D, B). `within` lists the places of
    the divisors of each option, option after option; `counts` holds the number of divisors, `sizes` (D,) the number of
    options of a dimension."""
    for b in range(out.shape[0]):
        best = -1
        for k in range(drawn.shape[2]):
            place = 0
            first = 0
            start = 0
            for d in range(sizes.shape[0]):
                i = at[d, b]
                place = place * sizes[d] + within[start + i * sizes[d] + whole(drawn[d, b, k] * counts[first + i])]
                first += sizes[d]
                start += sizes[d] * sizes[d]
            if best < 0 or energy[way[b], place] < energy[way[b], best]:
                best = place
        out[b] = best
