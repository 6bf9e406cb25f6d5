"""What a search remembers: its best design, its convergence, and why designs were rejected. Memory is bounded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import numpy as np

from ..pieces.contracts.base import Array
from ..problem.evaluation import Evaluation
from .hull import HullOfDesigns

if TYPE_CHECKING:
    from .executed import Leading
    from .front import Front

HISTORY_ROWS = 20_000
"""Rows kept; beyond it neighbouring rows are merged two by two."""
NO_SCORE = "no-score"
"""What valid designs are rejected for whose score is infinite or not a number."""


@attrs.frozen
class Row:
    """One batch, or a few merged ones."""

    evaluations: int
    """Designs so far that count, this batch included."""
    best_score: float
    """Best score so far; infinity while nothing valid is known."""
    valid: int
    """Valid designs in this batch."""
    mean_score: float
    """Mean score of the valid designs in this batch; NaN if there is none."""
    seconds: float = attrs.field(default=math.nan, eq=False)
    """Processor time of the search so far, which alone of these depends on the machine."""
    costs: Mapping[str, float] = attrs.field(factory=dict)
    """Costs of the best design so far that the cost model gives, by name."""

    def joined(self, later: Row) -> Row:
        valid = self.valid + later.valid
        total = sum(row.mean_score * row.valid for row in (self, later) if row.valid)
        mean = total / valid if valid else math.nan
        return Row(later.evaluations, later.best_score, valid, mean, later.seconds, later.costs)


@attrs.define
class History:
    """Rows by batch. The row of a long run stands for `stride` batches, a power of two."""

    limit: int = HISTORY_ROWS
    rows: list[Row] = attrs.field(factory=list)
    stride: int = 1
    _open: int = 0

    def add(self, row: Row) -> None:
        if self._open:
            self.rows[-1] = self.rows[-1].joined(row)
        else:
            self.rows.append(row)
        self._open = (self._open + 1) % self.stride
        if len(self.rows) > self.limit and not self._open:
            rows = self.rows
            self.rows = [a.joined(b) for a, b in zip(rows[::2], rows[1::2], strict=False)]
            if len(rows) % 2:
                self.rows.append(rows[-1])
                self._open = self.stride
            self.stride *= 2


@attrs.define
class Archive:
    """The best design so far with its numbers, counts, and the rejected designs nearest to being valid."""

    only_valid: bool = False
    """Whether invalid designs do not count as evaluations."""
    plain: bool = False
    """Whether scores came without an evaluation: they may be in another unit than the objective's."""
    evaluations: int = 0
    """Designs that count."""
    proposed: int = 0
    """Designs that were evaluated, whether they count or not."""
    valid: int = 0
    score: float = math.inf
    genome: Array | None = None
    costs: Mapping[str, float] = attrs.field(factory=dict)
    """Costs of the best design by name, those that the cost model gives; empty: not known."""
    scenarios: dict[str, dict[str, float]] = attrs.field(factory=dict)
    """The same by scenario."""
    names: tuple[str, ...] = ()
    """Of the costs in `front.numbers`, behind the score: these, and these again for each scenario."""
    leading: Leading | None = None
    """The best distinct designs, where they are asked for."""
    rejects: dict[str, int] = attrs.field(factory=dict)
    """Designs rejected by reason; a design may count for several."""
    closest: Array | None = None
    """(n, G) rejected genomes with the fewest reasons, kept while nothing valid is known; n <= `shortfalls.CLOSEST`."""
    fewest: int = 65
    """Reasons that each genome of `closest` has."""
    history: History = attrs.field(factory=History)
    front: Front | None = None
    """The best trade-offs between several objectives; None where there is one."""
    hull: HullOfDesigns = attrs.field(factory=HullOfDesigns)
    """The designs on the hull of energy and cycles, whatever the objective."""

    def add(
        self,
        genomes: Array,
        scores: Array,
        evaluation: Evaluation | None,
        values: Array | None = None,
        seconds: float = math.nan,
    ) -> None:
        """Takes in one evaluated batch: (n, G), (n,) and, where they are known, the evaluation behind the scores, the
        values (n, M) of several objectives, and the processor time that the search has taken."""
        valid = evaluation.valid if evaluation is not None else np.isfinite(scores)
        self.plain |= evaluation is None
        self.proposed += len(scores)
        self.valid += int(np.count_nonzero(valid))
        self.evaluations = self.valid if self.only_valid else self.proposed
        row = int(np.argmin(scores))
        if scores[row] < self.score:
            self.score, self.genome = float(scores[row]), genomes[row].copy()
            if evaluation is not None:
                self.costs = dict(evaluation.costs.of(row).own)
                self.scenarios = evaluation.costs_in_scenarios(row)
        if evaluation is not None and self.leading is not None:
            self.leading.add(genomes, scores, evaluation)
        if evaluation is not None and values is not None:
            every = (evaluation, *evaluation.scenarios.values())
            self.names = tuple(evaluation.costs.own)
            numbers = [scores, *(one.costs[name] for one in every for name in self.names)]
            if self.front is None:
                from .front import Front

                self.front = Front()
            self.front.add(genomes, values, np.stack(numbers, axis=1))
        if evaluation is not None:
            self.hull.add(genomes, evaluation.energy_pj, evaluation.cycles)
            counts = evaluation.reject_counts()
            if unscored := int(np.count_nonzero(valid & np.isposinf(scores))):
                counts[NO_SCORE] = unscored
            for name, count in counts.items():
                self.rejects[name] = self.rejects.get(name, 0) + count
            if self.valid == 0:
                from .shortfalls import closest

                self.closest, self.fewest = closest(genomes, evaluation, self.closest, self.fewest)
            else:
                self.closest = None
        counted = scores[valid & np.isfinite(scores)]
        mean = float(counted.mean()) if len(counted) else math.nan
        self.history.add(Row(self.evaluations, self.score, len(counted), mean, seconds, self.costs))

    @property
    def valid_fraction(self) -> float:
        return self.valid / max(self.proposed, 1)
