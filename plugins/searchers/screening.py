"""Choice of genomes for expensive evaluations, by a forecast from the designs tried.

A Gaussian process over genes, as in `forecast`. Scores are a sum of the effect of each gene alone, so all designs
inform the effect of a rare value, and of joint effects of genes. Maximum likelihood of the known scores sets the shares
of both effects, their reach, and the unexplained variance (Rasmussen and Williams, 2006, chapter 5). The genome with
the largest expected improvement over the best is chosen (Jones, Schonlau and Welch, 1998), which excludes nearly known
genomes. Each chosen genome is assumed to score its expected value, which keeps a batch diverse."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from sparsemap import Space
from sparsemap.inner.arrays import exps, log, logs
from sparsemap.pieces.contracts import Array, Genomes, Rows, Scored

from .forecast import likeness, reduced

MOST = 200
"""Largest number of designs used for the forecast, the best designs."""
ALONE = (0.0, 0.5, 0.8)
"""Candidate shares of the effects of single genes; the rest are joint effects."""
REACHES = (0.25, 0.5, 1.0)
"""Candidate distances over which scores are similar: 1 is the range of an ordered gene."""
APART = 0.15
"""Squared distance, relative to the reach, for another value of an unordered gene."""
NOISES = (0.01, 0.05, 0.2)
"""Candidate unexplained variances, relative."""
DIGITS = 6
"""Digits of a promise: equal promises keep their order."""


def screened(space: Space, known: Scored, genomes: Genomes, count: int, unknown: bool = False) -> Rows:
    """Rows of `count` genomes (n, G) with the largest promise, or with the least known about them; all rows if there
    are no more."""
    known = known.take(np.flatnonzero(np.isfinite(known.scores) & (known.scores > 0.0))).best(MOST)
    if len(genomes) <= count or not len(known):
        return np.arange(min(count, len(genomes)))
    every, first = np.concatenate([known.genomes, genomes]), len(known)
    ordered, free = ordered_of(space), space.high > space.low
    places = (every / np.maximum(space.high - space.low, 1))[:, ordered & free]
    scores = logs(known.scores)
    scores = (scores - scores.mean()) / (scores.std() or 1.0)
    kernel, noise = likeliest(places, every[:, ~ordered & free], scores)
    told = reduced(np.concatenate([kernel[:, :first] + noise * np.eye(len(kernel), first), scores[None]]))[first:]
    expected = (told[:-1] * told[-1]).sum(axis=1)
    kernel = kernel[first:, first:] - np.einsum("ik,jk->ij", told[:-1], told[:-1])
    chosen = list[int]()
    for _ in range(count):
        spread = np.sqrt(np.maximum(np.diagonal(kernel), 1e-12))
        gain = spread if unknown else improvement(scores.min() - expected, spread)
        gain[chosen] = -np.inf
        chosen.append(k := int(np.round(gain, DIGITS).argmax()))
        kernel = kernel - (kernel[k] / (kernel[k, k] + noise))[:, None] * kernel[k]
    return np.sort(np.array(chosen, np.int64))


def ordered_of(space: Space) -> Array:
    """(G,) bool: whether each gene is ordered."""
    return np.concatenate([np.broadcast_to(g.ordered, len(g.names)) for g in space.segment_genes.values()])


def steps_of(space: Space, genome: Genomes) -> Genomes:
    """All genomes different from a genome (1, G) by one step of an ordered gene."""
    moves = np.diag(ordered_of(space).astype(np.int64))
    found = genome + np.concatenate([moves, -moves])
    return found[((found >= space.low) & (found <= space.high)).all(axis=1) & (found != genome).any(axis=1)]


def likeliest(places: Array, genes: Array, scores: Array) -> tuple[Array, float]:
    """Similarity matrix (n, n) of all genomes, with ordered genes at `places` and other `genes`, and the relative
    unexplained variance, both of maximum likelihood for the scores (k,) of the first genomes."""
    known, found = len(scores), list[tuple[float, Array, float]]()
    for reach, alone in product(REACHES, ALONE):
        near = likeness(places, genes, len(places), reach, APART * reach**2)
        kernel = (1.0 - alone) * (np.tril(near) + np.tril(near, -1).T)
        if alone:
            each = alone / (places.shape[1] + genes.shape[1])
            for place in places.T:
                apart = np.abs(place[:, None] - place) / reach
                kernel += each * (1.0 + apart) * exps(-apart)
            for gene in genes.T:
                kernel += each * (gene[:, None] == gene)
        for noise in NOISES:
            given = np.concatenate([kernel[:known, :known] + noise * np.eye(known), scores[None]])
            rows = reduced(given)
            spread = log(max(float((rows[-1] ** 2).sum()) / known, 1e-300))
            unlikely = round(known / 2 * spread + float(logs(np.diagonal(rows)).sum()), DIGITS)
            found.append((unlikely, kernel, noise))
    _, kernel, noise = min(found, key=lambda one: one[0])
    return kernel, noise


def improvement(better: Array, spread: Array) -> Array:
    """(n,) expected improvement: mean positive part of the amount below a score, for an expected amount `better` and
    deviation `spread`."""
    ratio = better / spread
    below = 0.5 * np.array([math.erfc(-x / math.sqrt(2.0)) for x in ratio.tolist()])
    return better * below + spread * exps(-0.5 * ratio**2) / math.sqrt(2.0 * math.pi)
