"""Pieces of merged-window bins in which rounding by a format passes a whole number (`occupancy/bins.py`).

A window of occupancies is cut into bins. `store` holds the first samples of the bins from index `edges` on, and the
probability below each sample from index `sums` on. Samples lie `step` occupancies apart, starting at `origin`; possible
occupancies lie `grain` apart."""

from __future__ import annotations

from sparsemap.inner.primitives import ceil, floor, whole
from sparsemap.inner.types import Real, Reals, Reals2, Whole, Wholes, Wholes2

from .rank_points import AT_PARTS, BELOW, GRAIN, LENGTH, OF_TILE, PART_VARIES, POINTS_OF, share, span_of

__all__ = ["chance_below", "cut_bins", "find_steps", "place_steps"]

ORIGIN = 0
STEP = 1
GRAIN_OF = 2
"""Rows of the real figures of windows, (3, n)."""
EDGES = 0
BELOW_AT = 1
SAMPLES_OF = 2
"""Rows of the whole-number figures of windows, (3, n)."""


def find_steps(
    places: Wholes2, sizes: Reals2, tiles: Reals2, chances: Reals, pairs: Reals2, filled: Reals, one: Whole, actual: Whole,
    tail: Real, most: Real, span: Wholes, at: Wholes2, found: Reals2,
) -> Whole:  # fmt: skip
    """Find neighbouring bins between which the occupied positions of a rank pass whole numbers; return their number P.

    `at` (2, P): rank and bin. `found` (3, P): number of whole numbers passed, occupied positions in both bins. Pairs of
    bins with probability up to `tail` are ignored, and so are ranks passing more than `most` whole numbers."""
    count = 0
    for i in range(places.shape[1]):
        if not (tiles[places[OF_TILE, i], GRAIN] > 0.0 and pairs[places[BELOW, i], PART_VARIES] != 0.0):
            continue
        span_of(i, places, sizes, tiles, pairs, one, span)
        before, all_rises = count, 0.0
        fibers, parts = span[AT_PARTS], span[AT_PARTS + 1]
        here = sizes[LENGTH, i] * share(actual, filled[parts], filled[fibers])
        for j in range(span[POINTS_OF] - 1):
            after = sizes[LENGTH, i] * share(actual, filled[parts + j + 1], filled[fibers + j + 1])
            rises = ceil(after) - ceil(here)
            if rises > 0.0 and chances[span[0] + j] + chances[span[0] + j + 1] > tail:
                at[0, count] = i
                at[1, count] = j
                found[0, count] = rises
                found[1, count] = here
                found[2, count] = after
                all_rises += rises
                count += 1
            here = after
        if all_rises > most:
            count = before
    return count


def place_steps(
    grain: Reals, rank: Wholes, steps: Reals2, means: Reals2, source: Wholes, value: Reals, first: Reals, around: Reals
) -> None:
    """Locate every single step, p in all, by linear interpolation between bins; in so small a range, the error is below
    one occupancy.

    `source` (p,): index of the step's column in `steps`. `value` (p,): the whole number passed. `around` (4 p,): four
    occupancies around the step, from grid index `first` on. `steps` (3, P) come from `find_steps`; `means` (2, P) are
    the mean occupancies of both bins."""
    count = 0
    for i in range(rank.shape[0]):
        low, high = steps[1, i], steps[2, i]
        for step in range(whole(steps[0, i])):
            source[count] = i
            value[count] = ceil(low) + step
            k = means[0, i] + (value[count] - low) / (high - low) * (means[1, i] - means[0, i])
            first[count] = floor(k / grain[rank[i]]) - 1.0
            for j in range(4):
                around[4 * count + j] = (first[count] + j) * grain[rank[i]]
            count += 1


def edge_of(windows: Reals2, starts: Wholes2, store: Reals, r: Whole, bin: Whole) -> Real:
    """Lower end of a bin of window r."""
    return windows[ORIGIN, r] + windows[STEP, r] * store[starts[EDGES, r] + bin]


def below(windows: Reals2, starts: Wholes2, store: Reals, r: Whole, y: Real, found: Reals) -> None:
    """Probability of occupancies below y in window r, and the density per sample at y, into `found`.

    In a sample, with t = -1/2..1/2, the density is taken as P + s t + c (t^2 - 1/12): P is the sample's probability, s
    and 2c are the central differences of first and second order."""
    t = (y - windows[ORIGIN, r]) / windows[STEP, r]
    i = min(max(floor(t), 0.0), starts[SAMPLES_OF, r] - 1.0)
    t = t - i - 0.5
    at = starts[BELOW_AT, r] + whole(i)
    before = store[at + 1] - store[at]
    here = store[at + 2] - store[at + 1]
    after = store[at + 3] - store[at + 2]
    slope = (after - before) / 2.0
    bend = (after - 2.0 * here + before) / 2.0
    found[0] = store[at + 1] + here * (t + 0.5) + slope * (t * t - 0.25) / 2.0 + bend * t * (t * t - 0.25) / 3.0
    found[1] = here + slope * t


def piece_between(
    windows: Reals2, starts: Wholes2, store: Reals, r: Whole, left: Real, right: Real, found: Reals, pieces: Reals2, at: Whole
) -> None:  # fmt: skip
    """Mean occupancy and probability of a piece: the centre of gravity of a linear density, within the possible
    occupancies."""
    below(windows, starts, store, r, left, found)
    low, low_density = found[0], found[1]
    below(windows, starts, store, r, right, found)
    high, high_density = found[0], found[1]
    density = low_density + high_density
    tilt = (high_density - low_density) / density if density > 0.0 else 0.0
    margin = min(windows[GRAIN_OF, r], right - left) / 2.0
    mean = (left + right) / 2.0 + tilt * (right - left) / 6.0
    pieces[0, at] = min(max(mean, left + margin), right - margin)
    pieces[1, at] = high - low


def end_of_step(
    windows: Reals2, starts: Wholes2, store: Reals, r: Whole, bin: Whole, value: Real, first: Real, occupied: Reals, at: Whole
) -> Real:  # fmt: skip
    """Occupancy of a step near its bin: between the last of four occupancies with `occupied` up to `value`, and the
    next."""
    passed = 0
    for j in range(4):
        if occupied[4 * at + j] <= value:
            passed += 1
    y = (first - 0.5 + passed) * windows[GRAIN_OF, r]
    return min(max(y, edge_of(windows, starts, store, r, bin)), edge_of(windows, starts, store, r, bin + 2))


def cut_bins(
    windows: Reals2, starts: Wholes2, store: Reals, rank: Wholes, bin: Wholes, source: Wholes, value: Reals, first: Reals,
    occupied: Reals, found: Reals, places: Wholes2, pieces: Reals2,
) -> Whole:  # fmt: skip
    """Cut the bins with steps into pieces, in order of ranks; return the number of pieces. A rank has first the piece
    before each step, then the piece behind the last step of each bin.

    `occupied` (4 p,): occupied positions at the occupancies from `place_steps`. `places` (2, 2 p): rank and bin.
    `pieces` (2, 2 p): mean occupancy and probability. `found` (2,) is scratch."""
    count = 0
    start = 0
    for _ in range(source.shape[0]):
        if start == source.shape[0]:
            break
        r = rank[source[start]]
        own, before, last = count, -1, 0.0
        stop = start
        for step in range(start, source.shape[0]):
            if rank[source[step]] != r:
                break
            seen = bin[source[step]]
            y = end_of_step(windows, starts, store, r, seen, value[step], first[step], occupied, step)
            if y > edge_of(windows, starts, store, r, seen + 1):
                seen += 1
            left = last if seen == before else edge_of(windows, starts, store, r, seen)
            places[0, count] = r
            places[1, count] = seen
            piece_between(windows, starts, store, r, left, y, found, pieces, count)
            before, last = seen, y
            count += 1
            stop += 1
        end = count
        for i in range(own, end):
            if i + 1 < end and places[1, i + 1] == places[1, i]:
                continue
            step = start + i - own
            y = end_of_step(windows, starts, store, r, bin[source[step]], value[step], first[step], occupied, step)
            places[0, count] = r
            places[1, count] = places[1, i]
            right = edge_of(windows, starts, store, r, places[1, i] + 1)
            piece_between(windows, starts, store, r, y, right, found, pieces, count)
            count += 1
        start = stop
    return count


def chance_below(windows: Reals2, starts: Wholes2, store: Reals, y: Reals, found: Reals, out: Reals) -> None:
    """Probability of occupancies below each of y (n,) in window 0, into `out` (n,)."""
    for i in range(y.shape[0]):
        below(windows, starts, store, 0, y[i], found)
        out[i] = found[0]
