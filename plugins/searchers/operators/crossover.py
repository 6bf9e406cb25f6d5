"""Crossovers: at one point, uniform, and sensitivity-aware (Section IV-E)."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array, Context, Crossover, Genomes

from .common import high_sensitivity, part_starts


@attrs.frozen(kw_only=True)
class SensitivityAware(Crossover):
    """Cuts only at the borders of runs of high-sensitivity genes, so that no run is torn apart.

    The borders of the genome's natural parts (orders, tiling by dimension, formats by tensor, skip/gate) are cut points
    too, unless inside a high-sensitivity run."""

    type_name: ClassVar[str] = "sensitivity-aware"

    points: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Largest number of cut points per mating."""
    parts: bool = True
    """Whether the borders of natural parts are cut points; without these, and without high-sensitivity genes, nothing
    is cut."""

    def cross(self, pairs: Genomes, context: Context) -> Genomes:
        return _crossed(pairs, self.cut_points(context), self.points, context.rng)

    def cut_points(self, context: Context) -> Array:
        """Ascending gene indices c; a cut there puts gene c and later genes on the other side."""
        genes = len(context.space)
        high = high_sensitivity(context)
        cuts = np.zeros(genes, bool)
        if genes:
            cuts[1:] = high[1:] != high[:-1]
            if self.parts:
                cuts[1:] |= part_starts(context.space)[1:] & ~(high[1:] & high[:-1])
        return np.flatnonzero(cuts)


@attrs.frozen(kw_only=True)
class OnePoint(Crossover):
    """Cuts anywhere between two genes."""

    type_name: ClassVar[str] = "one-point"

    rate: float = attrs.field(default=1.0, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Share of crossed pairs; other children are copies of the first parent."""

    def cross(self, pairs: Genomes, context: Context) -> Genomes:
        children = _crossed(pairs, np.arange(1, pairs.shape[2]), 1, context.rng)
        if self.rate < 1:
            children = np.where(context.rng.random((len(pairs), 1)) < self.rate, children, pairs[:, 0])
        return children


@attrs.frozen(kw_only=True)
class UniformCrossover(Crossover):
    """Takes each gene from either parent."""

    type_name: ClassVar[str] = "uniform-crossover"

    share: float = attrs.field(default=0.5, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Probability of taking a gene from the second parent."""

    def cross(self, pairs: Genomes, context: Context) -> Genomes:
        second = context.rng.random((len(pairs), pairs.shape[2])) < self.share
        return np.where(second, pairs[:, 1], pairs[:, 0])


def _crossed(pairs: Genomes, cuts: Array, points: int, rng: np.random.Generator) -> Genomes:
    """Children changing parents at up to `points` random cuts; (n, 2, G) -> (n, G)."""
    if not len(cuts):
        return pairs[:, 0].copy()
    chosen = cuts[rng.integers(len(cuts), size=(len(pairs), points))]
    side = (np.arange(pairs.shape[2]) >= chosen[:, :, None]).sum(axis=1) % 2
    return np.where(side == 1, pairs[:, 1], pairs[:, 0])
