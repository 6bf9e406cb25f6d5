"""Hypergeometric probabilities of arrays and sums of bands in NumPy: what `chances.c` has in loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .atoms import Atoms, added, merged
from .band_sums import Full, Kept, Placed, Share
from .hypergeometric import UNDERFLOW, Long, log_none

INVISIBLE = -40.0  # exp of this, 4e-18, leaves 1 as it is


def many(total: Array, marked: Array, taken: Array) -> Array:
    """`none_many`, longdouble."""
    few, most = np.minimum(marked, taken), np.maximum(marked, taken)
    result = np.where(few > 0, Long(0), Long(1))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.flatnonzero((few > 0) & (few + most <= total) & (few * np.log1p(-most / total) >= UNDERFLOW))
    total, few, most = total[left], few[left], most[left]
    closed = few + most <= total - 256
    found = np.empty(len(left), Long)
    found[closed] = np.exp(log_none(*(x[closed].astype(Long) for x in (total, most, few))))
    found[~closed] = _products(*(x[~closed] for x in (total, most, few)))
    result[left] = found
    return result


def _products(total: Array, many: Array, few: Array) -> Array:
    """Products of (N-M-i)/(N-i) over i < m, longdouble, factor by factor as in `none`; similar m are formed together."""
    result = np.empty(len(few), Long)
    for some, i in _alike(few):
        inside = i < few[some, None]
        over = np.where(inside, (total - many)[some, None] - i, 1)
        result[some] = (over / np.where(inside, total[some, None] - i, 1).astype(Long)).prod(axis=1)
    return result


def _alike(counts: Array) -> Iterator[tuple[Array, Array]]:
    """Which counts above 0 are similar enough for one matrix, and its columns 0, 1, .. up to the largest of them."""
    order = np.argsort(counts, kind="stable")
    sizes = counts[order]
    low = int(np.searchsorted(sizes, 0, "right"))
    while low < len(order):
        high = int(np.searchsorted(sizes, max(2 * int(sizes[low]), 16), "right"))
        high = min(high, low + max(1, (1 << 16) // int(sizes[high - 1])))
        yield order[low:high], np.arange(sizes[high - 1])
        low = high


def real(total: Array, marked: Array, taken: Array) -> Array:
    """`none_real`."""
    few, most = np.minimum(marked, taken), np.maximum(marked, taken)
    result = np.where(few > 0, 0.0, 1.0)
    room = total - few - most
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = (few > 0) & (room >= 0) & (few * np.log1p(-most / total) > INVISIBLE)
    closed = np.flatnonzero(seen & (room >= 64))
    result[closed] = np.exp(log_none(total[closed], most[closed], few[closed]))
    for i in np.flatnonzero(seen & (room < 64)):
        j = np.arange(marked[i])
        result[i] = ((total[i] - taken[i] - j) / (total[i] - j)).prod()
    return result


def runs(total: Array, marked: Array, first: Array, count: Array) -> Array:
    """`none_runs`; runs of similar length are formed together."""
    start = many(total, marked, first)
    ends = np.cumsum(count)
    result = np.empty(ends[-1] if len(ends) else 0)
    for some, i in _alike(count):
        k = i[:-1] + first[some, None]
        ratios = np.empty((len(some), len(i)), Long)
        ratios[:, 0] = start[some]
        np.divide(
            np.maximum((total - marked)[some, None] - k, 0),
            np.maximum(total[some, None] - k, 1).astype(Long),
            out=ratios[:, 1:],
        )
        chances = np.cumprod(ratios, axis=1, out=ratios).astype(np.float64)
        inside = i < count[some, None]
        result[((ends - count)[some, None] + i)[inside]] = chances[inside]
    return result


def joined(footprints: list[Kept], blocks: int, keep: int, none: float, draws: Callable[..., Atoms]) -> Array:
    """`band_sums.joined`, dense: footprints are drawn one after the other, each hypergeometric given the kept blocks that are
    left."""
    states: dict[int, list[Atoms]] = {0: [(np.zeros(1, np.int64), np.full(1, none))]}
    for place, (count, step, powers, held) in enumerate(footprints):
        last = place == len(footprints) - 1
        after: dict[int, list[Atoms]] = {}
        for taken, parts in states.items():
            x, p = parts[0] if len(parts) == 1 else merged(*map(np.concatenate, zip(*parts, strict=True)))
            i, chance = draws(blocks, keep - taken, count)
            if powers is not None:
                chance = chance * powers[i]
                if last:
                    x = np.add.outer(x, i * step).ravel()
                    after.setdefault(0, []).append((x, np.multiply.outer(p, chance).ravel()))
                    continue
            for j, c in zip(i.tolist(), chance.tolist(), strict=True):
                one = (np.full(1, j * step), np.ones(1)) if held is None else held[j]
                after.setdefault(0 if last else taken + j, []).append(added((x, p * c), one))
        states, blocks = after, blocks - count
    return np.bincount(*map(np.concatenate, zip(*states[0], strict=True)))


def placed(bands: list[Placed], step: int, out: Array) -> None:
    """`band_sums.placed`."""
    rows, size = out.shape
    lengths = [len(x) for (x, _), *_ in bands]
    place, rest = np.divmod(np.concatenate([x * times for (x, _), times, *_ in bands]), step)
    p = np.concatenate([p * share for (_, p), _, _, share in bands])
    first, part = np.repeat([row * size for *_, row, _ in bands], lengths), rest / step
    for at, chance in ((place, p * (1.0 - part)), (place + 1, p * part)):
        out += np.bincount(first + at % size, chance, rows * size).reshape(rows, size)


def gathered(
    shares: list[Share], height: int, inner: int, known: dict[Any, Atoms], ask: Callable[..., Atoms]
) -> list[Placed]:
    """`band_sums.gathered`."""
    every = [
        (at, (classes, height if partial else 1, 0 if certain else inner), share, 1 if partial else height)
        for at, classes, share, partial, certain in shares
    ]
    return [(known.get(("_joined", asked)) or ask(*asked), times, at, share) for at, asked, share, times in every]


def fullest(bands: list[Full]) -> float:
    """`band_sums.fullest`, NaN where none is."""
    ones, boths = [], []
    for first, every, inside in bands:
        for count, chance in every:
            first = first + count * chance
        ones.append(first)
        for count, chance in inside:
            first = first + count * chance
        boths.append(first)
    one, both = np.concatenate(ones), np.concatenate(boths)
    top = one.max()
    return float(np.exp(both - top).sum() / np.exp(one - top).sum()) if top > -np.inf else np.nan
