"""Amounts in a table's column, in the unit of the largest amount."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import attrs

from ..tables import Cell, PrintedNumber

AMOUNT = re.compile(r"(-?[\d.]+) ([fpnumkMG]?(?:J|s|W))")
APART = 1e4
"""Ratio of amounts above which a column keeps individual units."""


def in_one_unit(column: Sequence[Cell]) -> Sequence[Cell]:
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
