"""How a fiber says which of its positions it has: the four lists that formats in TOML are made of (docs/plugins/format.md).

`sparsemap/inner/fiber_codes.py` says how many bits a list writes in the mean; `codec.py` writes and reads them. Where a
fiber ends is told by its length (`length`), by a number before it (`count`), by an entry that names no position (`marker`),
by one number for all fibers of a tile (`same`), by nothing if all groups of the tensor have equally many (`even`), or by
the rank above (`parent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from sparsemap.pieces.contracts import Outer


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


class All(PositionList):
    """Every position."""

    complete: ClassVar[bool] = True


class Mask(PositionList):
    """A bit for every position; or more, of which the others are zero."""


class Counted(PositionList):
    """A list of entries, with all that tells how many."""

    @property
    def known(self) -> bool:
        """Whether it has no field that tells how many: all groups have equally many, or the rank above tells."""
        return self.ended or (self.end == "even" and self.even > 0)


class Coordinates(Counted):
    """The position of every one that is there."""

    ends: ClassVar[tuple[str, ...]] = ("count", "marker", "same", "even", "parent")


class Runs(Counted):
    """The number of empty positions before every one that is there; longer runs take escapes."""

    ends: ClassVar[tuple[str, ...]] = ("length", "count", "parent")


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
