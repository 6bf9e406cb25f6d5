"""What the pages share: words and numbers, and templates.

A template is the Markdown file of a page, beside the module that computes what it says: `{name}` and `{study.budget:,}` are
fields, as in `str.format`, a list of rows is a
table. A paragraph or an entry of a list goes over several lines of it; in the page it is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparsemap.files import markdown_table
from sparsemap.plots import Report as Report

from .runs import StudyRun

UJ = 1e6
"""pJ per uJ: the map-space study prints cycles * uJ."""
WHOLE = re.compile(r"$|#|\||\{\w+(:[<>]*)?\}$")
"""Lines that nothing is added to: empty ones, headings, tables, and fields alone."""
OWN = re.compile(rf"{WHOLE.pattern}|- ")
"""Lines that are added to none: these, and entries of lists."""


class MarkdownTable(list[Sequence[str]]):
    """Rows, the first of them the head; `{table:<>}` aligns them as `markdown_table` says."""

    def __format__(self, aligned: str) -> str:
        return markdown_table(self, aligned) if aligned else markdown_table(self)


def page(module: str, name: str, template: str = "", **fields: Any) -> str:
    """The page `name`: the template of this name, or another one, beside a module (its `__file__`), with its fields."""
    lines: list[str] = []
    for line in Path(module).with_name(f"{template or name}.md").read_text("utf-8").splitlines():
        if lines and not OWN.match(line) and not WHOLE.match(lines[-1]):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    known = {key: MarkdownTable(x) if isinstance(x, list) else x for key, x in fields.items()}
    text = "\n".join(lines).format(name=name, **known)
    return re.sub("\n{3,}", "\n\n", text.rstrip()) + "\n"


def number(value: float) -> str:
    """Three significant digits, as in the paper's table; a dash for infinity and NaN."""
    return f"{value:.2e}".replace("e+", "e") if math.isfinite(value) else "-"


def times_exact(value: float) -> str:
    """A ratio near 1."""
    return f"{value:.3f}x" if math.isfinite(value) else "-"


def effort(runs: Sequence[StudyRun]) -> str:
    """What each of some searches may spend, and how often: 2,000 designs, 3 seeds."""
    return f"{runs[0].result['budget']:,} designs, {counted(len({run.seed for run in runs}), 'seed')}"


def counted(count: int, what: str) -> str:
    """1 seed, 3 seeds."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
