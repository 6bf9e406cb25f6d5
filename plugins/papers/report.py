"""A table and a figure on their way to files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from sparsemap.spec import toml_io

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MISSING = "no figure was drawn: matplotlib is missing, pip install 'sparsemap[plots]'"


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
        pictures = self._pictures(folder)
        picture = f"![{self.name}]({self.name}.png)\n\n" if pictures else f"({MISSING})\n\n"
        title, _, rest = self.text.partition("\n\n")
        toml_io.write_text_atomic(folder / f"{self.name}.md", f"{title}\n\n{picture}{rest}")
        toml_io.write_text_atomic(folder / f"{self.name}.csv", csv_text(self.rows))
        return [folder / f"{self.name}.md", folder / f"{self.name}.csv", *pictures]

    def _pictures(self, folder: Path) -> list[Path]:
        try:
            from .style import save
        except ImportError:
            return []
        return save(self.draw, folder, self.name)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line per row, under the keys of all rows, full precision; infinity and NaN are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else ""
    return value


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """The columns from `left` on are numbers."""
    rule = ["---" if column < left else "---:" for column in range(len(head))]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def number(value: float) -> str:
    """Three significant digits, as in the paper's table; a dash for infinity and NaN."""
    return f"{value:.2e}".replace("e+", "e") if math.isfinite(value) else "-"


def times(value: float) -> str:
    """A ratio."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}x" if value >= 1000 else f"{value:.1f}x" if value >= 10 else f"{value:.2f}x"


def times_exact(value: float) -> str:
    """A ratio near 1."""
    return f"{value:.3f}x" if math.isfinite(value) else "-"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %" if math.isfinite(value) else "-"


def counted(count: int, what: str) -> str:
    """1 seed, 3 seeds."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
