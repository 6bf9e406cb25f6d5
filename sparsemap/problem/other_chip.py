"""Storage levels of a problem moved to another chip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from ..errors import SearchError
from .chip import FIGURES, LIMITS, Chip
from .levels import Level


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
