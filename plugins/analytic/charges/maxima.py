"""Expected maxima of the work of many compute units, from the occupancy distributions of their tiles.

Every distinct tile is computed once (`inner/maxima.py`)."""

from __future__ import annotations

import math
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from sparsemap import Occupancy
from sparsemap.inner.arrays import exps, log2
from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array, Rows

from ..inner import functions
from ..occupancy.lookup import Table, fingerprint
from ..occupancy.shared import SHARED

if TYPE_CHECKING:
    from ..layout import Layout
    from ..prepared import ModelTables

LANES = np.ldexp(1.0, np.arange(-2, 31))
"""Numbers of units with tabulated maxima, from a quarter on, as in `inner/maxima.py`."""
TAILS = np.ldexp(1.0, -np.arange(21)) * (1.0 - 1e-9)
"""Shares of the units for the thresholds of a tile, less a margin for rounding."""
SHAPES = 128
"""Limit of cached distributions: a shape occurs with many numbers of words examined by skips."""


class WorkTiles:
    """Thresholds and maxima of the tiles of one operand. A lock lets several threads take turns."""

    def __init__(self, occupancy: Occupancy, lanes: int) -> None:
        """`lanes`: number of entries of LANES with maxima."""
        self.occupancy, self.lanes, self.lock = occupancy, lanes, Lock()
        self.table, self.scratch = Table(lanes + 2 + 2 * len(TAILS), most=1 << 62), np.empty((3, functions.MERGED))
        self._known: dict[tuple[int, ...], tuple[Array, Array]] = {}

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        return 2 * sum(k.size for k, _ in list(self._known.values())) + self.table.size

    def of(self, looks: Array, widths: Array) -> Array:
        """Figures (width, n) of tiles, by the words (n,) examined by a skip and by shapes (ranks, n)."""

        def make(rows: Rows) -> Array:
            shapes = widths[:, rows].T.astype(np.int64).tolist()
            found = [self._row(int(look), tuple(shape)) for look, shape in zip(looks[rows], shapes, strict=True)]
            return np.array(found)

        with self.lock:
            rows = self.table.rows(fingerprint([looks, *widths]), make)
            return self.table.data[rows].T

    def _row(self, looks: int, shape: tuple[int, ...]) -> Array:
        """Maxima for `lanes` numbers of units, moments, values and shares."""
        k, p = self._shape(shape)
        values, found = np.empty_like(k), np.empty(self.table.width)
        functions.fewer_taken(k, looks, float(max(math.prod(shape), looks)), values)
        if (values[1:] < values[:-1]).any():
            order = np.argsort(values, kind="stable")
            values, p = values[order], p[order]
        functions.work(values, p, TAILS, self.lanes, self.scratch, found)
        return found

    def _shape(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Occupancies of a tile, with shares."""
        if shape not in self._known:
            if len(self._known) >= SHAPES:
                self._known.clear()
            k, p = (np.array(part, dtype=np.float64) for part in self.occupancy.distribution(shape))
            self._known[shape] = k, p / p.cumsum()[-1]
        return self._known[shape]


def _normal() -> Array:
    """(2, 6001) numbers, and the probability of a standard normal variable below each: a series with positive terms
    only."""
    at = np.linspace(-9.0, 9.0, 6001)
    total, term = np.zeros_like(at), np.abs(at)
    for n in range(1, 400, 2):
        total += term
        term = term * (at * at / (n + 2.0))
    below = np.minimum(0.5, total * exps(-0.5 * at * at) / math.sqrt(2.0 * math.pi))
    return np.array([at, 0.5 + np.sign(at) * below])


NORMAL = _normal()


def _normal_maxima() -> Array:
    """(2, len(LANES)) mean and standard deviation of the maximum of LANES normal variables, at least one."""
    (at, below), found = NORMAL, []
    middle = 0.5 * (at[1:] + at[:-1])
    for count in LANES:
        p = np.diff(below)
        mean = (p * middle).sum()
        found.append((mean, math.sqrt((p * middle**2).sum() - mean**2)))
        if count >= 1.0:
            below = below * below
    return np.array(found).T


NORMAL_MAXIMA = _normal_maxima()
_TWO = int(np.searchsorted(LANES, 2.0))
DEVIATIONS = np.divide(*NORMAL_MAXIMA[::-1, np.maximum(np.arange(len(LANES)), _TWO)])


def lanes_for(units: float) -> int:
    """Number of entries of LANES needed for at most `units` waiting units."""
    return 4 * math.ceil((log2(units) + 4.0) / 4.0)


def works_of(known: ModelTables, units: float) -> list[WorkTiles]:
    """The tables of the operands, for at most `units` units."""
    lay, lanes = known.layout, lanes_for(units)

    def make() -> list[WorkTiles]:
        return [SHARED.get(WorkTiles, lay.occupancies[t], lanes) for t in lay.operands]

    return lay.problem.remember((WorkTiles, lanes), make)


def limits_of(known: ModelTables, t: int) -> Array:
    """Words of the whole tensor, or words per rank where shape matters."""
    lay = known.layout
    whole = np.array(box(lay.ranks[t], lay.sizes) or (1.0,))
    return whole if known.tables[t].by_shape else whole.prod(keepdims=True)


def rank_of(lay: Layout, t: int) -> Array:
    """(D,) tensor rank moved by a dimension; 0 for none, and where shapes do not matter."""
    found = np.zeros(lay.D, dtype=np.int64)
    if lay.occupancies[t].by_shape:
        for r, rank in enumerate(lay.ranks[t]):
            for d, _ in rank:
                found[d] = r
    return found
