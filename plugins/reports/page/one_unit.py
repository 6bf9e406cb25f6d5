"""One unit for all amounts of a table's column."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import attrs

from ..tables import Cell, PageTable, PrintedNumber

AMOUNT = re.compile(r"(-?[\d.]+) ([fpnumkMG]?(?:J|s|W))")
APART = 1e4
"""Largest ratio of amounts in one unit."""


def in_one_unit(table: PageTable) -> PageTable:
    """The table with the amounts of a column in the unit of the largest, unless they are far `APART`."""
    columns = [_in_one_unit([row[i] for row in table.rows]) for i in range(len(table.head))]
    return attrs.evolve(table, rows=list(zip(*columns, strict=True))) if table.rows else table


def _in_one_unit(column: Sequence[Cell]) -> Sequence[Cell]:
    amounts = [(x, AMOUNT.fullmatch(x.text)) for x in column if isinstance(x, PrintedNumber) and x.value]
    units = {found[2] for _, found in amounts if found}
    values = [abs(x.value) for x, _ in amounts]
    if not all(found for _, found in amounts) or len(units) < 2 or max(values) > APART * min(values):
        return column
    most, found = max(amounts, key=lambda one: abs(one[0].value))
    assert found is not None
    size = 1000.0 ** round(math.log(most.value / float(found[1]), 1000))
    texts = {id(x): f"{x.value / size:.3g} {found[2]}" for x in column if isinstance(x, PrintedNumber)}
    return [attrs.evolve(x, text=texts[id(x)]) if isinstance(x, PrintedNumber) else x for x in column]
