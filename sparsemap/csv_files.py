"""Tables as CSV files without cells for a spreadsheet to run as formulas."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import SpecError


def read_csv(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Lines of a CSV file, each a table by column name; apostrophes added by `csv_text` are removed. SpecError for a
    file of another kind."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return [
                {key: value[1:] if _is_quoted(value) else value for key, value in row.items()}
                for row in csv.DictReader(file)
            ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError.at(path, "", f"is not CSV: {error}") from None


def csv_text(rows: Sequence[Mapping[str, Any]], head: Sequence[str] = ()) -> str:
    """One line per row, under the columns of `head`, by default all keys of the rows; None, infinity and NaN are empty.

    A text in the form of a spreadsheet formula gets an apostrophe in front; a number as text stays."""
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
"""Start of a spreadsheet formula; excludes a signed number and a lone dash (for "none")."""


def _is_quoted(value: Any) -> bool:
    """Whether a CSV cell is a formula behind an apostrophe."""
    return isinstance(value, str) and value[:1] == "'" and bool(FORMULA.match(value.lstrip("'")))
