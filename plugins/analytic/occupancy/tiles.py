"""Figures of a tile from its occupancies (section 5.6): density, largest occupancy, and all k with P(k)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities, Rows

from .lookup import Lists, Table, fingerprint
from .methods import OccupancyMethods

WHOLE = 512
"""Windows up to this many occupancies are not merged."""
TAIL = 1e-13
"""Probability of the single bin at each end of a merged window (`bins`)."""


class Tile(NamedTuple):
    """Figures of tiles, a column (N,) each; places refer to `Tiles.lists`."""

    density: Array  # nonzeros per word, where empty tiles are sent as well
    occupied: Array  # share of the tiles that are sent where the parent sends no empty ones: 1 - p_1
    density_occupied: Array  # nonzeros per word of those
    largest: Array  # largest occupancy
    points: Array  # number of occupancies k that are listed; of bins, where they are merged
    k: Array  # place of these
    p: Array  # place of their probabilities
    left_out: Array  # where empty tiles are not sent, how many of the first k are left out,
    p_sent: Array  # and the place of the probabilities of the others
    grain: Array  # merged windows only, otherwise 0: the distance of possible occupancies,
    step: Array  # what `inner/rank_pieces.py` needs,
    origin: Array
    samples: Array
    edges: Array
    sums: Array
    all_p: Array  # and the place of the probabilities of all k; 0 where some are not listed


class Tiles:
    """The tiles of one tensor. `parts` are words or, where shape matters, words per tensor rank, (N,) each."""

    def __init__(self, occupancy: OccupancyMethods) -> None:
        self.occupancy = occupancy
        self.table = Table(len(Tile._fields), most=1 << 62)
        self.clear()

    def clear(self) -> None:
        self.table.clear()
        self.lists = Lists()
        self.one = self.lists.add(np.ones(1))
        self.merged = False
        """Whether any window is merged."""
        """`one`: place of a single probability, 1."""

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        return self.lists.size + len(Tile._fields) * self.table.count

    def rows(self, parts: Array | Sequence[Array]) -> Rows:
        """The rows (N,) of tiles in `table`."""
        return self.rows_of(fingerprint(parts), parts)

    def rows_of(self, keys: Array, parts: Array | Sequence[Array]) -> Rows:
        """As `rows`, with the fingerprints (N,) of the parts."""

        def fill(rows: Rows) -> Array:
            shapes = zip(*(part[rows].astype(np.int64).tolist() for part in parts), strict=True)
            return np.array([self._tile(shape) for shape in shapes])

        return self.table.rows(keys, fill)

    def _tile(self, shape: tuple[int, ...]) -> Tile:
        """Compute the row of one tile."""
        k, p = self.occupancy.distribution(shape)
        k = np.asarray(k, dtype=np.float64)
        smallest = self.occupancy.smallest(shape, k)
        if self.occupancy.drops_smallest and smallest > 0:
            k, p = k[k >= smallest], p[k >= smallest]
        left_out, occupied, sent = 0, 1.0, p
        if k.size and smallest == 0 and (k[0] == 0 or self.occupancy.drops_smallest):
            left_out, occupied = 1, 1.0 - float(p[0])
            sent = p[1:] / occupied if occupied > 0 else p[1:]
        words = math.prod(map(float, shape))
        add = self.lists.add
        make: Any = Tile  # of single numbers: `rows` makes columns of them
        row = make(
            _mean(k, p) / words, occupied if k.size > left_out else 0.0, _mean(k[left_out:], sent) / words,
            float(self.occupancy.largest(shape)), k.size, 0, 0, left_out, 0, 0.0, 0.0, 0.0, 0, 0, 0, 0,
        )  # fmt: skip
        grain = self.occupancy.grain(shape) if k.size > 1 and k[0] > 0 and p[0] < TAIL else 0
        if not (grain and (k.size > WHOLE or k[1] - k[0] > grain)):
            return row._replace(k=add(k), p=add(p), p_sent=add(sent))
        from .bins import Bins

        self.merged = True
        bins = Bins.of(k, p, grain)
        place = add(bins.p)
        return row._replace(
            points=bins.k.size, k=add(bins.k), p=place, left_out=0, p_sent=place, grain=float(grain),
            step=bins.step, origin=bins.origin, samples=k.size, edges=add(bins.edges), sums=add(bins.sums),
            all_p=add(p) if bins.step == grain else 0,
        )  # fmt: skip


def _mean(k: Nonzeros, p: Probabilities) -> float:
    """Mean, summed in double in order of k, as in Timeloop (5.5)."""
    return float(np.cumsum(p * k)[-1]) if k.size else 0.0
