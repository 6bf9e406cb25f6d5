"""The tables of a page as LaTeX, for `\\usepackage{booktabs}`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..tables import PageTable
from .content import Page, in_one_unit

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "µ": r"$\mu$", "·": r"$\cdot$", "×": r"$\times$", "<": r"$<$",
    ">": r"$>$", "²": r"$^2$",
}  # fmt: skip
SCIENTIFIC = re.compile(r"(-?\d\.\d+)e([+-])0*(\d+)")


def latex(page: Page) -> str:
    """Every table of the page with its section as caption; charts are left out."""
    return "\n".join([f"% {page.title}: \\usepackage{{booktabs}}", *_tables(page)]) + "\n"


def _tables(page: Page) -> Iterator[str]:
    for section in page.sections:
        tables = [block for block in section.blocks if isinstance(block, PageTable) and block.rows]
        for number, table in enumerate(tables, 1):
            more = f" ({number} of {len(tables)})" if len(tables) > 1 else ""
            yield _table(in_one_unit(table), f"{section.title}{more}. {section.text}".strip())


def _table(table: PageTable, caption: str) -> str:
    marks = "".join("lr"[numeric] for numeric in table.numeric)
    rows = [[text_of(cell if isinstance(cell, str) else cell.text) for cell in row] for row in table.rows]
    head = [text_of(name) for name in table.head]
    lines = [r"\begin{table}", rf"\caption{{{text_of(caption)}}}", rf"\begin{{tabular}}{{{marks}}}", r"\toprule"]
    lines += [" & ".join(head) + r" \\", r"\midrule", *(" & ".join(row) + r" \\" for row in rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def text_of(text: str) -> str:
    """A text with special characters escaped, and powers of ten written out."""
    escaped = "".join(SPECIAL.get(letter, letter) for letter in text)
    return SCIENTIFIC.sub(lambda m: rf"${m[1]}\times10^{{{'' if m[2] == '+' else '-'}{m[3]}}}$", escaped)
