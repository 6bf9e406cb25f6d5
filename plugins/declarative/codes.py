"""Encodings of the positions of a fiber: the four lists of formats in TOML (docs/plugins/format.md).

`sparsemap/inner/fiber_codes.py` computes the mean bits of a list; `codec.py` writes and reads lists. The end of a fiber
is given by its length (`length`), by a number before the fiber (`count`), by an entry without a position (`marker`), by
one number for all fibers of a tile (`same`), by nothing if all groups of the tensor have equally many entries (`even`),
or by the rank above (`parent`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from sparsemap.pieces.contracts import Outer


@attrs.frozen
class PositionList:
    """Base of lists; writes nothing, with all positions present."""

    ends: ClassVar[tuple[str, ...]] = ("length",)
    """Possible ends of fibers; the first is the default."""
    complete: ClassVar[bool] = False
    """Whether the list contains every position."""

    end: str = "length"
    ended: bool = False
    """Whether the rank above gives the ends of fibers, instead of the list."""
    filled: bool = False
    """Whether every fiber is non-empty."""
    even: int = 0
    """Known, equal number of entries of every fiber of the tensor; else 0."""

    @property
    def told(self) -> str:
        """Information written by the list on the end of a fiber, an element of `ENDS`."""
        return "" if self.ended or self.end == "length" else self.end


class All(PositionList):
    """Every position."""

    complete: ClassVar[bool] = True


class Mask(PositionList):
    """A bit for every position; with wider entries, the other bits are zero."""


class Counted(PositionList):
    """A list of entries, possibly with their number."""

    @property
    def known(self) -> bool:
        """Whether no field has the number of entries: all groups have equally many, or the rank above says it."""
        return self.ended or (self.end == "even" and self.even > 0)


class Coordinates(Counted):
    """The index of every non-empty position."""

    ends: ClassVar[tuple[str, ...]] = ("count", "marker", "same", "even", "parent")


class Runs(Counted):
    """The number of empty positions before every non-empty position; longer runs use escapes."""

    ends: ClassVar[tuple[str, ...]] = ("length", "count", "parent")


COUNTS = "same", "even", "count", "parent"
"""Ends using a number."""
ENDS = "", "marker", *COUNTS
"""All possible values of `told`."""
LISTS: Mapping[str, type[PositionList]] = {"all": All, "mask": Mask, "coordinates": Coordinates, "runs": Runs}


def position_list(name: str, end: str, outer: Outer, even: int = 0) -> PositionList:
    """List of fibers with the knowledge `outer` from the rank above."""
    cls = LISTS[name]
    end, ended = end or cls.ends[0], outer.ends and issubclass(cls, Counted)
    return cls(end, ended, outer.filled and not ended and end in ("count", "same", "even"), even)
