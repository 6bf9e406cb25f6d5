"""Names and tables as text of Markdown pages."""

from __future__ import annotations

import re

from .files import Cells, marks_of, padded


def markdown_text(text: str) -> str:
    """A name as text of a Markdown page: on one line, with bars and HTML tags escaped."""
    text = " ".join(text.split()) if "\n" in text or "\r" in text else text
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text).replace("|", "\\|")


def markdown_table(rows: Cells, align: str = "<>") -> str:
    """A table with the first row as head and cells as `markdown_text`; `align` as in `aligned`."""
    head, *below = padded([[markdown_text(cell) for cell in row] for row in rows], align)
    marks = marks_of(align, len(head))
    rule = ["-" * (len(cell) - 1) + (":" if mark == ">" else "-") for cell, mark in zip(head, marks, strict=True)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *below))
