"""Points of tile occupancy at which formats count the units of ranks (docs/model.md, section 6.2).

For n ranks, `places` (6, n) holds row numbers: the tile, the code, the knowledge from the rank above, and three pairs
of the tile with the part of a fiber, of a position and of a group. `sizes` (6, n): positions, fibers, groups of a
fiber, positions of the fullest fiber, probability of an occupied position anywhere in the tensor, whether empty tiles
are omitted. Figures of tiles and pairs follow `occupancy/tiles.py` and `pairs.py`, with lists of the probabilities of
occupancies and of non-empty parts."""

from __future__ import annotations

from sparsemap.inner.fiber_codes import CHANCE_AT, FIBERS_AT, GROUPS_AT, OCCUPIED_AT
from sparsemap.inner.primitives import ceil, mixed, whole
from sparsemap.inner.types import Real, Reals, Reals2, Whole, Wholes, Wholes2

from .lookup import key_of
from .metadata import name_bits

__all__ = ["BLOCK", "SPANS", "count_points", "list_points", "place_ranks"]

BLOCK = 128
"""Points per block."""

OF_TILE = 0
CODE_OF = 1
TOLD_BY = 2
BOX = 3
BELOW = 4
GROUP = 5
"""Rows of `places`."""
LENGTH = 0
SLOTS = 1
GROUPS_IN = 2
FULLEST = 3
USUAL = 4
DROPS = 5
"""Rows of `sizes`."""
POINTS = 4
AT_LIST = 5
AT_CHANCES = 6
LEFT_OUT = 7
AT_SENT = 8
GRAIN = 9
SAMPLES = 12
AT_ALL = 15
"""Columns of tiles."""
PART_FILLED = 0
PART_LARGEST = 1
PART_VARIES = 2
"""Columns of pairs."""
AT_CHANCE = 0
POINTS_OF = 1
AT_PARTS = 2
SPANS = 5
"""Columns of a rank's span: start of the probabilities of the points, number of points, starts of the three parts."""


def place_ranks(columns: Reals2, parts: Whole, group: Reals, places: Wholes2, sizes: Reals2, keys: Wholes2) -> None:
    """Enter the codes of n ranks into `places` and their sizes into `sizes`, and list keys (6, n): of the tile, of the
    inputs of formats, of the three pairs, and of the part below a position.

    `columns`: `occupancy.units.Ranks`, with `parts` numbers per shape; `group` (F,): positions listed together."""
    first = 3 * parts
    for i in range(places.shape[1]):
        length, form = columns[first, i], whole(columns[first + 2, i])
        places[CODE_OF, i] = form
        sizes[LENGTH, i] = length
        sizes[SLOTS, i] = columns[first + 1, i]
        sizes[GROUPS_IN, i] = ceil(length / group[form]) if columns.shape[0] > first + 6 else 0.0
        sizes[FULLEST, i] = columns[first + 5, i]
        sizes[USUAL, i] = 0.0
        sizes[DROPS, i] = columns[first + 4, i]
        tile = key_of(columns, 0, parts, i, 0)
        keys[0, i] = tile | 1
        keys[1, i] = mixed(mixed(mixed(0, length), form), name_bits(columns[first + 3, i] + 1.0)) | 1
        keys[2, i] = key_of(columns, parts, parts, i, tile) | 1
        keys[3, i] = key_of(columns, 2 * parts, parts, i, tile) | 1
        keys[4, i] = key_of(columns, first + 6, parts, i, tile) | 1 if columns.shape[0] > first + 6 else keys[2, i]
        keys[5, i] = key_of(columns, 2 * parts, parts, i, 0) | 1


def span_of(
    i: Whole, places: Wholes2, sizes: Reals2, tiles: Reals2, pairs: Reals2, one: Whole, span: Wholes
) -> None:  # fmt: skip
    """Span of the points of rank i; a merged window without variation has a single point."""
    t = places[OF_TILE, i]
    out = 0
    span[AT_CHANCE] = whole(tiles[t, AT_CHANCES])
    if sizes[DROPS, i] != 0.0:
        out = whole(tiles[t, LEFT_OUT])
        span[AT_CHANCE] = whole(tiles[t, AT_SENT])
    span[POINTS_OF] = whole(tiles[t, POINTS]) - out
    varies = 0
    for j in range(3):
        pair = places[BOX + j, i]
        span[AT_PARTS + j] = whole(pairs[pair, PART_FILLED]) + out
        if pairs[pair, PART_VARIES] != 0.0:
            varies = 1
    if tiles[t, GRAIN] > 0.0 and not varies:
        span[AT_CHANCE] = one
        span[POINTS_OF] = 1


def share(actual: Whole, held: Real, there: Real) -> Real:
    """Share of non-empty positions: over all fibers or, by Timeloop in actual data, over non-empty fibers."""
    if actual:
        return min(1.0, held / (there if there > 0.0 else 1.0))
    return held


def gather(
    i: Whole, start: Whole, places: Wholes2, sizes: Reals2, chances: Reals, pairs: Reals2, filled: Reals, span: Wholes,
    actual: Whole, x: Reals2, room: Whole,
) -> Whole:  # fmt: skip
    """Copy points of rank i from `start` on into `x`, at most `room`, and return their number. The last point of a rank
    is the largest occupancy, with probability 0."""
    length, slots, groups = sizes[LENGTH, i], sizes[SLOTS, i], sizes[GROUPS_IN, i]
    left = span[POINTS_OF] - start
    count = min(left, room)
    for j in range(count):
        held = filled[span[AT_PARTS + 1] + start + j]
        there = filled[span[AT_PARTS] + start + j]
        x[CHANCE_AT, j] = chances[span[AT_CHANCE] + start + j]
        x[FIBERS_AT, j] = slots * there
        x[OCCUPIED_AT, j] = length * share(actual, held, there)
        x[GROUPS_AT, j] = groups * filled[span[AT_PARTS + 2] + start + j]
    if left < room:
        there = pairs[places[BOX, i], PART_LARGEST]
        x[CHANCE_AT, count] = 0.0
        x[FIBERS_AT, count] = slots * there
        x[OCCUPIED_AT, count] = length * share(actual, pairs[places[BELOW, i], PART_LARGEST], there)
        x[GROUPS_AT, count] = groups * pairs[places[GROUP, i], PART_LARGEST]
        count += 1
    return count


def count_points(
    places: Wholes2, sizes: Reals2, tiles: Reals2, chances: Reals, pairs: Reals2, filled: Reals, one: Whole, span: Wholes,
    out: Wholes,
) -> None:  # fmt: skip
    """Number of points per rank (n,), including the largest occupancy, without pieces."""
    for i in range(places.shape[1]):
        span_of(i, places, sizes, tiles, pairs, one, span)
        out[i] = span[POINTS_OF] + 1


def list_points(
    places: Wholes2, sizes: Reals2, tiles: Reals2, chances: Reals, pairs: Reals2, filled: Reals, one: Whole, actual: Whole,
    cut: Wholes2, pieces: Reals2, span: Wholes, starts: Wholes, x: Reals2, points: Reals2,
) -> None:  # fmt: skip
    """Points (4, P) of all ranks: fibers, occupied positions, groups and probability. Points of rank i start at
    `starts[i]`, (n + 1,). The largest occupancy follows the other occupancies, then the pieces of bins."""
    piece = 0
    for i in range(places.shape[1]):
        span_of(i, places, sizes, tiles, pairs, one, span)
        for block in range(span[POINTS_OF] // BLOCK + 1):
            at = starts[i] + block * BLOCK
            count = gather(i, block * BLOCK, places, sizes, chances, pairs, filled, span, actual, x, BLOCK)
            for j in range(count):
                points[0, at + j] = x[FIBERS_AT, j]
                points[1, at + j] = x[OCCUPIED_AT, j]
                points[2, at + j] = x[GROUPS_AT, j]
                points[3, at + j] = x[CHANCE_AT, j]
        at = starts[i] + span[POINTS_OF] + 1
        for _ in range(piece, cut.shape[1]):
            if cut[0, piece] != i:
                break
            points[3, starts[i] + cut[1, piece]] = 0.0
            for j in range(4):
                points[j, at] = pieces[j, piece]
            at += 1
            piece += 1
