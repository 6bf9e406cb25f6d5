"""The analytical cost model: designs in, energy, cycles and reasons out, with the whole batch in every operation.

Cheap checks come first; then, on the designs that are left, the chain: every link is a frozen record, made by one function
from those before it. `detail` runs the same code.

| record | section | made by |
|---|---|---|
| `Nest` | 3 | its loops |
| `Traffic` | 4 | `traffic.dense_traffic` |
| `StoredTiles` | 5.6, 6.5 | `stored.stored_of` |
| `Removals` | 7.1 | `removal.removals_of` |
| `Metadata` | 6.2, 6.3 | `metadata.metadata_of` |
| `Counts` | 6.4, 7.2, 7.3 | `counts.counts_of` |
| `Cycles` | 8 | `cycles.cycles_of` |
| `Cost` | 9 | `cost.cost_of` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Charge, CostModel, Evaluation
from sparsemap.pieces.contracts import Classes, Outlook
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem

from . import native
from .bound import LowerBound
from .bound_words import LeastWords
from .charges import ChargeOptions
from .prepared import COLUMNS, ModelTables, copies_of
from .prices import leakage_pj_per_cycle

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
    "first-fills": "the first fill of partial sums counts, though nothing is there yet: evaluators before v3.0.3",
}
"""Defects of Timeloop that are fixed by default; `quirks` brings them back."""
QUIRK_SETS = {"none": frozenset(), "timeloop-v3": frozenset(QUIRKS) - {"first-fills", "lane-shares"}}


def _quirk_set(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    names = QUIRK_SETS.get(value, frozenset([value])) if isinstance(value, str) else frozenset(value)
    wrong = sorted(set(names) - set(QUIRKS))
    if wrong:
        known = ", ".join([*QUIRK_SETS, *QUIRKS])
        raise ValueError(f"unknown quirk '{wrong[0]}'; known: {known}")
    return tuple(sorted(names))


@attrs.frozen(kw_only=True)
class AnalyticModel(CostModel):
    """Agrees with TimeloopV2 (Sparseloop) number for number where that is sound; `quirks = "timeloop-v3"` everywhere."""

    type_name: ClassVar[str] = "analytic"
    needs: ClassVar[tuple[str, ...]] = COLUMNS

    quirks: str | tuple[str, ...] = attrs.field(default="none")
    """"none", "timeloop-v3", or a list of quirk names."""
    charges: tuple[Charge, ...] = attrs.field(default=(), eq=frozenset)
    """What hardware pays for beyond Timeloop's formulas, by name or as tables, in any order; each kind of charge once."""

    @quirks.validator
    def _known(self, _: Any, value: Any) -> None:
        _quirk_set(value)

    @charges.validator
    def _each_once(self, _: Any, value: tuple[Charge, ...]) -> None:
        names = [charge.type_name for charge in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"'{twice[0]}' is charged twice")

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        return self._prepared(problem).reasons.meanings

    def evaluate(
        self, designs: Designs, problem: Problem, detail: bool = False, chip: Chip | None = None
    ) -> Evaluation:
        """`chip`: in place of the problem's; with a batch axis, the chip of every design."""
        chip = problem.chip if chip is None else chip
        return evaluated(self._prepared(problem), designs, chip, detail)

    def copies(self, problem: Problem) -> Array | None:
        return copies_of(problem, ChargeOptions.of(self.charges))

    def lower_bound(self, problem: Problem) -> Evaluation | None:
        """Pairs that no design of the problem beats all (see `bound`); None with quirks, whose defects have no bound,
        and where lanes are dealt out (7.4), neighbours hand words on (4.6), or several tensors are actual data (7.5)."""
        found = self._bound(problem)
        return None if found is None else self._charged(problem, found.energy_pj, found.cycles)

    def classes(self, problem: Problem) -> Classes | None:
        from .bound_classes import classes_of

        found = self._bound(problem)
        if found is None:
            return None
        return classes_of(found, self._charged(problem, *found.by_class()))

    def outlook(self, problem: Problem) -> Outlook | None:
        """None as in `lower_bound`, and without the charge `remainders`: then what is laid out is all that counts."""
        from .outlook import OtherSizes

        known, options = self._prepared(problem), self._prepared(problem).options
        if not (options.remainders and self._bounds(known)):
            return None
        found = OtherSizes(known.layout, known.places, LeastWords(known, ranks=False), options.sums, options.holes)

        def costs(layouts: Sequence[Mapping[str, int]]) -> list[Evaluation] | None:
            pairs = found.of(layouts)
            return None if pairs is None else [self._charged(problem, *some) for some in pairs]

        return Outlook(self._charged(problem, *found.least()), costs)

    def _bounds(self, known: ModelTables) -> bool:
        return not (known.quirks or known.places.deals or known.joint or any(known.layout.linked))

    def _bound(self, problem: Problem) -> LowerBound | None:
        known, options = self._prepared(problem), self._prepared(problem).options
        if not self._bounds(known):
            return None
        return problem.remember(
            (AnalyticModel, "lower-bound", options),
            lambda: LowerBound(known.layout, known.places, LeastWords(known), options.sums, options.holes),
        )

    def _charged(self, problem: Problem, energy_pj: Array, cycles: Array) -> Evaluation:
        """Rows of a bound (n,) with the least that charges add."""
        known = self._prepared(problem)
        strangers, cycles = known.strangers, np.floor(cycles)
        cycles = np.maximum(cycles, max([0.0, *(charge.least_cycles(problem) for charge in strangers)]))
        more = cycles * float(leakage_pj_per_cycle(problem.chip, 1.0)) if known.options.leakage else 0.0 * cycles
        if strangers:
            more = more + [sum(charge.least_pj(problem, float(n)) for charge in strangers) for n in cycles]
        energy, none = energy_pj + more * (1.0 - 1e-9), np.zeros(len(cycles), dtype=np.uint64)
        return Evaluation({"energy_pj": energy, "cycles": cycles}, none, known.reasons.names)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return AnalyticModel, self.quirks, frozenset(self.charges)

    def _prepared(self, problem: Problem) -> ModelTables:
        quirks = frozenset(_quirk_set(self.quirks))
        return problem.remember(self._key, lambda: ModelTables.of(problem, quirks, self.charges))


def evaluated(known: ModelTables, designs: Designs, chip: Chip, detail: bool) -> Evaluation:
    """By the compiled model, where there is one that knows them, else by the chain."""
    found = None
    if native.kernel is not None:
        from . import compiled

        found = compiled.evaluated(known, designs, chip, detail)
    if found is None or (detail and found[3] is None):
        from .chain import chained

        return chained(known, designs, chip, detail)
    energy, cycles, wrong, told, left = found
    if left.size:
        from .chain import chained

        rest = chained(known, designs.take(left), chip, detail)
        energy[left], cycles[left], wrong[left] = rest.costs.own["energy_pj"], rest.costs.own["cycles"], rest.reasons
    return Evaluation({"energy_pj": energy, "cycles": cycles}, wrong, known.reasons.names, told)
