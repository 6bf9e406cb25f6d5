"""Tables as CSV files, whose cells no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any


def read_csv(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """The lines of a CSV file by the names in its head, as they were before `csv_text` quoted formulas."""
    with open(path, encoding="utf-8", newline="") as file:
        return [
            {key: value[1:] if _is_quoted(value) else value for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def csv_text(rows: Sequence[Mapping[str, Any]], head: Sequence[str] = ()) -> str:
    """One line per row, under the keys of all rows unless `head` names them; None, infinity and NaN are empty.

    A text that a spreadsheet would take for a formula gets an apostrophe in front; a text that is a number does not.
    """
    text = io.StringIO()
    keys = head or list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, keys, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _csv_cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else ""
    return f"'{value}" if isinstance(value, str) and (FORMULA.match(value) or _is_quoted(value)) else value


FORMULA = re.compile(r"[=@\t\r]|[+-](?!\.?\d[\d_.]*(e[+-]?\d+)?$|$)", re.IGNORECASE)
"""What a spreadsheet computes with; a number with its sign, and a dash for none, are not that."""


def _is_quoted(value: Any) -> bool:
    """Whether a cell of a CSV file has an apostrophe in front of what would be a formula."""
    return isinstance(value, str) and value[:1] == "'" and bool(FORMULA.match(value.lstrip("'")))
