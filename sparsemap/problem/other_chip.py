"""Problems moved to another chip, and chips of some designs out of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ..errors import SearchError
from ..pieces.contracts.base import Rows
from .chip import FIGURES, LIMITS, Chip
from .levels import Level

if TYPE_CHECKING:
    from .problem import Problem


def moved(problem: Problem, chip: Chip) -> Problem:
    """`Problem.on`."""
    made = attrs.evolve(problem, given_chip=chip)
    made.__dict__ |= {"levels": levels_on(chip, problem.levels), **problem.known("loops", "technology")}
    made.__dict__["space"] = problem.space.of(made)
    return made


def taken(chip: Chip, rows: Rows | int) -> Chip:
    """`Chip.take`."""
    if chip.batch is None:
        raise SearchError("there is one chip for all designs; expected a batch of chips to take rows from")
    changed: dict[str, Any] = {}
    for field in attrs.fields(Chip)[1:]:
        value = getattr(chip, field.name)
        several = isinstance(value, Mapping)
        changed[field.name] = {k: v[..., rows] for k, v in value.items()} if several else value[..., rows]
    return Chip(chip.names, **changed)


def levels_on(chip: Chip, levels: Sequence[Level]) -> tuple[Level, ...]:
    """These levels with the sizes and speeds of a chip. `SearchError` for a different number of levels, or a batch of
    chips."""
    if chip.batch is not None:
        raise SearchError(f"a problem is on one chip, found a batch of {chip.batch}; `Chip.take` gives one of them")
    if len(chip) != len(levels):
        raise SearchError(f"the chip has {len(chip)} storage levels, expected {len(levels)}")
    rows = []
    for s, level in enumerate(levels):
        found: dict[str, Any] = {name: getattr(chip, name)[s].item() for name in ("instances", *FIGURES, *LIMITS)}
        found |= {name: None for name in LIMITS if found[name] == math.inf}
        rows.append(attrs.evolve(level, name=chip.names[s], clock_hz=float(chip.clock_hz), **found))
    return tuple(rows)
