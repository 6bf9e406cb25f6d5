"""The tables of a page as LaTeX."""

from __future__ import annotations

from collections.abc import Iterator

from sparsemap.latex import latex_table

from ..tables import PageTable
from .content import Page, compact, typeset


def latex(page: Page) -> str:
    """Every table of the page with its section as caption; charts are left out."""
    return "\n".join([f"% {page.title}: \\usepackage{{booktabs}}", *_tables(page)]) + "\n"


def _tables(page: Page) -> Iterator[str]:
    for section in page.sections:
        tables = [compact(block) for block in section.blocks if isinstance(block, PageTable) and block.rows]
        for number, table in enumerate(tables, 1):
            more = f" ({number} of {len(tables)})" if len(tables) > 1 else ""
            rows = [[typeset(cell if isinstance(cell, str) else cell.text) for cell in row] for row in table.rows]
            align = "".join("<>"[numeric] for numeric in table.numeric)
            yield latex_table([table.head, *rows], align, typeset(f"{section.title}{more}. {section.text}".strip()))
