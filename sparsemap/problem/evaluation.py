"""Results of a cost model for a batch of designs."""

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
    from .levels import Level


@attrs.frozen(eq=False, kw_only=True)
class Detail:
    """Results for B designs by level and tensor. A model gives the fields it knows; None: not known.

    T tensors, S storage levels, the outermost first; words and accesses per instance, pJ of all instances."""

    needed: Sequence[Sequence[ShortfallRow]] | None = None
    """Missing resources per design."""
    energy_pj: Array | None = None
    """(T, S, B) energy of all accesses, without charges."""
    compute_energy_pj: Array | None = None
    """(B,) energy of the computes."""
    charges_pj: Mapping[str, Array] = attrs.field(factory=dict)
    """(B,) pJ added by charges, by name."""
    level_cycles: Array | None = None
    """(S, B) cycles needed by a level."""
    compute_cycles: Array | None = None
    """(B,) cycles needed by the compute units."""
    mean_cycles: Array | None = None
    """(B,) compute cycles of the mean unit: products, gated computes and positions."""
    uneven_cycles: Array | None = None
    """(B,) compute cycles of the fullest unit, by skips of any width."""
    slowdown: Array | None = None
    """(S, B) 1 if a level moves all words in time, less if the level is a bottleneck."""
    tile_words: Array | None = None
    """(T, S, B) words of a tile, stored or not."""
    data_words_max: Array | None = None
    """(T, S, B) largest number of words stored of a tile."""
    word_bits: Array | None = None
    """(T, S, B) bits per word of a tensor at a level."""
    metadata_bits_max: Array | None = None
    """(S, B) largest number of metadata bits."""
    instances_used: Array | None = None
    """(S + 1, B) instances of every level with work, then compute units."""
    instances_active: Array | None = None
    """(T, S, B) expected instances with a tile of the tensor."""
    dense_reads: Array | None = None
    """(T, S, B) words read, without compression and filters; fills and updates follow."""
    dense_fills: Array | None = None
    dense_updates: Array | None = None
    computes: Array | None = None
    """(B,) multiply-accumulates carried out on the chip; gated and skipped ones follow."""
    gated_computes: Array | None = None
    skipped_computes: Array | None = None
    cells: Sequence[Sequence[TensorAtLevel | None]] | None = None
    """Accesses by tensor, then by level; None where a level does not store the tensor."""

    def bits(self, level: Level) -> Array:
        """(T,) bits per word of each tensor of the first design at a level."""
        if self.word_bits is None:
            return np.full(0 if self.data_words_max is None else len(self.data_words_max), level.word_bits)
        return np.asarray(self.word_bits)[:, level.index, 0]

    def knows(self, *names: str) -> bool:
        """Whether the model gives all of these fields."""
        return all(getattr(self, name) is not None for name in names)


@attrs.frozen(eq=False, repr=False)
class Evaluation:
    """Costs and validity of B designs."""

    costs: Costs = attrs.field(converter=costs_of)
    """Costs by name (B,) float64, infinity for invalid designs. A cost model gives a mapping with `energy_pj`, `cycles`
    and any others named by its `costs`; on a chip, the costs in `costs.DERIVED` follow, such as `seconds`."""
    reasons: Array
    """(B,) uint64, bit set over `reason_names`; 0: valid."""
    reason_names: tuple[str, ...]
    detail: Detail | None = None
    """Details, on request."""
    scenarios: Mapping[str, Evaluation] = attrs.field(factory=dict)
    """Evaluations of the same designs by scenario of the problem (`Problem.scenarios`). Costs are infinite for designs
    invalid in the scenario, and for designs not evaluated because they were invalid before."""
    objective: Objective | None = None
    """Objective of the problem."""
    problem: str = ""
    """Title of the problem; empty for an evaluation made by a program itself."""
    genomes: int | None = None
    """A checksum of the genomes; None unless it covers a whole batch."""

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
        """(B,) float64, lower is better, infinity for invalid designs: by the problem's objective, another
        single-valued objective, or an expression of costs, such as "energy_pj * seconds"."""
        from .arguments import scores_by

        scores = scores_by(self, objective or self.objective)
        return np.where(self.valid & ~np.isnan(scores), scores, np.inf)

    @property
    def least(self) -> Evaluation:
        """A single row with the least value of every cost, possibly of different designs."""
        least = self.costs.each(lambda column: column.min(keepdims=True))
        return Evaluation(least, self.reasons[:1], self.reason_names)

    def on(self, chip: Chip) -> Evaluation:
        """The same evaluation with the costs derived from the chip."""
        if self.costs.chip is chip:
            return self
        scenarios = {name: part.on(chip) for name, part in self.scenarios.items()}
        return attrs.evolve(self, costs=self.costs.on(chip), scenarios=scenarios)

    def reasons_of(self, row: int) -> tuple[str, ...]:
        bits = int(self.reasons[row])
        return tuple(name for i, name in enumerate(self.reason_names) if bits >> i & 1)

    def reject_counts(self) -> dict[str, int]:
        """Number of designs rejected by each reason; a design may count for several reasons."""
        bits = np.uint64(1) << np.arange(len(self.reason_names), dtype=np.uint64)
        counts = np.count_nonzero(self.reasons[:, None] & bits, axis=0).tolist()
        return {name: count for name, count in zip(self.reason_names, counts, strict=True) if count}

    def take(self, rows: Array | slice) -> Evaluation:
        """Evaluation of the designs in `rows`, without `detail`."""
        scenarios = {name: part.take(rows) for name, part in self.scenarios.items()}
        costs, reasons = self.costs.take(rows), self.reasons[rows]
        return attrs.evolve(self, costs=costs, reasons=reasons, detail=None, scenarios=scenarios, genomes=None)

    @staticmethod
    def join(parts: Sequence[Evaluation]) -> Evaluation:
        """Concatenation of evaluations with equal costs, reasons and scenarios, without `detail`."""
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
        """The cost model's costs of a single design, by scenario and name."""
        return {name: dict(part.costs.of(row).own) for name, part in self.scenarios.items()}
