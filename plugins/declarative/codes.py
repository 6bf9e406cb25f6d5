"""How a fiber says which of its positions it has: the four lists that formats in TOML are made of (docs/plugins/format.md).

A list writes fields of whole bits, reads them again, and knows how many it writes in the mean. Where a fiber ends is told
by its length (`length`), by a number before it (`count`), by an entry that names no position (`marker`), by one number for
all fibers of a tile (`same`), by nothing if all groups of the tensor have equally many (`even`), or by the rank above
(`parent`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array, BitReader, Outer

from . import runs

Fields = list[tuple[Array, Array, int]]
"""As `Code.of` takes them."""


@attrs.frozen(eq=False)
class Expected:
    """What is known of the fibers of a list, (N,) each."""

    fibers: Array
    """Fibers that are there."""
    slots: Array
    """All of them."""
    length: Array
    entries: Array
    """Expected positions that hold something, of all fibers."""
    width: Array
    """Bits of an entry."""
    count_bits: Array
    """Bits of the number of entries of a fiber."""
    even: Array
    """Bool: all fibers of the tensor have equally many."""


@attrs.frozen
class PositionList:
    """All positions are there: nothing is written."""

    ends: ClassVar[tuple[str, ...]] = ("length",)
    """How its fibers may end; the first unless the spec says."""
    complete: ClassVar[bool] = False
    """Whether it leaves nothing out."""

    end: str = "length"
    ended: bool = False
    """Whether the rank above tells where a fiber ends, so that the list does not."""
    filled: bool = False
    """Whether every fiber holds something."""
    even: int = 0
    """Entries of every fiber of the tensor, if they are equally many and that is known; else 0."""

    def bits(self, known: Expected) -> Array:
        """Expected bits of all fibers, (N,)."""
        return np.zeros(len(known.fibers))

    def readable(self, known: Expected) -> Array:
        """(N,) bool: the fields tell all that a fiber of this length may hold."""
        return np.ones(len(known.fibers), dtype=bool)

    def write(self, rows: Array, width: int, count_bits: int, tiles: Array) -> tuple[Fields, Array | None]:
        """Fields of the fibers (n, L) bool, and (n,) entries that an offset would count."""
        return [], None

    def read(self, bits: BitReader, length: int, width: int, count_bits: int, tile: Array, ends: Array | None) -> Array:
        """`rows` again."""
        return np.ones((len(tile), length), dtype=bool)


class All(PositionList):
    """Every position."""

    complete: ClassVar[bool] = True


class Mask(PositionList):
    """A bit for every position; or more, of which the others are zero."""

    def bits(self, known: Expected) -> Array:
        return known.fibers * known.length * known.width

    def readable(self, known: Expected) -> Array:
        return known.width >= 1.0

    def write(self, rows: Array, width: int, count_bits: int, tiles: Array) -> tuple[Fields, Array | None]:
        fiber = np.repeat(np.arange(len(rows)), rows.shape[1])
        return [(fiber, rows.reshape(-1).astype(np.int64), width)], None

    def read(self, bits: BitReader, length: int, width: int, count_bits: int, tile: Array, ends: Array | None) -> Array:
        return bits.many(len(tile) * length, width).reshape(len(tile), length) > 0


class Counted(PositionList):
    """A list of entries, with all that tells how many."""

    def header(self, known: Expected, entry_bits: Array) -> Array:
        """Expected bits of what tells the ends."""
        if self.ended or self.end == "length":
            return np.zeros(len(known.fibers))
        if self.end == "marker":
            return known.fibers * entry_bits
        counts = known.fibers * known.count_bits
        if self.end == "same":
            return np.minimum(known.fibers, 1.0) * known.count_bits
        return np.where(known.even, 0.0, counts) if self.end == "even" else counts

    def readable(self, known: Expected) -> Array:
        if self.ended or self.end in ("length", "marker"):
            return np.ones(len(known.fibers), dtype=bool)
        return (2.0**known.count_bits > known.length - self.filled) | (known.even & (self.end == "even"))

    def counted(self, number: Array, length: int, count_bits: int, tiles: Array) -> Fields:
        """Fields before the entries; `number` (n,) entries of each fiber."""
        if self.ended or self.end in ("length", "marker"):
            return []
        if self.end == "even" and self.even:
            if np.any(number != self.even):
                raise ValueError(
                    f"{number[number != self.even][0]} of a group hold something, where all have {self.even}"
                )
            return []
        begins = np.flatnonzero(np.diff(tiles, prepend=-1)) if self.end == "same" else np.arange(len(number))
        return [(begins, number[begins] - self.filled, count_bits)]

    def numbers(self, bits: BitReader, count_bits: int, tiles: Array, ends: Array | None) -> Iterator[int | None]:
        """How many entries each fiber has, when its turn comes; None: its entries tell."""
        if self.ended:
            assert ends is not None
            yield from ends.tolist()
            return
        number: int | None = self.even if self.end == "even" and self.even else None
        for fiber, tile in enumerate(tiles):
            first = self.end == "same" and (fiber == 0 or tile != tiles[fiber - 1])
            if first or self.end == "count" or (self.end == "even" and not self.even):
                number = bits.take(count_bits) + self.filled
            yield number


class Coordinates(Counted):
    """The position of every one that is there."""

    ends: ClassVar[tuple[str, ...]] = ("count", "marker", "same", "even", "parent")

    def bits(self, known: Expected) -> Array:
        return known.entries * known.width + self.header(known, known.width)

    def readable(self, known: Expected) -> Array:
        marked = self.end == "marker" and not self.ended
        return super().readable(known) & (2.0**known.width >= known.length + marked)

    def write(self, rows: Array, width: int, count_bits: int, tiles: Array) -> tuple[Fields, Array | None]:
        fiber, at = np.nonzero(rows)
        number = rows.sum(axis=1)
        fields = [*self.counted(number, rows.shape[1], count_bits, tiles), (fiber, at, width)]
        if self.end == "marker" and not self.ended:
            fields.append((np.arange(len(rows)), np.full(len(rows), 2**width - 1), width))
        return fields, number

    def read(self, bits: BitReader, length: int, width: int, count_bits: int, tile: Array, ends: Array | None) -> Array:
        found = np.zeros((len(tile), length), dtype=bool)
        for fiber, number in enumerate(self.numbers(bits, count_bits, tile, ends)):
            if number is None:
                while (at := bits.take(width)) < 2**width - 1:
                    found[fiber, at] = True
                continue
            found[fiber, bits.many(number, width)] = True
        return found


class Runs(Counted):
    """The number of empty positions before every one that is there; longer runs take escapes."""

    ends: ClassVar[tuple[str, ...]] = ("length", "count", "parent")

    def bits(self, known: Expected) -> Array:
        filled = np.clip(known.entries / (known.slots * known.length), 0.0, 1.0)
        told, width = self.ended or self.end != "length", np.maximum(known.width, 1.0)
        each = runs.tokens(known.length, filled, width, told, known.slots * known.length)
        of_none = 0.0 if told else np.ceil(known.length / (2.0**width - 1.0))
        written = np.maximum(known.slots * each - (known.slots - known.fibers) * of_none, 0.0)
        return written * known.width + self.header(known, known.width)

    def readable(self, known: Expected) -> Array:
        return super().readable(known) & (known.width >= 1.0)

    def write(self, rows: Array, width: int, count_bits: int, tiles: Array) -> tuple[Fields, Array | None]:
        fiber, tokens = runs.write(rows, width, self.ended or self.end != "length")
        number = np.bincount(fiber, minlength=len(rows))
        return [*self.counted(number, rows.shape[1], count_bits, tiles), (fiber, tokens, width)], number

    def read(self, bits: BitReader, length: int, width: int, count_bits: int, tile: Array, ends: Array | None) -> Array:
        found = np.zeros((len(tile), length), dtype=bool)
        for fiber, number in enumerate(self.numbers(bits, count_bits, tile, ends)):
            start = bits.at
            if number is None:
                number = min(length, (len(bits.bits) - start) // width)
                positions, used = runs.read(bits.many(number, width).tolist(), length, width, None)
                bits.at = start + used * width
            else:
                positions, _ = runs.read(bits.many(number, width).tolist(), length, width, number)
            found[fiber, positions] = True
        return found


LISTS: Mapping[str, type[PositionList]] = {"all": All, "mask": Mask, "coordinates": Coordinates, "runs": Runs}


def position_list(name: str, end: str, outer: Outer, even: int = 0) -> PositionList:
    """The list of fibers of which so much is known."""
    cls = LISTS[name]
    end, ended = end or cls.ends[0], outer.ends and issubclass(cls, Counted)
    return cls(end, ended, outer.filled and not ended and end in ("count", "same", "even"), even)
