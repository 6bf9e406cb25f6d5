"""Which of many genomes to evaluate, told from those tried: for evaluations that are dear.

A Gaussian process over genes, as that of `forecast`: scores are sums of what each gene does by itself, so that one that few
designs have is judged by all of them, and of what genes do together. How much of each, how far either reaches, and how much
nothing explains, is what makes the scores that are known likeliest (Rasmussen and Williams, 2006, chapter 5). Chosen is what is
expected to improve most on the best (Jones, Schonlau and Welch, 1998): what is all but known already is not. Of those chosen it
is taken that they score what is expected of them, so that a batch does not try one thing alone.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from sparsemap import Space
from sparsemap.inner.arrays import exps, log, logs
from sparsemap.pieces.contracts import Array, Genomes, Rows, Scored

from .forecast import likeness, reduced

MOST = 200
"""Designs that anything is told from, the best ones."""
ALONE = (0.0, 0.5, 0.8)
"""Shares that genes may have by themselves; the rest is what they do together."""
REACHES = (0.25, 0.5, 1.0)
"""Distances over which scores may be alike: 1 is the range of an ordered gene."""
APART = 0.15
"""Squared distance, over that of the reach, of designs with another value of a gene without order."""
NOISES = (0.01, 0.05, 0.2)
"""Variances that nothing explains, as a share."""
DIGITS = 6
"""A promise is rounded so far: equal ones keep their order."""


def screened(space: Space, known: Scored, genomes: Genomes, count: int, unknown: bool = False) -> Rows:
    """Rows of `count` genomes (n, G) that promise most, or of which least is known; all if there are no more."""
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
    """(G,) which genes have an order."""
    return np.concatenate([np.broadcast_to(g.ordered, len(g.names)) for g in space.segment_genes.values()])


def steps_of(space: Space, genome: Genomes) -> Genomes:
    """All that differ from a genome (1, G) by one step of a gene with an order."""
    moves = np.diag(ordered_of(space).astype(np.int64))
    found = genome + np.concatenate([moves, -moves])
    return found[((found >= space.low) & (found <= space.high)).all(axis=1) & (found != genome).any(axis=1)]


def likeliest(places: Array, genes: Array, scores: Array) -> tuple[Array, float]:
    """How alike all genomes are, (n, n), of whose genes those with order lie at `places` and the others are `genes`, and the
    share that nothing explains: those by which the scores (k,) of the first ones are likeliest."""
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
    """(n,) by how much scores fall short of another, on the mean, that are expected to lie so much below it."""
    ratio = better / spread
    below = 0.5 * np.array([math.erfc(-x / math.sqrt(2.0)) for x in ratio.tolist()])
    return better * below + spread * exps(-0.5 * ratio**2) / math.sqrt(2.0 * math.pi)
