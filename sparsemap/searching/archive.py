"""Archive of a search: the best design, the convergence, and counts of rejection reasons. Memory is bounded."""

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
"""Largest number of rows; beyond, neighbouring rows are merged two by two."""
NO_SCORE = "no-score"
"""Rejection reason for valid designs with an infinite score or NaN."""


@attrs.frozen
class Row:
    """A batch, or a few merged batches."""

    evaluations: int
    """Designs counted so far, this batch included."""
    best_score: float
    """Best score so far; infinity without a valid design."""
    valid: int
    """Valid designs in this batch."""
    mean_score: float
    """Mean score of the valid designs in this batch; NaN without any."""
    seconds: float = attrs.field(default=math.nan, eq=False)
    """Processor time of the search so far, the only machine-dependent field."""
    costs: Mapping[str, float] = attrs.field(factory=dict)
    """The cost model's costs of the best design so far, by name."""

    def joined(self, later: Row) -> Row:
        valid = self.valid + later.valid
        total = sum(row.mean_score * row.valid for row in (self, later) if row.valid)
        mean = total / valid if valid else math.nan
        return Row(later.evaluations, later.best_score, valid, mean, later.seconds, later.costs)


@attrs.define
class History:
    """Rows by batch. In a long run a row stands for `stride` batches, a power of two."""

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
    """Whether scores came without an evaluation, perhaps in another unit than the objective's."""
    evaluations: int = 0
    """Designs counted."""
    proposed: int = 0
    """Designs evaluated, counted or not."""
    valid: int = 0
    score: float = math.inf
    genome: Array | None = None
    costs: Mapping[str, float] = attrs.field(factory=dict)
    """The cost model's costs of the best design by name; empty: not known."""
    scenarios: dict[str, dict[str, float]] = attrs.field(factory=dict)
    """The cost model's costs of the best design by scenario and name."""
    names: tuple[str, ...] = ()
    """Names of the costs in `front.numbers`, after the score: once for the problem, then again for each scenario."""
    leading: Leading | None = None
    """The best distinct designs, on request."""
    rejects: dict[str, int] = attrs.field(factory=dict)
    """Designs rejected by reason; a design may count for several."""
    closest: Array | None = None
    """(n, G) rejected genomes with the fewest reasons, kept until the first valid design; n <= `shortfalls.CLOSEST`."""
    fewest: int = 65
    """Number of reasons against each genome of `closest`."""
    history: History = attrs.field(factory=History)
    last: Row | None = None
    """The row of the last batch."""
    front: Front | None = None
    """The best trade-offs between several objectives; None for a single objective."""
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
        """Adds an evaluated batch: genomes (n, G), scores (n,) and, if known, the evaluation behind the scores, the
        values (n, M) of several objectives, and the processor time of the search so far."""
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
        self.last = Row(self.evaluations, self.score, len(counted), mean, seconds, self.costs)
        self.history.add(self.last)

    @property
    def valid_fraction(self) -> float:
        return self.valid / max(self.proposed, 1)
