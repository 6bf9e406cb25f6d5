"""Expected maxima of the work of many units that wait for each other, and thresholds of the work of one.

The work of a unit is a distribution: values in ascending order with their shares. The maximum of n units reaches a value with
the chance 1 - (1 - r)^n, where r is the share that reaches it; its mean is the sum of these chances times the rises of values.
"""

from __future__ import annotations

from sparsemap.inner.numbers import exp, log
from sparsemap.inner.primitives import floor, inf, sqrt
from sparsemap.inner.types import Real, Reals, Reals2, Whole

__all__ = ["fewer_taken", "mean_maxima", "meetings", "work"]


def fewer_taken(k: Reals, looks: Real, words: Real, out: Reals) -> None:
    """The chance (n,) that a skip that looks at so many of `words` finds one of k (n,) that are not zero."""
    for i in range(k.shape[0]):
        left = 1.0 - min(max(looks, k[i]) / words, 1.0)
        out[i] = 1.0 - whole_power(left, min(looks, k[i]))


def whole_power(x: Real, n: Real) -> Real:
    """x^n of a whole number n from 0 on, by squares."""
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


def merge(values: Reals, p: Reals, shares: Reals2) -> Whole:
    """Neighbours of n values in ascending order as one, where there are more than columns: in row 0 of `shares` the mean of
    each, in row 1 the share that reaches it. Returns how many there are."""
    n = values.shape[0]
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


def maxima(shares: Reals2, count: Whole, lanes: Whole, out: Reals) -> None:
    """Mean maxima (lanes,) of a quarter of a unit, half a unit, one, two, four and so on. Scratch: row 2 of `shares`.

    1 - (1 - r)^(1/4) = r / ((1 + q) (1 + q^2)), q = (1 - r)^(1/4); for twice as many 1 - (1 - w)^2 = w (2 - w)."""
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
        out[lane] = total


def mean_maxima(values: Reals, p: Reals, lanes: Whole, shares: Reals2, out: Reals) -> None:
    """The mean maxima (lanes,) of values (n,) in ascending order with their shares. Scratch: (3, values)."""
    maxima(shares, merge(values, p, shares), lanes, out)


def work(values: Reals, p: Reals, tails: Reals, lanes: Whole, shares: Reals2, out: Reals) -> None:
    """A row of `WorkTiles` from values (n,) in ascending order and their shares: maxima (lanes,), the mean of the square,
    the share above zero, and for each of `tails` (m,), descending, the value that it reaches and the share that does.
    Scratch: (3, values)."""
    count = merge(values, p, shares)
    maxima(shares, count, lanes, out)
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
    places: Real, chance: Real, low: Real, lanes: Whole, p: Reals, values: Reals, shares: Reals2, out: Reals
) -> None:
    """Mean maxima (lanes,) of the share of `places` that hold something, each with this chance: a binomial distribution of
    as many numbers from `low` on as `p` and `values` (n,) have room for. Scratch: these, and (3, values)."""
    odds = log(chance) - log(1.0 - chance)
    most = 0.0
    logarithm = 0.0
    for i in range(p.shape[0]):
        if i > 0:
            before = low + i - 1.0
            logarithm += log((places - before) / (before + 1.0)) + odds
        p[i] = logarithm
        most = max(most, logarithm)
        values[i] = (low + i) / places
    total = 0.0
    for i in range(p.shape[0]):
        p[i] = exp(p[i] - most)
        total += p[i]
    for i in range(p.shape[0]):
        p[i] /= total
    mean_maxima(values, p, lanes, shares, out)
