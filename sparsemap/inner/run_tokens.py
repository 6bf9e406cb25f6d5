"""Run lengths: expected tokens of a fiber, and the best width of a token (docs/model.md, `run-lengths`)."""

from __future__ import annotations

from .numbers import exp, expm1, log1p
from .primitives import floor, inf, two_to, whole
from .types import Real, Reals, Whole

__all__ = ["best_widths"]

FEW = 64.0
"""Largest tile, in positions, with dependent positions: a fixed number of the positions is non-empty."""


def drawn(length: Real, filled: Real, most: Real, ended: Real, positions: Real) -> Real:
    """`tokens` for a tile with a fixed number of non-empty positions: m given positions are empty with the probability
    of drawing without replacement."""
    hold = filled * positions
    found = length * filled
    empty = 1.0
    escape = most
    for m in range(whole(length) + 1):
        left = positions - m
        longer = empty * (max(left - hold, 0.0) / max(left, 1.0))
        if m == escape:
            both = empty - longer
            found += (length - m) * both
            if ended == 0.0:
                found += empty - (both if m < length else empty)
            escape += most
        if ended == 0.0 and m == 0:
            found += longer
        empty = longer
    return found


def tokens(length: Real, filled: Real, most: Real, ended: Real, positions: Real) -> Real:
    """Expected tokens of a fiber with independently filled positions (docs/model.md, `run-lengths`).

    A token below `most` is a run of empty positions before a non-empty position; `most` is a run of empty positions
    alone. `ended`: the end of the fiber is known from outside, so empty positions at the end take no token. `positions`
    of the tile."""
    if most == 1.0 and ended == 0.0:
        return length  # a token of one bit tells one position
    if positions <= FEW and filled > 0.0 and (most > 1.0 or ended != 0.0):
        return drawn(length, filled, most, ended, positions)
    times = floor(length / most)
    run = most * log1p(-filled)
    left = -expm1(run)
    x = exp(run)
    last = 1.0
    if times > 0.0:
        last = x if times == 1.0 else exp(run * times)
    escapes = times
    weighted = times * (times + 1.0) / 2.0
    if not times * left < 1e-5:
        escapes = x * (1.0 - last) / left
        weighted = x * (1.0 - (times + 1.0) * last + times * last * x) / (left * left)
    if ended != 0.0:
        return length * filled + filled * (length * escapes - most * weighted)
    before = escapes
    none = 0.0
    if times * most == length:
        fewer = times - 1.0
        before = fewer
        if not fewer * left < 1e-5:
            before = x * (1.0 - exp(run * fewer)) / left
        if filled < 1.0:
            none = exp(run / most * length)
    found = length * filled + escapes * (1.0 + filled * length) - filled * most * weighted
    return found + (1.0 - filled) - filled * before - none


def best_width(length: Real, usual: Real, most_bits: Real) -> Whole:
    """j of the token width 2^j, up to `most_bits`, with the fewest bits for a fiber of usual fill."""
    best = 0
    least = inf
    bits = 1.0
    filled = min(max(usual, 0.0), 1.0)
    for j in range(6):
        if bits <= most_bits or j == 0:
            found = bits * tokens(length, filled, two_to(bits) - 1.0, 0.0, inf)
            if found < least:
                best, least = j, found
        bits = 2.0 * bits
    return best


def best_widths(length: Reals, usual: Reals, most_bits: Reals, out: Reals) -> None:
    """Bits of a token (N,) with the fewest bits for fibers (N,) of fill `usual`."""
    for i in range(length.shape[0]):
        out[i] = two_to(best_width(length[i], usual[i], most_bits[i]))
