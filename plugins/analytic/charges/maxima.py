"""Expected maxima of the work of many compute units, from the distributions of what their tiles hold.

Everything is computed once per distinct tile (`inner/maxima.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from sparsemap import Occupancy
from sparsemap.inner.arrays import exps
from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array, Rows

from ..inner import functions
from ..occupancy.lookup import Number, Table, fingerprint
from ..occupancy.shared import SHARED

if TYPE_CHECKING:
    from ..layout import Layout
    from ..prepared import ModelTables

LANES = 2.0 ** np.arange(-2, 31)
"""Numbers of units for which the maximum of a tile is tabulated, from a quarter on, as `inner/maxima.py` has them."""
TAILS = 2.0 ** -np.arange(0.0, 21.0)
"""Shares of the units for which thresholds of a tile are."""
SHAPES = 128
"""Shapes whose distributions are kept: tiles of one shape come with many numbers of words at which skips look."""


class Rowed:
    """A table of which others take whole rows."""

    def __init__(self, width: int) -> None:
        self.table = Table(Number, most=1 << 62, width=width)

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.table.size

    @property
    def figures(self) -> Array:
        """(rows, width)"""
        return self.table.data

    def rows(self, first: Array, others: Array) -> Rows:
        """Rows (n,) of what these numbers say, (n,) and (k, n)."""
        raise NotImplementedError


class WorkTiles(Rowed):
    """Thresholds and maxima of the tiles of one operand."""

    def __init__(self, occupancy: Occupancy, lanes: Array) -> None:
        """`lanes`: for how many units maxima are tabulated."""
        super().__init__(len(lanes) + 2 + 2 * len(TAILS))
        self.occupancy, self.lanes = occupancy, lanes
        self._known: dict[tuple[int, ...], tuple[Array, Array]] = {}

    @property
    def size(self) -> int:
        return 2 * sum(k.size for k, _ in list(self._known.values())) + super().size

    def rows(self, looks: Array, widths: Array) -> Rows:
        """Rows for tiles by the words (n,) at which a skip looks, and by their shapes (ranks, n)."""

        def make(rows: Rows) -> Array:
            shapes = widths[:, rows].T.astype(np.int64).tolist()
            found = [self._row(int(look), tuple(shape)) for look, shape in zip(looks[rows], shapes, strict=True)]
            return np.array(found).T

        return self.table.rows(fingerprint([looks, *widths]), make)

    def _row(self, looks: int, shape: tuple[int, ...]) -> Array:
        """Maxima of `lanes` units, moments, values and shares."""
        k, p = self._shape(shape)
        values, found = np.empty_like(k), np.empty(self.table.width)
        functions.fewer_taken(k, looks, float(max(math.prod(shape), looks)), values)
        if (values[1:] < values[:-1]).any():
            order = np.argsort(values, kind="stable")
            values, p = values[order], p[order]
        functions.work(values, p, TAILS * (1.0 - 1e-9), len(self.lanes), np.empty((3, MERGED)), found)
        return found

    def _shape(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Occupancies of a tile, and their shares."""
        if shape not in self._known:
            if len(self._known) >= SHAPES:
                self._known.clear()
            k, p = (np.array(part, dtype=np.float64) for part in self.occupancy.distribution(shape))
            self._known[shape] = k, p / p.cumsum()[-1]
        return self._known[shape]


class MetPlaces(Rowed):
    """Maxima of how many of some places hold something in all operands, where these meet by chance."""

    def __init__(self, lanes: Array) -> None:
        super().__init__(len(lanes))
        self.lanes = lanes

    def rows(self, places: Array, chance: Array) -> Rows:
        """Rows for so many places (n,) with this chance (1, n) each; keys are of their bits."""

        def make(rows: Rows) -> Array:
            found = [self._row(*one) for one in zip(places[rows].tolist(), chance[0, rows].tolist(), strict=True)]
            return np.array(found).T

        return self.table.rows(fingerprint([part.view(np.int64) for part in (places, chance[0])]), make)

    def _row(self, places: float, chance: float) -> Array:
        mean, spread = places * chance, math.sqrt(places * chance * (1.0 - chance))
        low, high = max(0.0, math.floor(mean - 9 * spread - 9)), min(places, math.ceil(mean + 12 * spread + 30))
        found, shares = np.empty(len(self.lanes)), np.empty((3, MERGED))
        if high - low > WINDOW:
            k = np.linspace(low, high, WINDOW)
            p = exps(-0.5 * ((k - mean) / spread) ** 2)
            functions.mean_maxima(k / places, p / p.cumsum()[-1], len(self.lanes), shares, found)
        else:
            functions.meetings(places, chance, low, len(self.lanes), *np.empty((2, int(high - low) + 1)), shares, found)
        return found


MERGED = 256
"""Values of a distribution that are told apart, at most: steps of a tenth of a standard deviation."""
WINDOW = 1 << 16
"""The most numbers of places with something that are listed; of more, some at equal steps, as normal numbers have them."""
_AT = np.linspace(-9.0, 9.0, 6001)
NORMAL = np.array([_AT, 0.5 * np.array([1.0 + math.erf(x / math.sqrt(2.0)) for x in _AT])])
"""Numbers (2, 6001), and the chance that a normal one is below."""


def _normal_maxima() -> Array:
    """Of the maximum of LANES normal numbers, one at least: (2, len(LANES)) mean and standard deviation."""
    middle, found = 0.5 * (_AT[1:] + _AT[:-1]), []
    for count in np.maximum(LANES, 1.0):
        p = np.diff(NORMAL[1] ** count)
        mean = (p * middle).sum()
        found.append((mean, math.sqrt((p * middle**2).sum() - mean**2)))
    return np.array(found).T


NORMAL_MAXIMA = _normal_maxima()
_TWO = int(np.searchsorted(LANES, 2.0))
DEVIATIONS = np.divide(*NORMAL_MAXIMA[::-1, np.maximum(np.arange(len(LANES)), _TWO)])


def lanes_for(units: float) -> int:
    """How many of LANES it takes where no more `units` than these wait for each other."""
    return 4 * math.ceil((math.log2(units) + 4.0) / 4.0)


class Maxima:
    """The work with tiles of the operands, and positions that meet by chance."""

    def __init__(self, occupancies: Sequence[Occupancy], lanes: int) -> None:
        """Of the operands, for the first `lanes` of LANES."""
        self.lanes = LANES[:lanes]
        self.tiles = [WorkTiles(occupancy, self.lanes) for occupancy in occupancies]
        self.meetings = MetPlaces(self.lanes)
        self.lock = Lock()

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.meetings.size + sum(tiles.size for tiles in self.tiles)


def maxima_of(known: ModelTables, units: float) -> Maxima:
    """The tables of the operands, for no more than so many units."""
    lay, lanes = known.layout, lanes_for(units)
    occupancies = tuple(lay.occupancies[t] for t in lay.operands)
    return lay.problem.remember((Maxima, lanes), lambda: SHARED.get(Maxima, occupancies, lanes))


def limits_of(known: ModelTables, t: int) -> Array:
    """Words of the whole tensor, or words per rank where the shape matters."""
    lay = known.layout
    whole = np.array(box(lay.ranks[t], lay.sizes) or (1.0,))
    return whole if known.tables[t].by_shape else whole.prod(keepdims=True)


def rank_of(lay: Layout, t: int) -> Array:
    """(D,) the tensor rank that a dimension moves; 0 if none, or where shapes do not matter."""
    found = np.zeros(lay.D, dtype=np.int64)
    if lay.occupancies[t].by_shape:
        for r, rank in enumerate(lay.ranks[t]):
            for d, _ in rank:
                found[d] = r
    return found
