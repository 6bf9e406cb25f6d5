"""Codes of ranks: what a decoder knows before it reads, bits that are written, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from .base import Array
from .sparsity import Outer, name_bits

if TYPE_CHECKING:
    pass


def least_bits(values: Array | float) -> Array:
    """Bits that tell so many values apart; 0 of one value."""
    from ...inner.arrays import log2s  # with the compiled unit, which a start does without

    return np.ceil(log2s(np.maximum(values, 1.0)))


@attrs.frozen
class RankShape:
    """What a decoder knows of a rank without any bit."""

    length: int
    """Positions of a fiber; blocks, of a format that stores them together."""
    coord_bits: int
    """Bits that name a position."""
    offset_bits: int
    """Bits of an offset into the tile below."""
    outer: Outer = attrs.field(factory=Outer)
    usual: float = 0.5
    """Share of the positions that hold something in the whole tensor: what widths may be chosen by, once per tensor."""
    even: int = 0
    """Positions of every `group` of the tensor that hold something, if they are equally many; 0: they are not."""

    @classmethod
    def of(
        cls, length: int, words: int, outer: Outer, usual: float = 0.5, exact: bool = False, even: int = 0
    ) -> RankShape:
        """Of fibers with so many `words` below; `exact`: widths as they are, not rounded up to powers of two."""
        values = float(length), words + 1.0
        coord, offset = (max(1, int(least_bits(n))) if exact else int(name_bits(n)) for n in values)
        return cls(length, coord, offset, outer, usual, even)


@attrs.frozen(eq=False)
class Code:
    """The bits of n fibers of a rank, one after the other."""

    bits: Array
    """(sum of `sizes`,) uint8, 0 or 1."""
    sizes: Array
    """(n,) bits of each fiber; what a tile has once counts with its first fiber."""
    entries: Array | None = None
    """(n,) entries of each fiber, which offsets of the rank above count; None: fibers end without them."""

    @classmethod
    def of(cls, count: int, fields: Sequence[tuple[Array, Array, int]], entries: Array | None = None) -> Code:
        """Of `count` fibers from fields: (m,) the fiber of each, ascending; its values; and bits of each. A fiber has its
        values of the first field first. Raises ValueError where a value does not fit."""
        fields = [field for field in fields if field[2] and len(field[0])]
        for _, values, bits in fields:
            wrong = values[(values >> bits != 0) | (values < 0)]
            if wrong.size:
                raise ValueError(f"{wrong[0]} does not fit in {bits} bits")
        none = np.zeros(0, dtype=np.int64)
        fiber = np.concatenate([none, *(fiber for fiber, _, _ in fields)])
        value = np.concatenate([none, *(values for _, values, _ in fields)])
        widths = np.concatenate([none, *(np.full(len(fiber), width) for fiber, _, width in fields)])
        order = np.argsort(fiber, kind="stable")
        value, ends = value[order], np.cumsum(widths[order])
        shift = np.repeat(ends, widths[order]) - 1 - np.arange(ends[-1] if len(ends) else 0)
        stream = (np.repeat(value, widths[order]) >> shift & 1).astype(np.uint8)
        return cls(stream, np.bincount(fiber, widths, count).astype(np.int64), entries)


class BitReader:
    """Bits from the front to the back."""

    def __init__(self, bits: Array) -> None:
        self.bits, self.at = np.asarray(bits, dtype=np.uint8), 0
        self._digits = (self.bits + np.uint8(ord("0"))).tobytes()

    def take(self, width: int) -> int:
        """The next number of so many bits; raises ValueError past the end."""
        self._check(stop := self.at + width)
        digits, self.at = self._digits[self.at : stop], stop
        return int(digits or b"0", base=2)

    def many(self, count: int, width: int) -> Array:
        """The next `count` numbers of `width` bits each, (count,) int64."""
        self._check(stop := self.at + count * width)
        rows = self.bits[self.at : stop].reshape(count, width) if count else np.zeros((0, width), dtype=np.int64)
        self.at = stop
        return rows @ (1 << np.arange(width - 1, -1, -1, dtype=np.int64))

    def _check(self, stop: int) -> None:
        if stop > len(self.bits):
            raise ValueError(f"the bits end: {stop} needed, {len(self.bits)} there")
