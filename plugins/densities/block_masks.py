"""Weights pruned in blocks of output and input channels, with all taps of the kernel: balanced, or by a mask.

A tensor such as Q[k, c, r, s] is cut into blocks of its first two ranks; the other ranks lie within blocks. Balanced
masks keep equally many blocks in every block row (all blocks of the same outputs), or in every block column. Tiles are
aligned. In a rank, a tile as long as a block or a multiple holds whole blocks; a shorter tile lies within one block. In
each row of blocks touched by a tile, the number of kept blocks is hypergeometric, and rows are independent. The total
is their convolution, and so is the probability of an empty part of the tile.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.errors import SpecError
from sparsemap.inner.arrays import power
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .atoms import repeated
from .common import by, chosen, expanded, need_two_ranks, padded
from .data import DataOccupancy
from .hypergeometric import none, table
from .tensor_files import Limits, read_nonzeros
from .volumes import share, volume

Sides = tuple[int, int]


@lru_cache(maxsize=4096)
def _lines(total: int, kept: int, touched: int, lines: int) -> Array:
    """Probabilities of 0, 1, ... kept blocks over some lines of blocks, with `touched` of `total` places in each."""
    one = np.zeros(touched + 1)
    count, chance = table(total, kept, touched)
    one[count] = chance
    return _sum(one, lines)


def _sum(one: Array, count: int) -> Array:
    """Distribution of the sum of `count` independent draws."""
    return repeated(one, count, np.convolve, np.ones(1))


@attrs.frozen
class BalancedOccupancy(Occupancy):
    """Every line of blocks, a block row or a block column, keeps `kept` random blocks."""

    by_shape = True

    shape: tuple[int, ...]
    block: Sides
    along: int
    """Rank along which the blocks of a line are arranged: 1 for block rows, 0 for block columns."""
    kept: int

    @property
    def places(self) -> int:
        """Number of blocks in a line."""
        return self._touched(self.shape)[1]

    @property
    def density(self) -> float:  # type: ignore[override]
        return self.kept / self.places

    def _touched(self, tile: tuple[int, ...]) -> Sides:
        """Number of block lines touched by a tile, and blocks touched per line."""
        found = [-(-min(int(t), s) // b) for t, s, b in zip(tile, self.shape, self.block, strict=False)]
        return found[1 - self.along], found[self.along]

    def _words(self, tile: tuple[int, ...]) -> float:
        """Words of a touched block inside the tile."""
        return volume(tile) / math.prod(self._touched(tile))

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        lines, places = self._touched(tile)
        chance = _lines(self.places, self.kept, places, lines)
        found = np.flatnonzero(chance > 0)
        return np.rint(found * self._words(tile)).astype(np.int64), chance[found] / chance[found].sum()

    def empty(self, tile: tuple[int, ...]) -> float:
        lines, places = self._touched(tile)
        return power(float(none(self.places, self.kept, places)), lines)

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """P(part empty | j blocks) = P(j blocks, none in the part) / P(j blocks)."""
        lines, places = self._touched(tile)
        inner_lines, inner = (min(a, b) for a, b in zip(self._touched(sub_tile), (lines, places), strict=True))
        total = self.places
        beside = np.zeros(places + 1)  # chances of i blocks in a line that has none among the first `inner` places
        if self.kept <= total - inner:
            count, chance = table(total - inner, self.kept, places - inner)
            beside[count] = chance * float(none(total, self.kept, inner))
        both = np.convolve(_sum(beside, inner_lines), _lines(total, self.kept, places, lines - inner_lines))
        whole = _lines(total, self.kept, places, lines)
        j = np.rint(np.asarray(k) / self._words(tile)).astype(np.int64)
        return np.clip(np.where(whole[j] > 0, both[j] / np.where(whole[j] > 0, whole[j], 1), 0.0), 0.0, 1.0)

    def largest(self, tile: tuple[int, ...]) -> float:
        lines, places = self._touched(tile)
        return float(np.rint(lines * min(places, self.kept) * self._words(tile)))

    def draw(self, rng: np.random.Generator) -> Array:
        kept = chosen(rng, self._touched(self.shape), self.kept)
        return expanded(kept if self.along == 1 else kept.T, self.block, self.shape)


def _block() -> Sides:
    return attrs.field(default=(8, 8), validator=attrs.validators.deep_iterable(attrs.validators.ge(1)))


@attrs.frozen(kw_only=True)
class BalancedBlock(DensityModel):
    """Blocks of outputs and inputs, with equally many kept in every block row or in every block column."""

    type_name: ClassVar[str] = "balanced-block"

    density: float = attrs.field(validator=share)
    """Share of kept blocks; the number of pruned blocks is rounded down."""
    block: Sides = _block()
    """Outputs and inputs of a block."""
    balance: Literal["rows", "columns"] = "rows"
    """Whether block rows (the same outputs) keep equally many, or block columns (the same inputs)."""

    def occupancy(self, shape: tuple[int, ...]) -> BalancedOccupancy:
        need_two_ranks(self, shape)
        along = 1 if self.balance == "rows" else 0
        block = min(self.block[0], int(shape[0])), min(self.block[1], int(shape[1]))
        count = -(-int(shape[along]) // block[along])
        kept = count - math.floor((1 - self.density) * count + 1e-9)
        return BalancedOccupancy(tuple(int(s) for s in shape), block, along, kept)


@attrs.frozen(kw_only=True)
class Gamma(DensityModel):
    """The blocks of a mask: a NumPy array (.npy) of blocks of outputs by blocks of inputs, nonzero for a kept block."""

    type_name: ClassVar[str] = "gamma"

    file: Path
    """Path relative to the spec with this key, or else to the working directory."""
    block: Sides = _block()
    """Outputs and inputs of a block."""

    @cached_property
    def mask(self) -> Array:
        """(blocks of outputs, blocks of inputs) bool mask, also used by the compiler of weight blocks."""
        size: list[int] = []

        def expect(found: tuple[int, ...]) -> None:
            if len(found) != 2:
                raise SpecError.at(self.file, "", f"holds {len(found)} ranks, expected a matrix of blocks")
            size[:] = found

        kept = read_nonzeros(self.file, Limits(expect, "512 MB"))
        mask = np.zeros(size, bool)
        mask[tuple(kept)] = True
        return mask

    def occupancy(self, shape: tuple[int, ...]) -> DataOccupancy:
        """Occupancy of a tensor of this shape; beyond the mask, the tensor is zero (`padded`)."""
        need_two_ranks(self, shape)
        blocks = tuple(-(-int(words) // size) for words, size in zip(shape, self.block, strict=False))
        more = [own - held for own, held in zip(blocks, self.mask.shape, strict=True)]
        held = [count * size for count, size in zip(self.mask.shape, self.block, strict=True)]
        if min(more) < 0 or not padded(held, shape[:2]):
            text = f"holds {by(self.mask.shape)} blocks, and the workload's tensor has {by(blocks)}"
            raise SpecError.at(self.file, "", text)
        mask = np.pad(self.mask, [(0, count) for count in more])
        whole = expanded(mask, self.block, tuple(int(words) for words in shape))
        return DataOccupancy(whole.shape, np.array(np.nonzero(whole)), str(self.file))
