"""Windows of very many occupancies as few bins: sums over k where all is smooth but for a few steps.

The expected units of a rank are S = sum P(k) u(k). P is smooth, and u is a smooth function of P0(n'|n,k) except where
the format rounds, as in ceil(occupied). A window of hundreds to millions of k is cut in bins, and

    S = sum over bins of p_c u(m_c),      p_c, m_c: probability and mean occupancy of the bin.

The bins' means are spread by the factor, about 1.001, that gives them the variance of k; S is then exact for units
that are quadratic in k. Others are nearly so: over one standard deviation of k, with x = n'd the expected occupancy of
the sub-tile, 1 - P0 changes by a share x e^-x / (1 - e^-x) (1-d)^(1/2) / (n d)^(1/2), < 5 % in the smallest windows.

Where `occupied` passes a whole number inside the window, bins end there (`cut`): between the last possible occupancy
with occupied <= v and the next one. So ceil(occupied) is summed nearly as exactly as anything smooth.

The relative error of S, as measured against the sum over all k (see the tests): below 5e-6 where units are smooth,
below 1e-5 where they hold ceil(occupied). Of a step elsewhere, as in ceil(fibers / 3), up to half the probability of a
bin is missed, 3.5 % of the step's height.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .. import native
from .lookup import distinct
from .tiles import TAIL

BINS = 96
"""The most bins of a window, but for the tails."""
CUTS = 1 << 12
"""Ranks with more steps than this in one window are left uncut: at thousands of steps, none matters."""


@attrs.frozen(eq=False)
class Bins:
    """A window of samples, `step` occupancies each, merged in bins."""

    k: Array
    """Mean occupancy per bin, (C,), spread to the variance of all k."""
    p: Array
    """Probability per bin."""
    edges: Array
    """First sample of each bin, then the number of samples, (C + 1,)."""
    sums: Array
    """Probability below each sample and below the end, with one more value at both ends, (samples + 3,)."""
    origin: float
    """The lower end of the first sample."""
    step: float

    @classmethod
    def of(cls, k: Array, p: Array, grain: float) -> Bins:
        """Samples k at equal steps with probabilities p; possible occupancies are `grain` apart.

        Bins are at most 0.17 standard deviations wide, but for the tails.

        Euler-Maclaurin: the probability below the edge between samples i and i+1, s occupancies apart, is
        sum_(j <= i) p_j + (p_(i+1) - p_i)/24 (1 - 1/s^2).
        """
        step = float(k[1] - k[0])
        sums = np.zeros(len(k) + 3)
        np.cumsum(p, out=sums[2:-1])
        sums[-2:] = sums[-2]
        sums[2:-2] += np.diff(p) * ((1 - (grain / step) ** 2) / 24)
        low, high = np.searchsorted(sums[1:-1], [TAIL, sums[-1] - TAIL])
        low, high = max(int(low) - 1, 0), min(int(high), len(k))
        inner = np.arange(low, high, -(-(high - low) // BINS))
        edges = distinct(np.concatenate([[0], inner, [high, len(k)]]))
        share = np.diff(sums[1:-1][edges])
        mean = np.add.reduceat(p * k, edges[:-1]) / np.add.reduceat(p, edges[:-1])
        center, middle = p @ k, share @ mean
        mean = center + (mean - middle) * np.sqrt((p @ (k - center) ** 2) / (share @ (mean - middle) ** 2))
        return cls(mean, share, edges.astype(np.float64), sums, float(k[0]) - step / 2, step)


@attrs.frozen(eq=False)
class Windows:
    """The merged windows of n ranks; all but `store` (n,)."""

    store: Array
    """Holds `Bins.edges` and `Bins.sums` .."""
    edges: Array
    sums: Array
    """.. from these places on."""
    samples: Array
    origin: Array
    step: Array
    grain: Array


@attrs.frozen(eq=False)
class Pieces:
    """Pieces of bins, (n,) each."""

    rank: Array
    bin: Array
    k: Array
    """Mean occupancy."""
    p: Array


def cut(
    windows: Windows, rank: Array, bin: Array, rises: Array, means: Array, occupied: Array,
    occupied_at: Callable[[Array, Array], Array],
) -> Pieces:  # fmt: skip
    """Pieces, by rank, those before a step and then those behind the last one of a bin, of the bins in which `occupied` passes a
    whole number.

    In n places, in order of rank and bin, `occupied` takes `rises` > 0 steps from the mean of a bin to that of the
    next; `means` and `occupied` there are (2, n). `occupied_at(rank, k)` is the function itself: a step is placed by
    linear interpolation, which in so small a range is less than one occupancy off, and by the four values around.
    """
    if native.units is not None and (found := _cut_in_c(windows, rank, bin, rises, means, occupied, occupied_at)):
        return found
    from .bins_uncompiled import cut as cut_in_numpy

    return cut_in_numpy(windows, rank, bin, rises, means, occupied, occupied_at)


def _cut_in_c(
    windows: Windows, rank: Array, bin: Array, rises: Array, means: Array, occupied: Array,
    occupied_at: Callable[[Array, Array], Array],
) -> Pieces | None:  # fmt: skip
    """`cut` by the loops of `units.c`; None: an array is not known there."""
    count = int(rises.sum())
    source, (value, first), near = np.empty(count, np.int64), np.empty((2, count)), np.empty(4 * count)
    given = windows.grain, rank, rises, *map(np.ascontiguousarray, (means, occupied))
    if native.units.near(*given, source, value, first, near) is None:
        return None
    w, around = windows, occupied_at(np.repeat(rank[source], 4), near)
    places, numbers = np.empty((2, 2 * count), np.int64), np.empty((2, 2 * count))
    given = w.store, w.edges, w.sums, w.samples, w.origin, w.step, w.grain, rank, bin, source, value, first, around
    made = native.units.cut(*given, places, numbers)
    return None if made is None else Pieces(*places[:, :made], *numbers[:, :made])
