"""Expected maxima of the work of many units waiting for each other, and thresholds of one unit's work.

The work of a unit is a distribution: ascending values with shares. The maximum of n units reaches a value with
probability 1 - (1 - r)^n, where r is the share reaching the value. The mean is the sum of these probabilities times the
rises of values."""

from __future__ import annotations

from sparsemap.inner.numbers import exp
from sparsemap.inner.primitives import ceil, floor, inf, sqrt, whole
from sparsemap.inner.types import Real, Reals, Reals2, Whole

__all__ = ["MERGED", "MOST_MET", "fewer_taken", "meetings", "work"]

MERGED = 256
"""Largest number of distinct values of a distribution: steps of a tenth of a standard deviation."""
MOST_MET = 65536
"""Largest number of listed counts of non-empty places; more counts are sampled at equal steps, as a normal
distribution."""


def fewer_taken(k: Reals, looks: Real, words: Real, out: Reals) -> None:
    """Probability (n,) of a skip looking at `looks` of `words` positions to find one of k (n,) nonzeros."""
    for i in range(k.shape[0]):
        left = 1.0 - min(max(looks, k[i]) / words, 1.0)
        out[i] = 1.0 - whole_power(left, min(looks, k[i]))


def whole_power(x: Real, n: Real) -> Real:
    """x^n for a whole number n from 0 on, by squaring."""
    found = 1.0
    for _ in range(64):
        if n < 1.0:
            break
        half = 0.5 * n
        rest = half - floor(half)
        if rest > 0.0:
            found *= x
        n = half - rest
        x *= x
    return found


def merge(values: Reals, p: Reals, n: Whole, shares: Reals2) -> Whole:
    """Merge neighbours of the first n ascending values to fit the columns of `shares`; return the number of columns
    used. Row 0 holds the mean of each, row 1 the share reaching it."""
    size = (n + shares.shape[1] - 1) // shares.shape[1]
    count = (n + size - 1) // size
    most = -inf
    for c in range(count):
        share = 0.0
        mean = 0.0
        for i in range(c * size, min(n, c * size + size)):
            share += p[i]
            mean += p[i] * values[i]
        own = mean / share if size > 1 and share > 0.0 else values[c * size]
        most = max(most, own)  # rounding may put the mean of equal values below the one before
        shares[0, c] = most
        shares[1, c] = share
    total = 0.0
    for c in range(count - 1, -1, -1):
        total += shares[1, c]
        shares[1, c] = min(total, 1.0)
    return count


def maxima(shares: Reals2, count: Whole, lanes: Whole, out: Reals, first: Whole) -> None:
    """Mean maxima (lanes,), in `out` from `first` on, of a quarter of a unit, half a unit, one, two, four units and so
    on. Scratch: row 2 of `shares`.

    1 - (1 - r)^(1/4) = r / ((1 + q) (1 + q^2)), q = (1 - r)^(1/4); doubling the units: 1 - (1 - w)^2 = w (2 - w)."""
    for c in range(count):
        square = sqrt(1.0 - shares[1, c])
        shares[2, c] = shares[1, c] / ((1.0 + sqrt(square)) * (1.0 + square))
    for lane in range(lanes):
        total = 0.0
        before = 0.0
        for c in range(count):
            w = shares[2, c]
            total += w * (shares[0, c] - before)
            before = shares[0, c]
            shares[2, c] = w * (2.0 - w)
        out[first + lane] = total


def work(values: Reals, p: Reals, tails: Reals, lanes: Whole, shares: Reals2, out: Reals) -> None:
    """Row of `WorkTiles` from ascending values (n,) and shares: maxima (lanes,), mean of the square, share above zero,
    and for each of `tails` (m,), descending, the value reached and the share reaching the value. Scratch: (3, values)."""
    count = merge(values, p, values.shape[0], shares)
    maxima(shares, count, lanes, out, 0)
    square = 0.0
    above = 0.0
    for i in range(values.shape[0]):
        square += p[i] * (values[i] * values[i])
        if values[i] > 0.0:
            above += p[i]
    out[lanes] = square
    out[lanes + 1] = above
    at = 0
    for j in range(tails.shape[0]):
        for c in range(at + 1, count):
            if shares[1, c] < tails[j]:
                break
            at = c
        out[lanes + 2 + j] = shares[0, at]
        for c in range(at, -1, -1):  # all that have this value reach it
            if shares[0, c] < shares[0, at]:
                break
            out[lanes + 2 + tails.shape[0] + j] = shares[1, c]


def meetings(
    places: Real, chance: Real, lanes: Whole, values: Reals, p: Reals, shares: Reals2, out: Reals, first: Whole
) -> None:
    """Mean maxima (lanes,), in `out` from `first` on, of the share of non-empty `places`, each non-empty with
    probability `chance`: a binomial distribution. Scratch: values and p (MOST_MET + 1,), shares (3, MERGED)."""
    mean = places * chance
    spread = sqrt(mean * (1.0 - chance))
    low = max(0.0, floor(mean - 9.0 * spread - 9.0))
    high = min(places, ceil(mean + 12.0 * spread + 30.0))
    n = whole(min(high - low, MOST_MET - 1.0)) + 1
    if high - low > MOST_MET:
        for i in range(n):
            k = low + (high - low) * i / (n - 1)
            off = (k - mean) / spread
            values[i] = k / places
            p[i] = exp(-0.5 * off * off)
    else:
        mode = min(whole(max(mean - low, 0.0)), n - 1)
        odds = chance / (1.0 - chance)
        p[mode] = 1.0
        for i in range(mode + 1, n):
            p[i] = p[i - 1] * ((places - (low + i - 1.0)) / (low + i) * odds)
        for i in range(mode - 1, -1, -1):
            p[i] = p[i + 1] * ((low + i + 1.0) / (places - (low + i)) / odds)
        for i in range(n):
            values[i] = (low + i) / places
    total = 0.0
    for i in range(n):
        total += p[i]
    for i in range(n):
        p[i] /= total
    maxima(shares, merge(values, p, n, shares), lanes, out, first)
