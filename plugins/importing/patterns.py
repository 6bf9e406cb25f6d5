"""Density model of given weights: dense, N:M, blocks, or nonzeros anywhere.

Weights are viewed as outputs x reduced channels x taps of the window, (rows, columns, taps). Nothing is fitted: a
pattern is reported only if the weights follow it, and a share of nonzeros is exact."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

DENSE = 0.995
"""Share of nonzeros above which weights count as dense."""
GROUPS = (4, 8, 16)
"""Values of M searched for N:M patterns."""
FILLED = 0.95
"""Least share of the allowed nonzeros in an N:M pattern."""
FEWEST_GROUPS = 64
"""Fewest groups of a pattern; fewer may follow it by chance."""
LARGEST_SIDE = 64
FULL = 0.99
"""Least share of full blocks among nonzero blocks, and of nonzeros in a full block."""


@attrs.frozen(kw_only=True)
class WeightPattern:
    """Sparsity pattern in the weights of a layer."""

    density: float
    n: int = 0
    m: int = 0
    """At most `n` nonzeros in `m` words; 0: no N:M pattern."""
    of_outputs: bool = False
    """Whether a group spans neighbouring outputs, a pattern without a density model."""
    block: tuple[int, int, int] | None = None
    """Rows, columns and taps of a block (all taps, or one)."""
    blocks: int = 0
    """Blocks of the tensor, including blocks cut off at an edge."""
    kept: int = 0
    """Blocks with nonzeros."""

    @property
    def label(self) -> str:
        """Name in reports: "2:4", "8 x 8 blocks", "dense", "uniform"."""
        if self.m:
            return f"{self.n}:{self.m}{' of outputs' * self.of_outputs}"
        if self.block:
            rows, columns, taps = self.block
            return f"{rows} x {columns} blocks" if taps == 1 else f"{rows} x {columns} kernels"
        return "dense" if self.density >= DENSE else "uniform"

    def table(self, size: int, block: tuple[int, ...]) -> Any:
        """Density of a tensor of `size` words; `block` has the words of a block in the order of the ranks.

        A number, or the table of a density model; 1.0 if dense."""
        if self.m and not self.of_outputs:
            return {"type": "n-of-m", "n": self.n, "m": self.m}
        if self.block:
            return {"type": "block", "density": share(self.kept, self.blocks), "block": list(block)}
        return 1.0 if self.density >= DENSE else share(max(1, round(self.density * size)), size)


def share(count: int, of: int) -> float:
    """A decimal d with ceil(d * of) == count, the rounding of density models: count / of to four places or more."""
    for digits in range(4, 18):
        for found in (round(count / of, digits), math.floor(count / of * 10**digits) / 10**digits):
            if 0 < found <= 1 and math.ceil(found * of) == count:
                return found
    return float(np.nextafter(count / of, 0))


def found_in(weights: Array) -> WeightPattern:
    """The pattern of weights (rows, columns, taps).

    N:M runs along the reduction: over columns, or over columns and taps in the order of PyTorch's weights, taps
    fastest. If both blocks and groups fit, the larger is reported; if neither does, N:M along the rows is tried."""
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
    """N of an N:M pattern in aligned groups along the last axis; 0 without a pattern."""
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
    """Fitting block sizes of the mask: rank of preference (large, square, tall), and the pattern's fields."""
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
    """Words of every block along a rank; the last block may be cut off."""
    return np.minimum(side, length - np.arange(0, length, side))


def _halved(counts: Array, axis: int) -> Array:
    """Sums of neighbours along a rank; the last word may have no neighbour."""
    even, odd = (slice(None),) * axis + (slice(0, None, 2),), (slice(None),) * axis + (slice(1, None, 2),)
    found = counts[even].copy()
    other = counts[odd]
    found[(slice(None),) * axis + (slice(0, other.shape[axis]),)] += other
    return found
