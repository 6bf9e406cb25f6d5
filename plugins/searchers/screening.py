"""Which of many genomes to evaluate, told from those tried: for evaluations that are dear.

The Gaussian process of `forecast`, over genes: ordered ones by how far they are apart in their range, others by whether they
are equal. Of those chosen it is taken that they score what is expected of them, so that a batch does not try one thing alone.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Genomes, Rows, Scored

from .forecast import conditioned, likeness

MOST = 200
"""Designs that anything is told from, the best ones."""
REACH = 0.5 / math.sqrt(3.0)
"""Distance over which scores are alike: 1 is the range of an ordered gene."""
APART = 0.0125
"""Squared distance of designs with another value of a gene without order."""
NOISE = 0.1
"""Variance that nothing explains, as a share."""
DARING = 1.0
"""Standard deviations below what is expected that count as a promise."""
DIGITS = 6
"""A promise is rounded so far: equal ones keep their order."""


def screened(space: Space, known: Scored, genomes: Genomes, count: int) -> Rows:
    """Rows of `count` genomes (n, G) that promise most, all if there are no more."""
    known = known.take(np.flatnonzero(np.isfinite(known.scores) & (known.scores > 0.0))).best(MOST)
    if len(genomes) <= count or not len(known):
        return np.arange(min(count, len(genomes)))
    every, first = np.concatenate([known.genomes, genomes]), len(known)
    ordered = np.concatenate([np.broadcast_to(g.ordered, len(g.names)) for g in space.segment_genes.values()])
    places = (every / np.maximum(space.high - space.low, 1))[:, ordered]
    kernel, _ = likeness(places, every[:, ~ordered], len(every), REACH, APART)
    told, expected = conditioned(kernel[:, :first], np.log(known.scores), NOISE)
    kernel = kernel[first:, first:] - np.einsum("ik,jk->ij", told, told)
    chosen = list[int]()
    for _ in range(count):
        promise = np.round(expected - DARING * np.sqrt(np.maximum(np.diagonal(kernel), 0.0)), DIGITS)
        promise[chosen] = np.inf
        chosen.append(k := int(promise.argmin()))
        kernel = kernel - (kernel[k] / (kernel[k, k] + NOISE))[:, None] * kernel[k]
    return np.sort(np.array(chosen))
