"""Tilings: genes (g, B), the mapping level 1..L of each prime factor. Moves of factors, and the resulting loops."""

from __future__ import annotations

from sparsemap.inner.primitives import whole
from sparsemap.inner.types import Real, Reals2, Reals3, Whole, Wholes, Wholes2

from .tile_facts import TileFacts, put_row, take_row

__all__ = [
    "DRAWN", "FILLING", "MOVING", "STAYING", "SWAPPING", "TRIES", "ascending", "bounds_of", "fill_level", "levels_of",
    "stay_some", "vary_tilings",
]  # fmt: skip

SWAPPING = 0.30
"""Random numbers from 0 to this limit: swap the levels of two factors."""
FILLING = SWAPPING + 0.12
"""Up to this limit: fill a spatial level."""
STAYING = FILLING + 0.13
"""Up to this limit: make a tensor stationary during the loops of a level."""
MOVING = 1.0 - 0.25
"""Up to this limit: move one factor; beyond: move whole loops."""
TRIES = 4
"""Number of trials for filling a spatial level; the fullest is used."""
DRAWN = 6
"""Random numbers per move, before the numbers of factors: kind, factor, level, and three that depend on the kind."""


def bounds_of(x: TileFacts, genes: Wholes2, bounds: Reals3) -> None:
    """Multiply `bounds` (L, D, B) by the factors."""
    for i in range(genes.shape[0]):
        for b in range(genes.shape[1]):
            bounds[genes[i, b] - 1, x.dims[i], b] *= x.factors[i]


def levels_of(x: TileFacts, bounds: Reals3, genes: Wholes2) -> None:
    """Genes of `bounds` (L, D, B) multiplying to the sizes, with ascending levels of equal factors."""
    for b in range(genes.shape[1]):
        for i in range(genes.shape[0]):
            genes[i, b] = 0
        for level in range(bounds.shape[0]):
            for d in range(bounds.shape[1]):
                left = whole(bounds[level, d, b])
                for i in range(genes.shape[0]):
                    factor = whole(x.factors[i])
                    if x.dims[i] == d and genes[i, b] == 0 and left % factor == 0:
                        left = left // factor
                        genes[i, b] = level + 1


def ascending(x: TileFacts, genes: Wholes2) -> None:
    """Sort the levels of equal factors of a dimension, in place."""
    for b in range(genes.shape[1]):
        for i in range(1, genes.shape[0]):
            for j in range(i, 0, -1):
                if x.dims[j] != x.dims[j - 1] or x.factors[j] != x.factors[j - 1] or genes[j, b] >= genes[j - 1, b]:
                    break
                level = genes[j, b]
                genes[j, b] = genes[j - 1, b]
                genes[j - 1, b] = level


def vary_tilings(x: TileFacts, genes: Wholes2, drawn: Reals2, ways: Reals2) -> None:
    """Apply one move per design; `drawn` (DRAWN + g, B), `ways` (D + g, TRIES n) for n moves that fill a level."""
    fills = 0
    for b in range(genes.shape[1]):
        kind = drawn[0, b]
        take_row(x, genes, b)
        first = whole(drawn[1, b] * genes.shape[0])
        before = x.row[first]
        target = 1 + (before + whole(drawn[2, b] * (x.storage.shape[0] - 1))) % x.storage.shape[0]
        second = -1
        if kind < SWAPPING:
            second = largest(x, drawn, b, before, 0, -1)
        if second >= 0:
            x.row[first] = x.row[second]
            x.row[second] = before
        elif kind >= SWAPPING and kind < FILLING and x.spatial.shape[0] > 0:
            which = whole(drawn[3, b] * x.spatial.shape[0])
            away = 1 + whole(drawn[5, b] * x.storage.shape[0]) if drawn[4, b] < 0.3 else 0
            fill(x, x.spatial[which], x.limits[which], away, ways, TRIES * fills)
            fills += 1
        elif kind >= FILLING and kind < STAYING:
            stay(x, drawn[3, b], drawn[4, b], drawn[5, b])
        elif kind >= MOVING:
            move_loops(x, x.dims[first], before, target, largest(x, drawn, b, target, 1, x.dims[first]), drawn[4, b])
        else:
            x.row[first] = target
        put_row(x, genes, b)


def largest(x: TileFacts, drawn: Reals2, b: Whole, level: Whole, there: Whole, dim: Whole) -> Whole:
    """Factor outside `dim` with the largest key, on a level if `there`, else not on it; -1: none."""
    found = -1
    for i in range(x.row.shape[0]):
        if (1 if x.row[i] == level else 0) != there or x.dims[i] == dim:
            continue
        if found < 0 or drawn[DRAWN + i, b] > drawn[DRAWN + found, b]:
            found = i
    return found


def move_loops(x: TileFacts, dim: Whole, before: Whole, target: Whole, other: Whole, kind: Real) -> None:
    """Move all factors of a dimension from one level to another. In return comes the dimension's loop there (3 of 10),
    the loop of the dimension of factor `other` (5 of 10), or nothing."""
    back = x.dims[other] if other >= 0 else -1
    for i in range(x.row.shape[0]):
        if x.dims[i] == dim and x.row[i] == before:
            x.row[i] = target
        elif x.row[i] == target and x.dims[i] == (dim if kind < 0.3 else back if kind < 0.8 else -1):
            x.row[i] = before


def fill_level(
    x: TileFacts, genes: Wholes2, rows: Wholes, here: Whole, limit: Real, away: Wholes, ways: Reals2
) -> None:
    """Fill a spatial level in designs `rows` (n,), in place; `away` (n,), `ways` (D + g, TRIES n)."""
    for k in range(rows.shape[0]):
        take_row(x, genes, rows[k])
        fill(x, here, limit, away[k], ways, TRIES * k)
        put_row(x, genes, rows[k])


def fill(x: TileFacts, here: Whole, limit: Real, away: Whole, ways: Reals2, first: Whole) -> None:
    """Fill a spatial level with fitting factors, in the order of keys in `ways` from column `first` on.

    With `away`, the level's own factors first move to that level. The fullest of TRIES trials is used."""
    best, dims = -1.0, ways.shape[0] - x.row.shape[0]
    for i in range(x.row.shape[0]):
        x.kept[i] = 0
        if away > 0 and x.row[i] == here:
            x.row[i] = away
    for way in range(first, first + TRIES):
        used, waiting = 1.0, 0
        for i in range(x.row.shape[0]):
            x.comes[i] = 0
            if x.row[i] == here:
                used *= x.factors[i]
            else:
                key, at = ways[x.dims[i], way] + 0.3 * ways[dims + i, way], waiting
                for j in range(waiting, 0, -1):
                    if x.key[j - 1] <= key:
                        break
                    x.key[j] = x.key[j - 1]
                    x.waits[j] = x.waits[j - 1]
                    at = j - 1
                x.key[at] = key
                x.waits[at] = i
                waiting += 1
        for i in range(waiting):
            if used * x.factors[x.waits[i]] <= limit:
                used *= x.factors[x.waits[i]]
                x.comes[x.waits[i]] = 1
        if used > best:
            best = used
            for i in range(x.row.shape[0]):
                x.kept[i] = x.comes[i]
    for i in range(x.row.shape[0]):
        if x.kept[i]:
            x.row[i] = here


def stay_some(x: TileFacts, genes: Wholes2, rows: Wholes, drawn: Reals2) -> None:
    """Make a tensor stationary in designs `rows` (n,), in place; `drawn` (3, n)."""
    for k in range(rows.shape[0]):
        take_row(x, genes, rows[k])
        stay(x, drawn[0, k], drawn[1, k], drawn[2, k])
        put_row(x, genes, rows[k])


def stay(x: TileFacts, tensor: Real, place: Real, kind: Real) -> None:
    """Make a random tensor stationary during the temporal loops of a random level: the loops moving the tensor go to
    the next outer level, or to the next inner level, from which loops not moving the tensor may come in return."""
    t, levels = whole(tensor * x.moves.shape[0]), x.temporal.shape[0]
    level = whole(place * levels)
    outwards = (kind < 0.4 and level > 0) or level == levels - 1
    here, other = x.temporal[level], x.temporal[max(level - 1, 0) if outwards else level + 1]
    for i in range(x.row.shape[0]):
        if x.moves[t, x.dims[i]]:
            if x.row[i] == here:
                x.row[i] = other
        elif x.row[i] == other and not outwards and kind > 0.7:
            x.row[i] = here
