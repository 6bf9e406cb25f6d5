"""Windows of very many occupancies, merged to few bins: sums over k of functions smooth except for a few steps.

The expected units of a rank are S = sum P(k) u(k). P is smooth, and u is a smooth function of P0(n'|n,k) except where
the format rounds, as in ceil(occupied). A window of hundreds to millions of k is cut into bins, and

    S = sum over bins of p_c u(m_c),      p_c, m_c: probability and mean occupancy of the bin.

The bins' means are spread by a factor of about 1.001, to restore the variance of k. S is then exact for units quadratic
in k, and nearly exact for others: over one standard deviation of k, with x = n'd the expected occupancy of the
sub-tile, 1 - P0 changes by a share x e^-x / (1 - e^-x) (1-d)^(1/2) / (n d)^(1/2), < 5 % in the smallest windows. Where
`occupied` passes a whole number inside the window, bins end there (`pieces.cut`): between the last possible occupancy
with occupied <= v and the next. So ceil(occupied) is summed nearly as exactly as a smooth function.

The relative error of S, measured against the sum over all k (see the tests), is below 5e-6 for smooth units and below
1e-5 for units with ceil(occupied). For a step elsewhere, as in ceil(fibers / 3), the error is up to half the
probability of a bin, 3.5 % of the step's height."""

from __future__ import annotations

import math

import attrs
import numpy as np

from sparsemap.inner.arrays import dot
from sparsemap.pieces.contracts.base import Array

from .lookup import distinct
from .tiles import TAIL

BINS = 96
"""Largest number of bins of a window, excluding the tails."""


@attrs.frozen(eq=False)
class Bins:
    """A window of samples, `step` occupancies each, merged into bins."""

    k: Array
    """(C,) mean occupancy per bin, spread to the variance of all k."""
    p: Array
    """(C,) probability per bin."""
    edges: Array
    """(C + 1,) first sample of each bin, then the number of samples."""
    sums: Array
    """(samples + 3,) probability below each sample and below the end, with one more value at both ends."""
    origin: float
    """Lower end of the first sample."""
    step: float

    @classmethod
    def of(cls, k: Array, p: Array, grain: float) -> Bins:
        """Merge samples k at equal steps, with probabilities p; possible occupancies are `grain` apart.

        Bins are at most 0.17 standard deviations wide, except for the tails.

        Euler-Maclaurin: the probability below the edge between samples i and i+1, s occupancies apart, is sum_(j <= i)
        p_j + (p_(i+1) - p_i)/24 (1 - 1/s^2)."""
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
        center, middle = dot(p, k), dot(share, mean)
        mean = center + (mean - middle) * math.sqrt(dot(p, (k - center) ** 2) / dot(share, (mean - middle) ** 2))
        return cls(mean, share, edges.astype(np.float64), sums, float(k[0]) - step / 2, step)
