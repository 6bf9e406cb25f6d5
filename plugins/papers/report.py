"""A table and a figure on their way to files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.files import csv_text, write_text
from sparsemap.plots import Figure, save

from .runs import Run

MISSING = "no figure was drawn: matplotlib, of the extra `plots`, is not installed"


@attrs.frozen
class Report:
    """What a command writes."""

    name: str
    headline: str
    """The outcome in a line or a few."""
    text: str
    """Markdown; the figure goes below its first heading."""
    rows: Sequence[Mapping[str, Any]]
    """The CSV."""
    draw: Callable[[], Figure]

    def write(self, folder: Path) -> list[Path]:
        """Writes NAME.md, NAME.csv, NAME.png and NAME.svg; each file whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        try:
            pictures = save(self.draw, folder, self.name)
        except ImportError:
            pictures = []
        picture = f"![{self.name}]({self.name}.png)\n\n" if pictures else f"({MISSING})\n\n"
        title, _, rest = self.text.partition("\n\n")
        write_text(folder / f"{self.name}.md", f"{title}\n\n{picture}{rest}")
        write_text(folder / f"{self.name}.csv", csv_text(self.rows))
        return [folder / f"{self.name}.md", folder / f"{self.name}.csv", *pictures]


def number(value: float) -> str:
    """Three significant digits, as in the paper's table; a dash for infinity and NaN."""
    return f"{value:.2e}".replace("e+", "e") if math.isfinite(value) else "-"


def times_exact(value: float) -> str:
    """A ratio near 1."""
    return f"{value:.3f}x" if math.isfinite(value) else "-"


def effort(runs: Sequence[Run]) -> str:
    """What each of some searches may spend, and how often: 2,000 designs, 3 seeds."""
    return f"{runs[0].result['budget']:,} designs, {counted(len({run.seed for run in runs}), 'seed')}"


def counted(count: int, what: str) -> str:
    """1 seed, 3 seeds."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
