"""Judge of chips: the objective of all totals, or of the network that loses most beside the given hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from sparsemap import Evaluation, SearchError
from sparsemap.pieces.contracts import Array
from sparsemap.problem.chip import Chip

JUDGES = ("sum", "worst")
"""The objective of all totals, and its largest ratio over networks."""
COSTS = ("energy_pj", "cycles", "seconds", "area_mm2")
MOVED = COSTS[:3]
"""Costs reduced by a longer search."""
Rows = Sequence[Mapping[str, Any]]
"""n evaluated chips: costs by the names of `ruled_costs`."""


def moved_of(networks: Sequence[str]) -> list[str]:
    """Names of the costs that a longer search reduces, in total and of these networks."""
    return [*MOVED, *(f"{name}.{cost}" for name in networks for cost in MOVED)]


@attrs.frozen(kw_only=True)
class Judge:
    """Values of chips, to be minimised."""

    objective: Any
    """Objective with M values."""
    chip: Chip
    """Any of the chips."""
    networks: Sequence[str] = ()
    """Names of the networks for the judge "worst"; empty: "sum"."""
    given: Mapping[str, Any] = attrs.field(factory=dict)
    """Costs of the given hardware, each layer with any formats and units."""

    def values(self, rows: Rows) -> Array:
        """(n, M) the objective of the totals, or the largest of `losses` in each value."""
        return self.losses(rows).max(axis=0) if self.networks else self.of("", rows)

    def losses(self, rows: Rows) -> Array:
        """(networks, n, M) objective of one run of each network, over the objective on the given hardware.

        `SearchError` for an objective of at most 0 there."""
        return np.stack([self.of(f"{name}.", rows) / self._base(name) for name in self.networks])

    def of(self, network: str, rows: Rows) -> Array:
        """(n, M) objective of one run of a network, such as "resnet50.", or of the totals for ""."""
        keys = (*(f"{network}{name}" for name in MOVED), COSTS[-1])
        costs = {name: np.array([row[key] for row in rows], float) for name, key in zip(COSTS, keys, strict=True)}
        found = Evaluation(costs, np.zeros(len(rows), np.uint64), ()).on(self.chip)
        return np.asarray(self.objective.values(found), np.float64)

    def _base(self, name: str) -> Array:
        found = self.of(f"{name}.", [self.given])
        if found.min() <= 0:
            text = f"is {found.min():.4g} for network '{name}' on the given hardware, expected a value above 0"
            raise SearchError(f"--judge worst: objective '{self.objective.name}' {text}")
        return found
