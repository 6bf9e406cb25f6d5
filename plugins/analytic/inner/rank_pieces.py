"""Pieces of merged-window bins in which rounding by a format passes a whole number (`occupancy/bins.py`).

A window of occupancies is cut into bins. Lists of numbers hold the first samples of the bins from index `edges` of the
tile on, and the probability below each sample from index `sums` on. Samples lie `step` occupancies apart, starting at
`origin`; possible occupancies lie `grain` apart."""

from __future__ import annotations

from sparsemap.inner.primitives import ceil, floor, whole
from sparsemap.inner.types import Real, Reals, Reals2, Whole, Wholes, Wholes2

from .rank_points import (
    AT_LIST,
    AT_PARTS,
    BELOW,
    GRAIN,
    LENGTH,
    OF_TILE,
    PART_VARIES,
    POINTS_OF,
    SAMPLES,
    share,
    span_of,
)

__all__ = ["chance_below", "cut_bins", "find_steps", "place_steps"]

STEP = 10
ORIGIN = 11
AT_EDGES = 13
AT_BELOW = 14
"""Columns of tiles."""


def find_steps(
    places: Wholes2, sizes: Reals2, tiles: Reals2, chances: Reals, pairs: Reals2, filled: Reals, one: Whole, actual: Whole,
    tail: Real, most: Real, span: Wholes, at: Wholes2, found: Reals2,
) -> Whole:  # fmt: skip
    """Find neighbouring bins between which the occupied positions of a rank pass whole numbers; return their number P,
    perhaps above the number of rows with room.

    `at` (P, 2): rank and bin. `found` (P, 5): number of whole numbers passed; occupied positions, and mean occupancies,
    of both bins. Pairs of bins with probability up to `tail` are ignored, and so are ranks passing more than `most`
    whole numbers."""
    count = 0
    for i in range(places.shape[1]):
        t = places[OF_TILE, i]
        if not (tiles[t, GRAIN] > 0.0 and pairs[places[BELOW, i], PART_VARIES] != 0.0):
            continue
        span_of(i, places, sizes, tiles, pairs, one, span)
        before, all_rises = count, 0.0
        fibers, parts = span[AT_PARTS], span[AT_PARTS + 1]
        means = whole(tiles[t, AT_LIST])
        here = sizes[LENGTH, i] * share(actual, filled[parts], filled[fibers])
        for j in range(span[POINTS_OF] - 1):
            after = sizes[LENGTH, i] * share(actual, filled[parts + j + 1], filled[fibers + j + 1])
            rises = ceil(after) - ceil(here)
            if rises > 0.0 and chances[span[0] + j] + chances[span[0] + j + 1] > tail:
                if count < at.shape[0]:
                    at[count, 0] = i
                    at[count, 1] = j
                    found[count, 0] = rises
                    found[count, 1] = here
                    found[count, 2] = after
                    found[count, 3] = chances[means + j]
                    found[count, 4] = chances[means + j + 1]
                all_rises += rises
                count += 1
            here = after
        if all_rises > most:
            count = before
    return count


def place_steps(
    tiles: Reals2, places: Wholes2, at: Wholes2, steps: Reals2, source: Wholes, value: Reals, first: Reals, rank: Wholes,
    around: Reals,
) -> None:  # fmt: skip
    """Locate every single step, p in all, by linear interpolation between bins; in so small a range, the error is below
    one occupancy.

    `at` (P, 2) and `steps` (P, 5) come from `find_steps`. `source` (p,): the row of the step there. `value` (p,): the
    whole number passed. `around` (4 p,): four occupancies around the step, from grid index `first` on; `rank` (4 p,):
    their rank."""
    count = 0
    for i in range(steps.shape[0]):
        low, high = steps[i, 1], steps[i, 2]
        grain = tiles[places[OF_TILE, at[i, 0]], GRAIN]
        for step in range(whole(steps[i, 0])):
            source[count] = i
            value[count] = ceil(low) + step
            k = steps[i, 3] + (value[count] - low) / (high - low) * (steps[i, 4] - steps[i, 3])
            first[count] = floor(k / grain) - 1.0
            for j in range(4):
                around[4 * count + j] = (first[count] + j) * grain
                rank[4 * count + j] = at[i, 0]
            count += 1


def edge_of(tiles: Reals2, store: Reals, t: Whole, bin: Whole) -> Real:
    """Lower end of a bin of tile t."""
    return tiles[t, ORIGIN] + tiles[t, STEP] * store[whole(tiles[t, AT_EDGES]) + bin]


def below(tiles: Reals2, store: Reals, t: Whole, y: Real, found: Reals) -> None:
    """Probability of occupancies below y in tile t, and the density per sample at y, into `found`.

    In a sample, with u = -1/2..1/2, the density is taken as P + s u + c (u^2 - 1/12): P is the sample's probability, s
    and 2c are the central differences of first and second order."""
    u = (y - tiles[t, ORIGIN]) / tiles[t, STEP]
    i = min(max(floor(u), 0.0), tiles[t, SAMPLES] - 1.0)
    u = u - i - 0.5
    at = whole(tiles[t, AT_BELOW]) + whole(i)
    before = store[at + 1] - store[at]
    here = store[at + 2] - store[at + 1]
    after = store[at + 3] - store[at + 2]
    slope = (after - before) / 2.0
    bend = (after - 2.0 * here + before) / 2.0
    found[0] = store[at + 1] + here * (u + 0.5) + slope * (u * u - 0.25) / 2.0 + bend * u * (u * u - 0.25) / 3.0
    found[1] = here + slope * u


def piece_between(
    tiles: Reals2, store: Reals, t: Whole, left: Real, right: Real, found: Reals, pieces: Reals2, at: Whole
) -> None:  # fmt: skip
    """Mean occupancy and probability of a piece: the centre of gravity of a linear density, within the possible
    occupancies."""
    below(tiles, store, t, left, found)
    low, low_density = found[0], found[1]
    below(tiles, store, t, right, found)
    high, high_density = found[0], found[1]
    density = low_density + high_density
    tilt = (high_density - low_density) / density if density > 0.0 else 0.0
    margin = min(tiles[t, GRAIN], right - left) / 2.0
    mean = (left + right) / 2.0 + tilt * (right - left) / 6.0
    pieces[0, at] = min(max(mean, left + margin), right - margin)
    pieces[1, at] = high - low


def end_of_step(
    tiles: Reals2, store: Reals, t: Whole, bin: Whole, value: Real, first: Real, occupied: Reals, at: Whole
) -> Real:  # fmt: skip
    """Occupancy of a step near its bin: between the last of four occupancies with `occupied` up to `value`, and the
    next."""
    passed = 0
    for j in range(4):
        if occupied[4 * at + j] <= value:
            passed += 1
    y = (first - 0.5 + passed) * tiles[t, GRAIN]
    return min(max(y, edge_of(tiles, store, t, bin)), edge_of(tiles, store, t, bin + 2))


def cut_bins(
    tiles: Reals2, store: Reals, of: Wholes2, at: Wholes2, source: Wholes, value: Reals, first: Reals, occupied: Reals,
    found: Reals, places: Wholes2, pieces: Reals2,
) -> Whole:  # fmt: skip
    """Cut the bins with steps into pieces, in order of ranks; return the number of pieces. A rank has first the piece
    before each step, then the piece behind the last step of each bin.

    `of` (6, n): places of the ranks. `at` (P, 2): rank and bin of steps. `occupied` (4 p,): occupied positions at the
    occupancies from `place_steps`. `places` (2, 2 p): rank and bin. `pieces` (2, 2 p): mean occupancy and probability.
    `found` (2,) is scratch."""
    count = 0
    start = 0
    for _ in range(source.shape[0]):
        if start == source.shape[0]:
            break
        r = at[source[start], 0]
        t = of[OF_TILE, r]
        own, before, last = count, -1, 0.0
        stop = start
        for step in range(start, source.shape[0]):
            if at[source[step], 0] != r:
                break
            seen = at[source[step], 1]
            y = end_of_step(tiles, store, t, seen, value[step], first[step], occupied, step)
            if y > edge_of(tiles, store, t, seen + 1):
                seen += 1
            left = last if seen == before else edge_of(tiles, store, t, seen)
            places[0, count] = r
            places[1, count] = seen
            piece_between(tiles, store, t, left, y, found, pieces, count)
            before, last = seen, y
            count += 1
            stop += 1
        end = count
        for i in range(own, end):
            if i + 1 < end and places[1, i + 1] == places[1, i]:
                continue
            step = start + i - own
            y = end_of_step(tiles, store, t, at[source[step], 1], value[step], first[step], occupied, step)
            places[0, count] = r
            places[1, count] = places[1, i]
            right = edge_of(tiles, store, t, places[1, i] + 1)
            piece_between(tiles, store, t, y, right, found, pieces, count)
            count += 1
        start = stop
    return count


def chance_below(tiles: Reals2, store: Reals, y: Reals, found: Reals, out: Reals) -> None:
    """Probability of occupancies below each of y (n,) in tile 0, into `out` (n,)."""
    for i in range(y.shape[0]):
        below(tiles, store, 0, y[i], found)
        out[i] = found[0]
