"""Results as data frames of pandas."""

from __future__ import annotations

from typing import Any

from ..extras import need
from .breakdown import CHARGES, STALLS, Breakdown
from .result import Result


def history_frame(result: Result) -> Any:
    """`Result.to_pandas`."""
    return need("pandas", "to_pandas()", "pandas").DataFrame(result.arrays())


def breakdown_frame(found: Breakdown) -> Any:
    """`Breakdown.to_pandas`."""
    pandas = need("pandas", "to_pandas()", "pandas")
    rows = {row.name: {**row.by_tensor, "energy_pj": row.energy_pj, "cycles": row.cycles} for row in found.rows}
    rows |= {name: {"energy_pj": parts[CHARGES]} for name, parts in found.energies.items() if name not in rows}
    if found.waiting_cycles:
        rows[STALLS] = {"cycles": found.waiting_cycles}
    last = ("energy_pj", "cycles")
    columns = [*dict.fromkeys(key for row in rows.values() for key in row if key not in last), *last]
    index = pandas.Index(list(rows), name="level")
    return pandas.DataFrame(list(rows.values()), index=index, columns=columns, dtype="float64")
