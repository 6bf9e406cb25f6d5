"""Mutations: plain random resetting, and annealing (Section IV-E, Eq. 6-7)."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap.inner.arrays import exp
from sparsemap.pieces.contracts import Array, Context, Genomes, Mutation

from .common import another, high_sensitivity, pick_some, steps

_share: list[Any] = [attrs.validators.ge(0), attrs.validators.le(1)]


def high_probability(progress: float, start: float = 0.8) -> float:
    """P_h of Eq. 6: 0.8 * exp(-phi) * (1 - phi) with phi = g/G. P_l is 1 - P_h (Eq. 7)."""
    return start * exp(-progress) * (1.0 - progress)


@attrs.frozen(kw_only=True)
class AnnealingMutation(Mutation):
    """Changes the high-sensitivity genes of an offspring early on, other genes later.

    An offspring mutates with probability `rate`. One of its two gene segments is chosen with P_h and P_l. One gene of
    this segment certainly changes, and further genes change so that `genes` change on average."""

    type_name: ClassVar[str] = "annealing"

    rate: float = attrs.field(default=0.8, validator=_share)
    """Probability that an offspring mutates."""
    genes: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    """Average number of changed genes in a mutating offspring, limited by the segment."""
    step: float = attrs.field(default=0.0, validator=_share)
    """Share of changes of ordered genes to a neighbouring value; other changes are to any other value."""
    start: float = attrs.field(default=0.8, validator=_share)
    """P_h at the beginning, 0.8 in Eq. 6."""

    def mutate(self, genomes: Genomes, context: Context) -> Genomes:
        rng, count = context.rng, len(genomes)
        high = high_sensitivity(context)
        chosen = rng.random((count, 1)) < high_probability(context.progress, self.start)
        if not high.any() or high.all():  # only one segment: nothing to choose
            chosen = np.full((count, 1), bool(high.any()))
        return _mutated(genomes, np.where(chosen, high, ~high), self.rate, self.genes, self.step, context)


@attrs.frozen(kw_only=True)
class RandomReset(Mutation):
    """Mutates an offspring with probability `rate`: about `genes` random genes get another value."""

    type_name: ClassVar[str] = "random-reset"

    rate: float = attrs.field(default=0.8, validator=_share)
    """Share of mutated children."""
    genes: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    """Average number of genes changed by a mutation."""

    def mutate(self, genomes: Genomes, context: Context) -> Genomes:
        return _mutated(genomes, np.ones(genomes.shape, bool), self.rate, self.genes, 0.0, context)


def _mutated(genomes: Genomes, segment: Array, rate: float, genes: float, step: float, context: Context) -> Genomes:
    """Genomes with about `genes` genes of each row's `segment` (n, G) bool changed, in a share `rate` of the rows."""
    space, rng = context.space, context.rng
    segment = segment & (space.high > space.low)
    sizes = segment.sum(axis=1, keepdims=True)
    picked = pick_some(segment, (genes - 1.0) / np.maximum(sizes - 1, 1), rng)
    picked &= rng.random((len(genomes), 1)) < rate
    ordered = np.concatenate([np.full(len(g.names), g.ordered) for g in space.segment_genes.values()])
    near = picked & ordered & (rng.random(genomes.shape) < step)
    changed = np.where(picked & ~near, another(genomes, space.low, space.high, rng), genomes)
    return steps(changed, near, space, rng)
