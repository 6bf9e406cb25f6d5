"""Defects of Timeloop, reproduced by the analytic model on request."""

from __future__ import annotations

QUIRKS = {
    "Q3": "the smallest possible occupancy counts as the empty tile",
    "Q4": "banded tensors: offsets of sub-tiles are added twice",
    "Q7": "an outer action leaves the metadata traffic of inner levels",
    "Q8": "a level that acts below another acting level loses its metadata reads",
    "Q9": "rounding lets a density exceed one: Timeloop stops, the design is invalid",
    "Q11": "two levels acting on one tensor can leave a negative share",
    "Q17": "an action on tiles that are decoded on their way leaves their metadata",
    "Q18": "empty tiles that are decoded on their way are not there, and encoding counts per instance",
    "Q16": "filters with other than two operands: chances of their computes do not add up to one",
    "short-tiles": "accesses of several words: compressed tiles of few accesses are read one by one",
    "lane-shares": "packed lanes: the mean of the shares of full lanes in place of the mean of passes",
    "window-positions": "sliding windows: metadata of every position of overlapping windows, not of every word",
    "first-fills": "the first fill of partial sums counts, though nothing is there yet: evaluators before v3.0.3",
}
"""Fixed by default; `quirks` restores them."""
QUIRK_SETS = {"none": frozenset(), "timeloop-v3": frozenset(QUIRKS) - {"first-fills", "lane-shares"}}


def quirk_set(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    names = QUIRK_SETS.get(value, frozenset([value])) if isinstance(value, str) else frozenset(value)
    wrong = sorted(set(names) - set(QUIRKS))
    if wrong:
        known = ", ".join([*QUIRK_SETS, *QUIRKS])
        raise ValueError(f"unknown quirk '{wrong[0]}'; known: {known}")
    return tuple(sorted(names))
