"""Run lengths as an encoder writes them: tokens of b bits, escapes, and a last token (docs/model.md, `run-lengths`)."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import Array


def encode(rows: Array, bits: int) -> tuple[Array, Array]:
    """(fibers, L) bool -> tokens of all fibers one after the other, and (fibers,) how many each has."""
    escape, length = 2**bits - 1, rows.shape[1]
    fiber, at = np.nonzero(np.pad(rows, [(0, 0), (0, 1)], constant_values=True))  # the end of a fiber is found as well
    before = np.where(np.diff(fiber, prepend=-1) > 0, -1, np.concatenate([[-1], at[:-1]]))
    escapes, left = np.divmod(at - before - 1, escape)
    named = (at < length) | (left > 0)
    ends = np.cumsum(escapes + named)
    tokens = np.full(int(ends[-1]) if len(ends) else 0, escape, dtype=np.int64)
    tokens[ends[named] - 1] = left[named]
    return tokens, np.bincount(fiber, escapes + named, len(rows)).astype(np.int64)


def decode(tokens: Array, ends: Array, length: int, bits: int) -> Array:
    """(fibers, L) bool again; every fiber is read until all its positions are told."""
    if not len(ends):
        return np.zeros((0, length), dtype=bool)
    escape = 2**bits - 1
    tells = np.where(tokens == escape, escape, tokens + 1)  # positions
    count = np.diff(ends, prepend=0)
    told = np.cumsum(tells)
    told -= np.repeat((told - tells)[ends - count], count)
    named = (tokens < escape) & (told <= length)
    found = np.zeros((len(ends), length), dtype=bool)
    found[np.repeat(np.arange(len(ends)), count)[named], told[named] - 1] = True
    last = ends - 1
    if not ((told[last] >= length) & (told[last] - tells[last] < length)).all():
        raise AssertionError("the tokens of a fiber do not end where the fiber does")
    return found
