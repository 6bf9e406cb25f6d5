"""How uneven tiles are: the deviation of the work that goes with a tile, and of its words (docs/model.md, `overlap`)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..actions import NONE
from ..nest import Nest
from ..prepared import DesignChoices, ModelTables
from ..removal import Removal
from .imbalance import Thinned, maxima_of, tile_work
from .maxima import Maxima, WorkBoxes


@attrs.frozen(eq=False)
class Uneven:
    """Standard deviations; `removal` has the filters that save time."""

    known: ModelTables
    nest: Nest
    choices: DesignChoices
    removal: Removal
    thinned: Thinned
    cycles: PerDesign
    """Of the mean lane, in which it works."""

    @property
    def _maxima(self) -> Maxima:
        return maxima_of(self.known, float(self.choices.chip.instances[-1].max()))

    def work(self, h: int, rows: Mapping[int, Rows]) -> dict[int, tuple[PerDesign, PerDesign]]:
        """Per tensor, of so many designs (n,): the cycles, if the run were one tile, of the longest work of the lanes that use
        one tile of it at level h; and the chance that there is any."""
        every = np.concatenate([*rows.values(), np.zeros(0, dtype=np.int64)])
        looks = self.thinned.looks[:, every]
        if not np.isfinite(looks).any():
            return {t: (np.zeros(len(mine)), np.ones(len(mine))) for t, mine in rows.items()}
        work = WorkBoxes.join([tile_work(self.known, self.nest, self.thinned, t, h, mine) for t, mine in rows.items()])
        relative, some = self._maxima.spreads(work, looks)
        ends = np.cumsum([len(mine) for mine in rows.values()])[:-1]
        parts = zip(np.split(relative * self.cycles[every], ends), np.split(some, ends), strict=True)
        return dict(zip(rows, parts, strict=True))

    def words(self, t: int, h: int, rows: Rows) -> PerDesign:
        """(n,) over the mean, of the words that come with a tile of operand t at level h, 0 where it is left out."""
        lay, left = self.known.layout, np.ones(len(rows))
        for s in range(h):
            left = np.where(self.removal.kind[t, s, rows] != NONE, 1.0 - self.removal.share[t, s, rows], left)
        square = np.zeros(len(rows))
        packed = np.flatnonzero(self.choices.packed[t, h, rows])
        if packed.size:
            widths = np.array([width[rows[packed]] for width in self.nest.boxes[t][h]])
            if not self.known.tables[t].by_shape:
                widths = widths.prod(axis=0, keepdims=True)
            square[packed] = self._maxima.deviations(lay.operands.index(t), widths) ** 2
        return np.sqrt(np.maximum((1.0 + square) / np.maximum(left, 1e-12) - 1.0, 0.0))


def later(a: Array, b: Array, spread_a: Array, spread_b: Array, some: Array) -> Array:
    """Expected larger one of two times with these means and deviations, none of them negative; `some`: the chance that the
    first is not zero, 1 where that is not known.

    Where both are above zero the smaller one is on average that of two normal numbers, and at least that of exponential
    ones; a time whose deviation is larger than the mean is taken to be either zero or exponential.
    """
    there_a, there_b = (2.0 / (1.0 + np.maximum((x / m) ** 2, 1.0)) for m, x in ((a, spread_a), (b, spread_b)))
    there_a = np.where(some < 1.0, some, there_a)
    (part_a, rest_a), (part_b, rest_b) = (
        (mean / p, np.sqrt(np.maximum((mean**2 + x**2) / p - (mean / p) ** 2, 0.0)))
        for mean, x, p in ((a, spread_a, there_a), (b, spread_b, there_b))
    )
    spread = np.hypot(rest_a, rest_b)
    varies = spread > 0.0
    apart = np.where(varies, np.abs(part_a - part_b) / np.where(varies, spread, 1.0), 9.0)
    bell = np.exp(-0.5 * apart**2) / math.sqrt(2.0 * math.pi)
    normal = np.minimum(part_a, part_b) - spread * np.maximum(bell - apart * _above(apart), 0.0)
    return a + b - there_a * there_b * np.maximum(normal, 1.0 / (1.0 / part_a + 1.0 / part_b))


def _above(x: Array) -> Array:
    """The chance that a normal number is above x >= 0, to 1e-5 (Abramowitz and Stegun, 26.2.16)."""
    k = 1.0 / (1.0 + 0.33267 * x)
    return np.exp(-0.5 * x**2) / math.sqrt(2.0 * math.pi) * (0.4361836 * k - 0.1201676 * k**2 + 0.9372980 * k**3)
