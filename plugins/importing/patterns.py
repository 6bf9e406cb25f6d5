"""Which density model describes given weights: dense, N:M, blocks, or nonzeros anywhere.

Weights are seen as outputs x reduced channels x taps of the window, (rows, columns, taps). Nothing is fitted: a pattern
is reported where the weights keep to it, and a share of nonzeros is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

DENSE = 0.995
"""From this share of nonzeros on, weights count as dense."""
GROUPS = (4, 8, 16)
"""The M of N:M patterns that are looked for."""
FILLED = 0.95
"""An N:M pattern has at least this share of the nonzeros that it allows."""
FEWEST_GROUPS = 64
"""Fewer groups than these may keep to a pattern by chance."""
LARGEST_SIDE = 64
FULL = 0.99
"""Share of full blocks among nonzero ones, and of nonzeros in a full block."""


@attrs.frozen(kw_only=True)
class WeightPattern:
    """What was found in the weights of a layer."""

    density: float
    """Share of nonzeros."""
    n: int = 0
    m: int = 0
    """`n` of `m` words; 0: no such pattern."""
    of_outputs: bool = False
    """Whether these words are of neighbouring outputs, which no density model says."""
    block: tuple[int, int, int] | None = None
    """Words of a block: rows, columns and taps (all of them, or one)."""
    blocks: int = 0
    """Blocks of the tensor, those that are cut off at an edge included."""
    kept: int = 0
    """Blocks with nonzeros."""

    @property
    def label(self) -> str:
        """As reports have it: "2:4", "8 x 8 blocks", "dense", "uniform"."""
        if self.m:
            return f"{self.n}:{self.m}{' of outputs' * self.of_outputs}"
        if self.block:
            rows, columns, taps = self.block
            return f"{rows} x {columns} blocks" if taps == 1 else f"{rows} x {columns} kernels"
        return "dense" if self.density >= DENSE else "uniform"

    def table(self, size: int, block: tuple[int, ...]) -> Any:
        """The density of a tensor of `size` words; `block` has the words of a block in the order of its ranks.

        A number, or the table of a density model; 1.0 if dense.
        """
        if self.m and not self.of_outputs:
            return {"type": "n-of-m", "n": self.n, "m": self.m}
        if self.block:
            return {"type": "block", "density": share(self.kept, self.blocks), "block": list(block)}
        return 1.0 if self.density >= DENSE else share(max(1, round(self.density * size)), size)


def share(count: int, of: int) -> float:
    """A decimal d with ceil(d * of) == count, which is how density models count: count / of to four places or more."""
    for digits in range(4, 18):
        for found in (round(count / of, digits), math.floor(count / of * 10**digits) / 10**digits):
            if 0 < found <= 1 and math.ceil(found * of) == count:
                return found
    return float(np.nextafter(count / of, 0))


def found_in(weights: Array) -> WeightPattern:
    """The pattern of weights (rows, columns, taps). N:M runs along the reduction: over columns, or over columns and taps
    as they lie in PyTorch's weights, taps fastest. Of blocks and groups that both fit, the larger is reported; where
    neither does, N:M along the rows."""
    mask = np.ascontiguousarray(weights != 0)
    density = float(np.count_nonzero(mask) / mask.size)
    if density >= DENSE:
        return WeightPattern(density=density)
    area, block = max(_blocks(mask), key=lambda found: found[0], default=((0, 0, 0), {}))
    views = [mask.transpose(0, 2, 1), mask.reshape(len(mask), -1)] if mask.shape[2] > 1 else [mask[:, :, 0]]
    for m in GROUPS:
        for view in views:
            if m > area[0] and (n := _n_of(view, m, density)):
                return WeightPattern(density=density, n=n, m=m)
    for m in GROUPS if not block else ():
        if n := _n_of(mask.transpose(1, 2, 0), m, density):
            return WeightPattern(density=density, n=n, m=m, of_outputs=True)
    return WeightPattern(density=density, **block)


def _n_of(view: Array, m: int, density: float) -> int:
    """The N of an N:M pattern in aligned groups along the last axis; 0 if there is none."""
    length = view.shape[-1]
    whole = length // m * m
    if length < m or view.size // length * -(-length // m) < FEWEST_GROUPS:
        return 0
    words = view.view(np.uint8)
    groups = sum(words[..., place:whole:m] for place in range(m))
    rest = words[..., whole:].sum(axis=-1, dtype=np.uint8)
    n = max(int(np.max(groups)), int(rest.max()))
    return n if n < m and density >= FILLED * n / m else 0


def _blocks(mask: Array) -> Iterator[tuple[tuple[int, int, int], dict[str, Any]]]:
    """The sizes of blocks that the mask keeps to: what makes one preferable (large, square, tall), and its numbers."""
    rows, columns, taps = mask.shape
    kernels = mask.sum(axis=2, dtype=np.int32)[:, :, None]
    for counts, words in ((kernels, taps), (mask.astype(np.int32), 1))[: 1 + (taps > 1)]:
        tall = counts
        for height in _sides(rows):
            tall = tall if height == 1 else _halved(tall, 0)
            wide = tall
            for width in _sides(columns):
                wide = wide if width == 1 else _halved(wide, 1)
                area, kept = height * width * words, int(np.count_nonzero(wide))
                size = np.outer(_lengths(rows, height), _lengths(columns, width))[:, :, None] * words
                told = area > 1 and kept not in (0, wide.size)
                if told and np.count_nonzero(wide >= FULL * size) >= FULL * kept:
                    block = (height, width, words)
                    yield (area, -max(height, width), height), {"block": block, "blocks": wide.size, "kept": kept}


def _sides(length: int) -> list[int]:
    return [1 << power for power in range(7) if 1 << power <= min(length, LARGEST_SIDE)]


def _lengths(length: int, side: int) -> Array:
    """Words of every block along a rank; the last one may be cut off."""
    return np.minimum(side, length - np.arange(0, length, side))


def _halved(counts: Array, axis: int) -> Array:
    """Sums of neighbours along a rank; the last one may have none."""
    even, odd = (slice(None),) * axis + (slice(0, None, 2),), (slice(None),) * axis + (slice(1, None, 2),)
    found = counts[even].copy()
    other = counts[odd]
    found[(slice(None),) * axis + (slice(0, other.shape[axis]),)] += other
    return found
