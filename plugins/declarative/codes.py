"""How a fiber says which of its positions it has: the four lists that formats in TOML are made of (docs/plugins/format.md).

`mean_bits.py` says how many bits a list writes in the mean; `codec.py` writes and reads them. Where a fiber ends is told by its
length (`length`), by a number before it (`count`), by an entry that names no position (`marker`), by one number for all
fibers of a tile (`same`), by nothing if all groups of the tensor have equally many (`even`), or by the rank above
(`parent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array, Outer


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

    @property
    def told(self) -> str:
        """What the list itself writes to tell where a fiber ends, one of `ENDS`."""
        return "" if self.ended or self.end == "length" else self.end

    def readable(self, known: Expected) -> Array:
        """(N,) bool: the fields tell all that a fiber of this length may hold."""
        return np.ones(len(known.fibers), dtype=bool)


class All(PositionList):
    """Every position."""

    complete: ClassVar[bool] = True


class Mask(PositionList):
    """A bit for every position; or more, of which the others are zero."""

    def readable(self, known: Expected) -> Array:
        return known.width >= 1.0


class Counted(PositionList):
    """A list of entries, with all that tells how many."""

    @property
    def known(self) -> bool:
        """Whether it has no field that tells how many: all groups have equally many, or the rank above tells."""
        return self.ended or (self.end == "even" and self.even > 0)

    def readable(self, known: Expected) -> Array:
        if self.told not in COUNTS:
            return np.ones(len(known.fibers), dtype=bool)
        return (2.0**known.count_bits > known.length - self.filled) | (known.even & (self.end == "even"))


class Coordinates(Counted):
    """The position of every one that is there."""

    ends: ClassVar[tuple[str, ...]] = ("count", "marker", "same", "even", "parent")

    def readable(self, known: Expected) -> Array:
        return super().readable(known) & (2.0**known.width >= known.length + (self.told == "marker"))


class Runs(Counted):
    """The number of empty positions before every one that is there; longer runs take escapes."""

    ends: ClassVar[tuple[str, ...]] = ("length", "count", "parent")

    def readable(self, known: Expected) -> Array:
        return super().readable(known) & (known.width >= 1.0)


COUNTS = "same", "even", "count", "parent"
"""Ends that take a number .."""
ENDS = "", "marker", *COUNTS
""".. and all that a list may write."""
LISTS: Mapping[str, type[PositionList]] = {"all": All, "mask": Mask, "coordinates": Coordinates, "runs": Runs}


def position_list(name: str, end: str, outer: Outer, even: int = 0) -> PositionList:
    """The list of fibers of which so much is known."""
    cls = LISTS[name]
    end, ended = end or cls.ends[0], outer.ends and issubclass(cls, Counted)
    return cls(end, ended, outer.filled and not ended and end in ("count", "same", "even"), even)
