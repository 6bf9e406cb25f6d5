"""Look-ups in tables of figures, and lists of the figures that the tables lack."""

from __future__ import annotations

from sparsemap.inner.primitives import mixed
from sparsemap.inner.types import Real, Reals2, Whole, Wholes

from .facts import Facts
from .lookup import SPARSE, place_of
from .nest import volume, width
from .records import FigureTables

__all__ = [
    "EMPTY", "GAPS", "KINDS", "LARGEST", "LONGEST", "MEETINGS", "PACKED", "SHARE", "STEPS", "TILE", "UNITS", "WORK",
    "enter_figures",
]  # fmt: skip

TILE = 0
"""Density, share of tiles that are sent, their density, largest occupancy (5.6)."""
EMPTY = 1
"""The chance that a part is empty (7.1)."""
LARGEST = 2
"""Words that granules hold at most (6.5)."""
LONGEST = 3
"""Positions of the fullest fiber (6.5)."""
UNITS = 4
"""Units of a rank (6.2)."""
PACKED = 5
"""Share of lanes that the nonzeros of a tile fill, and passes (7.4)."""
WORK = 6
"""Maxima, moments and thresholds of the work with a tile (`imbalance`)."""
GAPS = 7
"""Share of words among the positions of a rank; argument 0 is the rank (`holes`)."""
MEETINGS = 8
"""Maxima of positions that meet by chance (`imbalance`)."""
RATIO = 9
"""The longest work over the mean (`imbalance`)."""
SHARE = 10
"""Of all that is empty, the share that a plugin's mechanism removes; arguments 0 and 1 are filter and candidate."""
STEPS = 11
"""Steps of lanes that take whole vectors, over those with all lanes full (`vectors`)."""
KINDS = 12
"""Number of the table of tensor t: KINDS t + one of these."""


def figures(k: FigureTables, table: Whole, count: Whole) -> Whole:
    """Where the figures of a table for the first `count` arguments start; -1: they are asked for."""
    key = table + 1
    for i in range(count):
        key = mixed(key, k.argument[i])
    return figures_of(k, table, key, count)


def figures_of(k: FigureTables, table: Whole, key: Whole, count: Whole) -> Whole:
    """The same by the key of these arguments."""
    start = seat(k, key | 1)
    if start < 0:
        k.lacking = 1
        if start == -2:
            request(k, table, key | 1, count)
        start = -1
    return start


def seat(k: FigureTables, key: Whole) -> Whole:
    """Where the figures of a key start; -1: they are asked for, -2: not yet."""
    at = place_of(k.places, k.bits, key)
    if at < 0 or k.places[at, 0] == 0:
        return -2
    return k.places[at, 1]


def request(k: FigureTables, table: Whole, key: Whole, count: Whole) -> None:
    """Asks for figures, if there is room; else the design is evaluated again."""
    if (k.count + 1) * SPARSE > k.places.shape[0] or k.rows == k.keys.shape[0]:
        k.full = 1
        return
    if k.asked + 2 + count > k.requests.shape[0]:
        k.full = 1
        return
    at = place_of(k.places, k.bits, key)
    k.places[at, 0] = key
    k.places[at, 1] = -1
    k.count += 1
    k.keys[k.rows] = key
    k.starts[k.rows] = k.asked
    k.rows += 1
    k.requests[k.asked] = table
    k.requests[k.asked + 1] = count
    for i in range(count):
        k.requests[k.asked + 2 + i] = k.argument[i]
    k.asked += 2 + count


def entered(k: FigureTables, key: Whole, figure: Whole) -> None:
    """Puts where the figures of a key start, for which there is a place."""
    at = place_of(k.places, k.bits, key)
    k.places[at, 0] = key
    k.places[at, 1] = figure


def enter_figures(k: FigureTables, starts: Wholes) -> None:
    """Where in `data` the figures start that were asked for, (rows,)."""
    for i in range(starts.shape[0]):
        entered(k, k.keys[i], starts[i])


def own_figures(k: FigureTables, key: Whole, count: Whole) -> Whole:
    """Where compiled code puts so many figures that it finds itself; -1: there is no room, the design is evaluated again."""
    if (k.count + 1) * SPARSE > k.places.shape[0] or k.used + count > k.data.shape[0]:
        k.full = 1
        k.lacking = 1
        return -1
    start = k.used
    k.count += 1
    entered(k, key | 1, start)
    k.used += count
    return start


def one_figure(k: FigureTables, table: Whole, count: Whole, other: Real) -> Real:
    """The only figure of a table for these arguments; `other` where it has to be asked for."""
    start = figures(k, table, count)
    return k.data[start] if start >= 0 else other


def arguments(m: Facts, k: FigureTables, t: Whole, extent: Reals2, row: Whole, first: Whole) -> Whole:
    """Arguments from `first` on that tables of tensor t take of a part with these extents: words, or words per rank.
    Returns the number of all arguments."""
    if m.by_shape[t] and m.ranks[t] > 0:
        for r in range(m.ranks[t]):
            k.argument[first + r] = width(m, t, r, extent, row)
        return first + m.ranks[t]
    k.argument[first] = volume(m, t, extent, row)
    return first + 1


def emptiness(m: Facts, k: FigureTables, t: Whole, extent: Reals2, row: Whole) -> Real:
    """The chance that a part of tensor t with these extents is empty."""
    return one_figure(k, KINDS * t + EMPTY, arguments(m, k, t, extent, row, 0), 1.0)
