"""A design as the state of a game: actions edit one gene, the reward is the gain of the edit. Arrays only, no packages.

Genes of few values are set to any value; genes of many values move by steps of 1, 8, 64, .. up or down, wrapping
around."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Array, Genomes, PerDesign, Scores, shifted

SETTABLE = 24
"""Largest number of values of a directly settable gene."""
DECADES = 5.0
"""Limit of merits in orders of magnitude; an invalid design has the lowest merit."""
INVALID = 100.0
"""Loss of an invalid design: 10^100, worse than any valid design."""


def losses(scores: Scores) -> PerDesign:
    """Decimal logarithm of the scores, (n,); `INVALID` for invalid designs."""
    known = np.isfinite(scores)
    logs = np.log10(np.maximum(np.where(known, scores, 1.0), np.finfo(np.float64).tiny))
    return np.where(known, logs, INVALID)


@attrs.define(eq=False, slots=False)
class Edits:
    """Actions, observations and merits in one space, for n designs at a time."""

    space: Space
    reference: float | None = None
    """Score with merit 0; None: the score of the first valid design."""

    @cached_property
    def table(self) -> tuple[Array, Array, Array]:
        """Per action: gene, amount, and whether the amount is a step instead of a value counted from the lowest."""
        rows: list[tuple[int, int, bool]] = []
        for gene, span in enumerate((self.space.high - self.space.low + 1).tolist()):
            if 1 < span <= SETTABLE:
                rows += [(gene, value, False) for value in range(span)]
            elif span > 1:
                step = 1
                while step < span:
                    rows += [(gene, step, True), (gene, -step, True)]
                    step *= 8
        if not rows:
            rows = [(0, 0, True)] if len(self.space) else []
        columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return columns[0], columns[1], columns[2].astype(bool)

    @property
    def actions(self) -> int:
        return max(len(self.table[0]), 1)

    def apply(self, genomes: Genomes, actions: Array) -> Genomes:
        """(n, G) genomes, each edited by one action (n,)."""
        edited = genomes.copy()
        if not len(self.table[0]):
            return edited
        gene, amount, step = (column[actions] for column in self.table)
        rows, low, high = np.arange(len(genomes)), self.space.low[gene], self.space.high[gene]
        edited[rows, gene] = shifted(np.where(step, genomes[rows, gene], low), amount, low, high)
        return edited

    def merits(self, scores: Scores) -> Array:
        """(n,) orders of magnitude better than the reference, -5 to 5; -5 for invalid designs."""
        known = np.isfinite(scores)
        if self.reference is None and known.any():
            self.reference = float(scores[known][0])
        better = losses(np.array([self.reference or 1.0])) - losses(scores)
        return np.where(known, np.clip(better, -DECADES, DECADES), -DECADES)

    def observe(self, genomes: Genomes, merits: Array) -> Array:
        """(n, G + 1) float32 in 0..1: genes from lowest to highest value, and the merit."""
        low, high = self.space.low, self.space.high
        merit = (merits[:, None] + DECADES) / (2 * DECADES)
        return np.concatenate([(genomes - low) / np.maximum(high - low, 1), merit], axis=1).astype(np.float32)
