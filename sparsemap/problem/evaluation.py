"""What a cost model says about a batch of designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..pieces.contracts.base import Array
from .costs import ALIASES, Costs, costs_of

if TYPE_CHECKING:
    from ..pieces.contracts import Objective
    from .chip import Chip


@attrs.frozen(eq=False)
class Evaluation:
    """Costs and validity of B designs."""

    costs: Costs = attrs.field(converter=costs_of)
    """By name (B,) float64, infinity where the design is invalid. A cost model gives a mapping with `energy_pj`, `cycles`
    and whatever else its `costs` name; on a chip, those in `costs.DERIVED` follow, such as `seconds`."""
    reasons: Array
    """(B,) uint64, bit set over `reason_names`; 0: valid."""
    reason_names: tuple[str, ...]
    detail: Mapping[str, Any] | None = None
    """On request: traffic, metadata and energies by level and tensor, batch last."""
    scenarios: Mapping[str, Evaluation] = attrs.field(factory=dict)
    """By name, what the same designs are worth in each scenario of the problem (`Problem.scenarios`); all their numbers are
    infinite in a scenario that they do not fit or, as they are invalid before, were not evaluated in."""

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def valid(self) -> Array:
        """(B,) bool."""
        return self.reasons == 0

    @property
    def reason_count(self) -> Array:
        """(B,) int64, how many reasons each design is invalid for."""
        bits = np.arange(64, dtype=np.uint64)
        return (self.reasons[:, None] >> bits & np.uint64(1)).sum(axis=1).astype(np.int64)

    @property
    def energy_pj(self) -> Array:
        """(B,) float64, pJ."""
        return self.costs["energy_pj"]

    @property
    def cycles(self) -> Array:
        """(B,) float64, clock cycles."""
        return self.costs["cycles"]

    @property
    def edp(self) -> Array:
        """Energy-delay product, (B,) pJ * cycles."""
        return self.costs["edp"]

    def score(self, objective: Objective | str) -> Array:
        """(B,) float64, lower is better, infinity where the design is invalid: by an objective of one value, or by an
        expression of costs, such as "energy_pj * seconds"."""
        if isinstance(objective, str):
            from ..spec.expressions import Expression

            expression = Expression.parse(objective, {*self.costs, *ALIASES})
            scores = expression({name: self.costs[name] for name in expression.names})
        else:
            scores = objective.score(self)
        return np.where(self.valid & ~np.isnan(scores), scores, np.inf)

    @property
    def least(self) -> Evaluation:
        """One row: the least of every cost, which may be of different designs."""
        least = self.costs.each(lambda column: column.min(keepdims=True))
        return Evaluation(least, self.reasons[:1], self.reason_names)

    def on(self, chip: Chip) -> Evaluation:
        """This with the costs that follow from the chip."""
        if self.costs.chip is chip:
            return self
        scenarios = {name: part.on(chip) for name, part in self.scenarios.items()}
        return attrs.evolve(self, costs=self.costs.on(chip), scenarios=scenarios)

    def reasons_of(self, row: int) -> tuple[str, ...]:
        bits = int(self.reasons[row])
        return tuple(name for i, name in enumerate(self.reason_names) if bits >> i & 1)

    def reject_counts(self) -> dict[str, int]:
        """How many designs each reason rejects; a design may count for several."""
        counts = {
            name: int(np.count_nonzero((self.reasons >> np.uint64(i)) & np.uint64(1)))
            for i, name in enumerate(self.reason_names)
        }
        return {name: count for name, count in counts.items() if count}

    def take(self, rows: Array | slice) -> Evaluation:
        """That of some of the designs, without `detail`."""
        scenarios = {name: part.take(rows) for name, part in self.scenarios.items()}
        return Evaluation(self.costs.take(rows), self.reasons[rows], self.reason_names, scenarios=scenarios)

    @staticmethod
    def join(parts: Sequence[Evaluation]) -> Evaluation:
        """One evaluation of several that name the same costs, reasons and scenarios, without `detail`."""
        if len(parts) == 1:
            return parts[0]
        return Evaluation(
            Costs.join([p.costs for p in parts]),
            np.concatenate([p.reasons for p in parts]),
            parts[0].reason_names,
            scenarios={name: Evaluation.join([p.scenarios[name] for p in parts]) for name in parts[0].scenarios},
        )

    def costs_in_scenarios(self, row: int) -> dict[str, dict[str, float]]:
        """Costs of one design that the cost model gives, by scenario and name."""
        return {name: dict(part.costs.of(row).own) for name, part in self.scenarios.items()}
