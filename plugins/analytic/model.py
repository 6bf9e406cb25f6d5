"""The analytical cost model: designs in, energy, cycles and reasons out. `inner` holds the chain; `evaluation` fills
the tables."""

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

from .bound import LowerBound
from .bound_words import LeastWords
from .charges import ChargeOptions
from .evaluation import evaluated
from .occupancy.shared import SHARED
from .prepared import COLUMNS, ModelTables, copies_of
from .prices import leakage_pj_per_cycle

COSTLY = frozenset({"window-positions"})
"""Quirks that lower no cost: bounds hold with them."""


def _quirk_set(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    if value == "none":
        return ()
    from .quirks import quirk_set

    return quirk_set(value)


@attrs.frozen(kw_only=True)
class AnalyticModel(CostModel):
    """Agrees with TimeloopV2 (Sparseloop) number for number, except for Timeloop's defects; with `quirks =
    "timeloop-v3"`, everywhere."""

    type_name: ClassVar[str] = "analytic"
    needs: ClassVar[tuple[str, ...]] = COLUMNS

    quirks: str | tuple[str, ...] = attrs.field(default="none")
    """"none", "timeloop-v3", or a list of quirk names."""
    charges: tuple[Charge, ...] = attrs.field(default=(), eq=frozenset)
    """Hardware costs beyond Timeloop's formulas, by name or as tables, in any order; each kind of charge once."""

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
        from .meanings import meaning_of

        return {name: meaning_of(name) for name in self._prepared(problem).reasons.names}

    def evaluate(
        self, designs: Designs, problem: Problem, detail: bool = False, chip: Chip | None = None
    ) -> Evaluation:
        """Evaluation of a batch. `chip` replaces the problem's chip; with a batch axis, each design has its own chip."""
        chip = problem.chip if chip is None else chip
        return evaluated(self._prepared(problem), designs, chip, detail)

    def forget(self) -> None:
        SHARED.clear()

    def copies(self, problem: Problem) -> Array | None:
        return copies_of(problem, ChargeOptions.of(self.charges))

    def lower_bound(self, problem: Problem) -> Evaluation | None:
        """Pairs of energy and cycles: every design of the problem is at or above at least one pair in both (see
        `bound`). None with quirks that lower costs, with dealt lanes (7.4), with link transfers (4.6), or
        with several tensors of actual data (7.5)."""
        found = self._bound(problem)
        return None if found is None else self._charged(problem, found.energy_pj, found.cycles)

    def classes(self, problem: Problem) -> Classes | None:
        from .bound_classes import classes_of

        found = self._bound(problem)
        if found is None:
            return None
        return classes_of(found, self._charged(problem, *found.by_class()))

    def outlook(self, problem: Problem) -> Outlook | None:
        """Bounds for other padded sizes. None as in `lower_bound`, and without the charge `remainders`, since padded
        positions then cost as much as data."""
        from .outlook import OtherSizes

        known, options = self._prepared(problem), self._prepared(problem).options
        if not (options.remainders and self._bounds(known)):
            return None
        found = OtherSizes(known.layout, known.places, LeastWords(known, ranks=False), options.sums, options.holes)

        def costs(layouts: Sequence[Mapping[str, int]]) -> list[Evaluation] | None:
            pairs = found.of(layouts)
            return None if pairs is None else [self._charged(problem, *some) for some in pairs]

        return Outlook(self._charged(problem, *found.least()), costs)

    @property
    def bounded(self) -> bool:
        """Whether costs are no lower than without quirks."""
        return {*_quirk_set(self.quirks)} <= COSTLY

    def _bounds(self, known: ModelTables) -> bool:
        return self.bounded and not (known.places.deals or known.joint or any(known.layout.linked))

    def _bound(self, problem: Problem) -> LowerBound | None:
        known, options = self._prepared(problem), self._prepared(problem).options
        if not self._bounds(known):
            return None
        return problem.remember(
            (AnalyticModel, "lower-bound", options),
            lambda: LowerBound(known.layout, known.places, LeastWords(known), options.sums, options.holes),
        )

    def _charged(self, problem: Problem, energy_pj: Array, cycles: Array) -> Evaluation:
        """Rows of a bound (n,), increased by the minimum cost of charges."""
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
