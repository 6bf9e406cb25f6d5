"""What a cost model says about a batch of designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from ..pieces.contracts import Objective
from ..pieces.contracts.base import Array
from .chip import Chip
from .costs import Costs, costs_of

if TYPE_CHECKING:
    from .detail import ShortfallRow, TensorAtLevel


@attrs.frozen(eq=False, kw_only=True)
class Detail:
    """What a cost model says of B designs by level and tensor. A model gives the fields that it knows; None: not known.

    T tensors, S storage levels, the outermost first; words and accesses of one instance, pJ of all.
    """

    needed: Sequence[Sequence[ShortfallRow]] | None = None
    """Per design, the resources that it lacks."""
    energy_pj: Array | None = None
    """(T, S, B) of all accesses, without charges."""
    compute_energy_pj: Array | None = None
    """(B,)"""
    charges_pj: Mapping[str, Array] = attrs.field(factory=dict)
    """(B,) pJ that charges add, by their names."""
    level_cycles: Array | None = None
    """(S, B) that a level needs."""
    compute_cycles: Array | None = None
    """(B,) that the compute units need."""
    slowdown: Array | None = None
    """(S, B) 1 where a level moves all words in time, less where it does not keep up."""
    tile_words: Array | None = None
    """(T, S, B) words of a tile, stored or not."""
    data_words_max: Array | None = None
    """(T, S, B) words that a tile stores at most."""
    metadata_bits_max: Array | None = None
    """(S, B) bits of metadata at most."""
    instances_used: Array | None = None
    """(S + 1, B) instances of every level with work, then compute units."""
    instances_active: Array | None = None
    """(T, S, B) instances that are expected to have a tile of the tensor."""
    dense_reads: Array | None = None
    """(T, S, B) words read, without compression and filters .."""
    dense_fills: Array | None = None
    dense_updates: Array | None = None
    computes: Array | None = None
    """(B,) multiply-accumulates of the chip that are carried out .."""
    gated_computes: Array | None = None
    skipped_computes: Array | None = None
    cells: Sequence[Sequence[TensorAtLevel | None]] | None = None
    """By tensor, then by level; None where a level does not store the tensor."""

    def knows(self, *names: str) -> bool:
        """Whether the model gives all of these fields."""
        return all(getattr(self, name) is not None for name in names)


@attrs.frozen(eq=False, repr=False)
class Evaluation:
    """Costs and validity of B designs."""

    costs: Costs = attrs.field(converter=costs_of)
    """By name (B,) float64, infinity where the design is invalid. A cost model gives a mapping with `energy_pj`, `cycles`
    and whatever else its `costs` name; on a chip, those in `costs.DERIVED` follow, such as `seconds`."""
    reasons: Array
    """(B,) uint64, bit set over `reason_names`; 0: valid."""
    reason_names: tuple[str, ...]
    detail: Detail | None = None
    """On request."""
    scenarios: Mapping[str, Evaluation] = attrs.field(factory=dict)
    """By name, what the same designs are worth in each scenario of the problem (`Problem.scenarios`); all their numbers are
    infinite in a scenario that they do not fit or, as they are invalid before, were not evaluated in."""
    objective: Objective | None = None
    """The problem's."""
    problem: str = ""
    """Its title; empty where a program made the evaluation itself."""
    genomes: int | None = None
    """A checksum of the genomes; None where it is not of all of a batch."""

    def __repr__(self) -> str:
        return f"Evaluation({np.sum(self.valid):,} of {len(self):,} designs valid, {self.costs})"

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def valid(self) -> Array:
        """(B,) bool."""
        return self.reasons == 0

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

    def score(self, objective: Objective | str | None = None) -> Array:
        """(B,) float64, lower is better, infinity where the design is invalid: by the problem's objective, another one of
        one value, or an expression of costs, such as "energy_pj * seconds"."""
        from .arguments import scores_by

        scores = scores_by(self, objective or self.objective)
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
        bits = np.uint64(1) << np.arange(len(self.reason_names), dtype=np.uint64)
        counts = np.count_nonzero(self.reasons[:, None] & bits, axis=0).tolist()
        return {name: count for name, count in zip(self.reason_names, counts, strict=True) if count}

    def take(self, rows: Array | slice) -> Evaluation:
        """That of some of the designs, without `detail`."""
        scenarios = {name: part.take(rows) for name, part in self.scenarios.items()}
        costs, reasons = self.costs.take(rows), self.reasons[rows]
        return attrs.evolve(self, costs=costs, reasons=reasons, detail=None, scenarios=scenarios, genomes=None)

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
            objective=parts[0].objective,
            problem=parts[0].problem,
        )

    def costs_in_scenarios(self, row: int) -> dict[str, dict[str, float]]:
        """Costs of one design that the cost model gives, by scenario and name."""
        return {name: dict(part.costs.of(row).own) for name, part in self.scenarios.items()}
