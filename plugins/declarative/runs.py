"""Run lengths: how many tokens of b bits a fiber takes, and which b takes the fewest bits (docs/model.md, `run-lengths`).

A token r < M = 2^b - 1 is r empty positions and one that is not; M is M empty positions alone, an escape. A fiber that
nobody else ends is read until all its positions are told: if the last ones are empty, its last token is their number.
"""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import Array

WIDTHS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
"""Bits of a token, those that an encoder chooses from."""
FEW = 64.0
"""Up to so many positions of a tile, they are not taken to be independent: so many of them hold something."""


def tokens(length: Array, filled: Array, bits: Array, ended: bool = False, positions: Array | None = None) -> Array:
    """Expected tokens of a fiber, each of whose positions holds something with probability `filled` (N,).

    `ended`: others tell where it ends, so that nothing stands for empty positions at its end. `positions`: of the tile,
    of which `filled` hold something.
    """
    most = 2.0**bits - 1.0
    whole = np.floor(length / most)
    with np.errstate(divide="ignore"):
        log_run = most * np.log1p(-filled)  # of the chance that M positions are empty
    escapes, weighted = _powers(log_run, whole)
    if ended:
        found = length * filled + filled * (length * escapes - most * weighted)
    else:
        exact = whole * most == length
        ends, last = escapes.copy(), np.flatnonzero(exact)  # of the escapes before the end of the fiber
        ends[last] = _powers(log_run[last], whole[last] - 1.0)[0]
        empty = np.where(filled < 1.0, np.exp(np.where(filled < 1.0, log_run / most * length, 0.0)), 0.0)
        found = length * filled + escapes * (1.0 + filled * length) - filled * most * weighted
        found = found + (1.0 - filled) - filled * ends - exact * empty
    # a token of one bit tells one position, however they lie
    if positions is not None:
        few = np.flatnonzero((positions <= FEW) & (filled > 0.0) & ((most > 1.0) | ended))
        found[few] = _drawn(length[few], filled[few], most[few], ended, positions[few])
    return found


def _drawn(length: Array, filled: Array, most: Array, ended: bool, positions: Array) -> Array:
    """The same where a whole number of the tile's positions holds something: q(m), of m given ones being empty, is not
    (1 - filled)^m but the chance of drawing them without putting back."""
    if not len(length):
        return length
    order = np.argsort(-length)  # the longest first: those that are at their end drop out
    length, most, positions = length[order], most[order], positions[order]
    hold = filled[order] * positions
    found, empty = length * filled[order], np.ones(len(length))  # q(m)
    stops = np.searchsorted(-length, -np.arange(length[0] + 1.0), "right")
    for m, stop in enumerate(stops.tolist()):
        here, left = empty[:stop], positions[:stop] - m
        longer = here * (np.maximum(left - hold[:stop], 0.0) / np.maximum(left, 1.0))  # q(m + 1)
        more, escape = found[:stop], np.flatnonzero(m % most[:stop] == 0.0) if m else np.arange(0)
        one, both = here[escape], here[escape] - longer[escape]
        more[escape] += (length[escape] - m) * both
        if not ended:
            more[escape] += one - np.where(m < length[escape], both, one)
            if m == 0:
                more += longer
        empty = longer
    back = np.empty(len(order))
    back[order] = found
    return back


def best_bits(length: Array, filled: Array, most_bits: Array) -> Array:
    """Bits of a token, (N,): of 1, 2, 4 .. up to `most_bits`, those with the fewest bits for a fiber so full."""
    differs = [column[1:] != column[:-1] for column in (filled, length, most_bits)]
    # entries of a rank are alike, and stand together
    at = np.flatnonzero(np.concatenate([[True][: len(length)], np.any(differs, axis=0)]))
    width, rank = np.nonzero((WIDTHS[:, None] <= most_bits[at]) | (WIDTHS[:, None] == 1.0))
    written = np.full((len(WIDTHS), len(at)), np.inf)
    filled_at = np.clip(filled[at], 0.0, 1.0)
    written[width, rank] = WIDTHS[width] * tokens(length[at][rank], filled_at[rank], WIDTHS[width])
    return np.repeat(WIDTHS[written.argmin(axis=0)], np.diff(at, append=len(filled)))


def _powers(log_x: Array, count: Array) -> tuple[Array, Array]:
    """Sums over j = 1 .. count of x^j and of j x^j, x = exp(log_x) <= 1."""
    gap = -np.expm1(log_x)  # 1 - x
    flat = count * gap < 1e-5
    x, safe = np.exp(log_x), np.where(flat, 1.0, gap)
    with np.errstate(invalid="ignore"):
        last = np.exp(np.where(count > 0.0, log_x * count, 0.0))  # x^count
    plain = np.where(flat, count, x * (1.0 - last) / safe)
    summed = x * (1.0 - (count + 1.0) * last + count * last * x) / safe**2
    return plain, np.where(flat, count * (count + 1.0) / 2.0, summed)
