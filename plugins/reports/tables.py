"""Tables of results, for texts and pages alike, with the values of all printed numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from sparsemap.files import percent, times
from sparsemap.spec.units import format_count, format_energy

from .wording import CHIP_COSTS


@attrs.frozen
class PrintedNumber:
    """A number as printed, with its value; `of` is its place in the source file, such as `levels.0.cycles`."""

    value: float
    text: str
    of: str = ""


@attrs.frozen
class PageLink:
    """A text with a link to a section of the page."""

    text: str
    anchor: str


Cell = str | PrintedNumber | PageLink


@attrs.frozen
class PageTable:
    block: ClassVar[str] = "table"
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    tips: Sequence[str] = ()
    """Optional tooltip per row."""

    @property
    def numeric(self) -> list[bool]:
        """By column, whether it has numbers."""
        return [any(isinstance(row[i], PrintedNumber) for row in self.rows) for i in range(len(self.head))]

    def lines(self, untold: Iterable[str] = (), align: str = "", **how: Any) -> list[str]:
        """The rows as text, numbers to the right (or by `align`), without the `untold` heads.

        `how` are further arguments of `output.table`."""
        from sparsemap.cli import output

        head = ["" if name in untold else name for name in self.head]
        texts = [[x if isinstance(x, str) else x.text for x in row] for row in self.rows]
        return output.table([head, *texts], align or "".join("<>"[x] for x in self.numeric), **how).splitlines()


def scientific(value: float) -> str:
    return f"{value:.3e}"


def share(value: float) -> str:
    return percent(value, 1)


HOW: Mapping[str, Callable[[float], str]] = {
    "edp": scientific, "energy_pj": format_energy, "cycles": format_count, "gap": times,
    **CHIP_COSTS, "share_of_energy_pj": share, "share_of_cycles": share,
}  # fmt: skip


def number(value: float | None, how: Callable[[float], str], of: str = "") -> Cell:
    """A printed number, or a dash without a finite value."""
    return "-" if value is None or not math.isfinite(value) else PrintedNumber(float(value), how(value), of)


def numbers(row: Mapping[str, Any], of: str | None, keys: Sequence[str] = ("edp", "energy_pj", "cycles")) -> list[Cell]:
    """Numbers of a result; `of` is the place of its table, such as `front.2.`, or None for numbers in no file."""
    return [number(row.get(key), HOW[key], "" if of is None else f"{of}{key}") for key in keys]
