"""Codes of ranks: shapes known to a decoder before reading, bits written, and reading of bits."""

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
    """Bits to distinguish `values` values; 0 for a single value."""
    from ...inner.arrays import log2s  # with the compiled unit, which a start does without

    return np.ceil(log2s(np.maximum(values, 1.0)))


@attrs.frozen
class RankShape:
    """Facts about a rank known to a decoder before any bit is read."""

    length: int
    """Positions of a fiber, or blocks if the format stores blocks of positions."""
    coord_bits: int
    """Bits of a coordinate."""
    offset_bits: int
    """Bits of an offset into the tile below."""
    outer: Outer = attrs.field(factory=Outer)
    usual: float = 0.5
    """Fill of the rank in the whole tensor: share of non-empty positions. Formats may choose widths by this share, once
    per tensor."""
    even: int = 0
    """Non-empty positions of every `group` of the tensor, if equal in all groups; otherwise 0."""

    @classmethod
    def of(
        cls, length: int, words: int, outer: Outer, usual: float = 0.5, exact: bool = False, even: int = 0
    ) -> RankShape:
        """Shape of a rank of fibers of `length` positions, with `words` words below. With `exact`, widths are not
        rounded up to powers of two."""
        values = float(length), words + 1.0
        coord, offset = (max(1, int(least_bits(n))) if exact else int(name_bits(n)) for n in values)
        return cls(length, coord, offset, outer, usual, even)


@attrs.frozen(eq=False)
class Code:
    """Bits of n fibers of a rank, fiber after fiber."""

    bits: Array
    """(sum of `sizes`,) uint8, 0 or 1."""
    sizes: Array
    """(n,) bits of each fiber; bits stored once per tile count with the tile's first fiber."""
    entries: Array | None = None
    """(n,) entries of each fiber, counted by offsets of the rank above; None: fibers end without offsets."""

    @classmethod
    def of(cls, count: int, fields: Sequence[tuple[Array, Array, int]], entries: Array | None = None) -> Code:
        """Code of `count` fibers from fields. A field has the fiber of each entry (m,), ascending, its value, and the
        bits per value. Within a fiber, values of the first field come first. Raises ValueError if a value does not fit."""
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
    """Reader of bits from front to back."""

    def __init__(self, bits: Array) -> None:
        self.bits, self.at = np.asarray(bits, dtype=np.uint8), 0
        self._digits = (self.bits + np.uint8(ord("0"))).tobytes()

    def take(self, width: int) -> int:
        """The next number, of `width` bits; raises ValueError past the end."""
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
