"""How uneven tiles are: the deviation of the work that goes with a tile, and of its words (docs/model.md, `overlap`)."""

from __future__ import annotations

import math

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..nest import DesignChoices, Nest
from ..prepared import ModelTables
from ..removal import Removal
from .imbalance import Thinned, tile_work
from .maxima import LANES, Maxima, maxima_of
from .ratios import WorkBoxes, deviation_of, deviations, loose, ratios_of


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

    def work(self, t: int, h: int, rows: Rows) -> tuple[PerDesign, PerDesign]:
        """Of so many designs (n,): the cycles, if the run were one tile, of the longest work of the lanes that use one tile of
        tensor t at level h; and the chance that there is any."""
        looks = np.take(self.thinned.looks, rows, axis=1)
        if not np.isfinite(looks).any():
            return np.zeros(len(rows)), np.ones(len(rows))
        relative, some = spreads(self._maxima, tile_work(self.known, self.nest, self.thinned, t, h, rows), looks)
        return relative * self.cycles[rows], some

    def words(self, t: int, h: int, rows: Rows) -> PerDesign:
        """(n,) over the mean, of the words that come with a tile of operand t at level h, 0 where it is left out."""
        lay, left = self.known.layout, 1.0 - self.removal.along()[0][t, h, rows]
        square = np.zeros(len(rows))
        packed = np.flatnonzero(self.choices.packed[t, h, rows])
        if packed.size:
            widths = np.array([width[rows[packed]] for width in self.nest.boxes[t][h]])
            if not self.known.tables[t].by_shape:
                widths = widths.prod(axis=0, keepdims=True)
            square[packed] = deviations(self._maxima, lay.operands.index(t), widths) ** 2
        return np.sqrt(np.maximum((1.0 + square) / np.maximum(left, 1e-12) - 1.0, 0.0))


def spreads(maxima: Maxima, work: WorkBoxes, looks: Array) -> tuple[Array, Array]:
    """(n,) standard deviation of the longest work of the units that use a tile, from tile to tile, over the mean; and the
    chance that there is any. `work` is of one part."""
    thins = np.isfinite(looks)
    different = np.where(thins.sum(axis=0) == 1, (np.array(work.lanes) * thins).sum(axis=0), work.units)
    longest = deviation_of(different) * (ratios_of(maxima, work, looks) - 1.0)
    square, some, share = np.ones((3, len(work.units)))
    pairs, apart, single = work.points * work.units, work.points.copy(), np.ones(len(work.units), dtype=bool)
    with maxima.lock:
        for i, box in enumerate(work.boxes):
            rows = np.flatnonzero(thins[i])
            if not rows.size:
                continue
            widths, lanes = np.stack([width[rows] for width in box]), work.lanes[i][rows]
            found = maxima.tiles[i].rows(looks[i, rows], widths)
            mean = maxima.tiles[i].maxima[found, np.searchsorted(LANES, 1.0)]
            moment, there = maxima.tiles[i].moments[found].T
            one = lanes == 1.0  # all units have the same
            square[rows] *= np.where(one & (mean > 0.0), moment / np.where(mean > 0.0, mean, 1.0) ** 2, 1.0)
            any_of = 1.0 - (1.0 - np.minimum(there, 1.0)) ** lanes
            some[rows] *= any_of
            volume = np.maximum(widths.prod(axis=0), looks[i, rows])
            share[rows] *= loose(maxima, i, found, mean, volume)
            pairs[rows] *= mean / np.where(any_of > 0.0, any_of, 1.0)
            apart[rows] /= volume
            single[rows] &= looks[i, rows] == 1.0
    apart = np.where(single & (thins.sum(axis=0) > 1), 1.0 - np.minimum(apart, 1.0), 0.0)
    met = np.where(work.units == 1.0, share * apart / np.maximum(pairs * some, 1e-300), 0.0)
    relative = square * (1.0 + longest**2 + met) - 1.0
    some = some * (1.0 - apart * np.exp(-pairs))
    return np.sqrt(np.maximum(relative, 0.0)), np.clip(some, 1.0 / (1.0 + relative), 1.0)


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
