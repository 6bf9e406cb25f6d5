"""Look-ups in tables of figures, and requests for missing figures."""

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
"""Density, share of tiles sent, their density, largest occupancy (5.6)."""
EMPTY = 1
"""Probability of an empty part (7.1)."""
LARGEST = 2
"""Largest number of words in granules (6.5)."""
LONGEST = 3
"""Positions of the fullest fiber (6.5)."""
UNITS = 4
"""Units of a rank (6.2)."""
PACKED = 5
"""Share of lanes filled by the nonzeros of a tile, and passes (7.4)."""
WORK = 6
"""Maxima, moments and thresholds of the work with a tile (`imbalance`)."""
GAPS = 7
"""Share of words among the positions of a rank; argument 0 is the rank (`holes`)."""
MEETINGS = 8
"""Maxima of positions meeting by chance (`imbalance`)."""
RATIO = 9
"""The longest work over the mean (`imbalance`)."""
SHARE = 10
"""Share of all empty work removed by a plugin's mechanism; arguments 0 and 1 are filter and candidate."""
STEPS = 11
"""Steps of lanes taking whole vectors, over the steps with all lanes full (`vectors`)."""
KINDS = 12
"""Tables per tensor; a table of tensor t has number KINDS t + kind."""


def figures(k: FigureTables, table: Whole, count: Whole) -> Whole:
    """Start in `data` of the figures of a table for the first `count` arguments; -1 after a request for missing
    figures."""
    key = table + 1
    for i in range(count):
        key = mixed(key, k.argument[i])
    return figures_of(k, table, key, count)


def figures_of(k: FigureTables, table: Whole, key: Whole, count: Whole) -> Whole:
    """As `figures`, for a finished key of the arguments."""
    start = seat(k, key | 1)
    if start < 0:
        k.lacking = 1
        if start == -2:
            request(k, table, key | 1, count)
        start = -1
    return start


def seat(k: FigureTables, key: Whole) -> Whole:
    """Start of the figures of a key; -1: requested already, -2: not yet."""
    at = place_of(k.places, k.bits, key)
    if at < 0 or k.places[at, 0] == 0:
        return -2
    return k.places[at, 1]


def request(k: FigureTables, table: Whole, key: Whole, count: Whole) -> None:
    """Request figures. Without room, set `full`: the design is evaluated again later."""
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
    """Store the start of the figures of a key; the table must have a place."""
    at = place_of(k.places, k.bits, key)
    k.places[at, 0] = key
    k.places[at, 1] = figure


def enter_figures(k: FigureTables, starts: Wholes) -> None:
    """Store the starts (rows,) in `data` of all requested figures."""
    for i in range(starts.shape[0]):
        entered(k, k.keys[i], starts[i])


def own_figures(k: FigureTables, key: Whole, count: Whole) -> Whole:
    """Reserve room for `count` figures computed by compiled code and return their start; -1 without room, and the
    design is evaluated again."""
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
    """Only figure of a table for the current arguments; `other` after a request for a missing figure."""
    start = figures(k, table, count)
    return k.data[start] if start >= 0 else other


def arguments(m: Facts, k: FigureTables, t: Whole, extent: Reals2, row: Whole, first: Whole) -> Whole:
    """Write the table arguments of a part of tensor t from index `first` on: words, or words per rank. Return the
    number of all arguments."""
    if m.by_shape[t] and m.ranks[t] > 0:
        for r in range(m.ranks[t]):
            k.argument[first + r] = width(m, t, r, extent, row)
        return first + m.ranks[t]
    k.argument[first] = volume(m, t, extent, row)
    return first + 1


def emptiness(m: Facts, k: FigureTables, t: Whole, extent: Reals2, row: Whole) -> Real:
    """Probability of no nonzero in a part of tensor t with extents `extent[row]`."""
    return one_figure(k, KINDS * t + EMPTY, arguments(m, k, t, extent, row, 0), 1.0)
