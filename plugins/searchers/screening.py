"""Which of many genomes to evaluate, told from those tried: for evaluations that are dear.

A Gaussian process (Rasmussen and Williams, 2006) of the logarithm of the score over genes: ordered ones by how far they are
apart in their range, others by whether they are equal. It is conditioned on one design after the other, without a library
of linear algebra, whose threads round differently; of those chosen it is taken that they score what is expected of them, so
that a batch does not try one thing alone.
"""

from __future__ import annotations

import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Genomes, Rows, Scored

MOST = 200
"""Designs that anything is told from, the best ones."""
REACH = 0.5
"""Distance over which scores are alike: 1 is the range of an ordered gene."""
APART = 0.05
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
    every = np.concatenate([known.genomes, genomes])
    ordered = np.concatenate([np.broadcast_to(g.ordered, len(g.names)) for g in space.segment_genes.values()])
    span = np.maximum(space.high - space.low, 1)
    apart = np.abs(every[:, None] - every[None]) / span
    squared = (np.where(ordered, (apart / REACH) ** 2, APART * (apart > 0.0))).sum(axis=2)
    far = np.sqrt(3.0 * squared)
    kernel = (1.0 + far) * np.exp(-far)
    scores = np.log(known.scores)
    scores = (scores - scores.mean()) / (scores.std() or 1.0)
    mean = np.zeros(len(every))
    for k, score in enumerate(scores):
        gain = kernel[k] / (kernel[k, k] + NOISE)
        mean += gain * (score - mean[k])
        kernel = kernel - gain[:, None] * kernel[k]
    chosen = list[int]()
    for _ in range(count):
        promise = np.round(mean - DARING * np.sqrt(np.maximum(np.diagonal(kernel), 0.0)), DIGITS)
        promise[: len(known)] = np.inf
        promise[chosen] = np.inf
        k = int(promise.argmin())
        chosen.append(k)
        gain = kernel[k] / (kernel[k, k] + NOISE)
        kernel = kernel - gain[:, None] * kernel[k]
    return np.sort(np.array(chosen)) - len(known)
