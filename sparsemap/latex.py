"""Tables as LaTeX, for `\\usepackage{booktabs}`."""

from __future__ import annotations

import re

from .files import Cells, marks_of

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "µ": r"$\mu$", "·": r"$\cdot$", "×": r"$\times$", "<": r"$<$",
    ">": r"$>$", "²": r"$^2$",
}  # fmt: skip
SCIENTIFIC = re.compile(r"(?<![\w.])(-?\d(?:\.\d+)?)e([+-])0*(\d+)")


def latex_text(text: str) -> str:
    """A text with special characters escaped, and powers of ten written out."""
    escaped = "".join(SPECIAL.get(letter, letter) for letter in text)
    return SCIENTIFIC.sub(lambda m: rf"${m[1]}\times10^{{{'' if m[2] == '+' else '-'}{m[3]}}}$", escaped)


def latex_table(rows: Cells, align: str = "<>", caption: str = "") -> str:
    """A `table` with the first row as head; `align` as in `aligned`."""
    head, *below = (" & ".join(map(latex_text, row)) + r" \\" for row in rows)
    columns = "".join("lr"[mark == ">"] for mark in marks_of(align, len(rows[0])))
    told = [rf"\caption{{{latex_text(caption)}}}"] if caption else []
    lines = [r"\begin{table}", *told, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *below]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])
