"""Initialisations: uniform random, Latin hypercube sampling, and high-sensitivity hypercubes (Section IV-D, Fig. 11)."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Context, Genomes, Init, PerGene, Proposals, Scored

from .common import high_sensitivity, unique, valid

PAPER_LOG10_SIZE = 41.0
"""Size of the space of Section III-B, for which the paper uses 100 hypercubes of 20 tries."""


class UniformInit(Init):
    """`size` designs with every gene uniform and independent."""

    type_name: ClassVar[str] = "uniform"

    def fill(self, size: int, context: Context) -> Proposals:
        return (yield context.space.sample(size, context.rng))


class LatinHypercube(Init):
    """Latin hypercube sampling: each gene's range is cut into `size` equal strata, and every stratum is hit once."""

    type_name: ClassVar[str] = "latin-hypercube"

    def fill(self, size: int, context: Context) -> Proposals:
        space, rng = context.space, context.rng
        strata = rng.permuted(np.repeat(np.arange(size)[:, None], len(space), axis=1), axis=0)
        places = (strata + rng.random(strata.shape)) / max(size, 1)
        genomes = space.low + np.floor(places * (space.high - space.low + 1)).astype(np.int64)
        return (yield np.minimum(genomes, space.high))


@attrs.frozen(kw_only=True)
class Hypercube(Init):
    """One valid design per hypercube, all hypercubes of a try in one batch. Larger spaces get more hypercubes and
    tries.

    The space of the high-sensitivity genes is cut into hypercubes; each gets a few random tries until a design is
    valid. Low-sensitivity genes come from the valid designs of the calibration."""

    type_name: ClassVar[str] = "hypercube"

    cubes: int = attrs.field(default=100, validator=attrs.validators.ge(1))
    """Hypercubes for a space of the paper's size (10^41); the number grows with the logarithm of the size."""
    tries: int = attrs.field(default=20, validator=attrs.validators.ge(1))
    """Largest number of random designs per hypercube; grows likewise."""
    fresh: float = attrs.field(default=0.0, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Share of the tries with random low-sensitivity genes instead of the genes of a valid design."""

    def fill(self, size: int, context: Context) -> Proposals:
        space, rng = context.space, context.rng
        axes = high_sensitivity(context)
        pool: Scored = context.notes.get("pool", Scored(np.zeros((0, len(space)), np.int64), np.zeros(0)))
        growth = max(space.log10_size / PAPER_LOG10_SIZE, 1.0)
        count = min(round(self.cubes * growth), max(round(size * growth), 1))
        low, high = cubes(space, axes, count, rng)
        found: list[Scored] = []
        failed: list[Scored] = []
        for _ in range(round(self.tries * growth)):
            genomes = rng.integers(low, high, endpoint=True)
            if len(pool) and axes.any():
                rows = pool.genomes[rng.integers(len(pool), size=len(low))]
                kept = rng.random((len(low), 1)) >= self.fresh
                genomes = np.where(axes | ~kept, genomes, rows)
            scored = yield genomes
            good = np.isfinite(scored.scores)
            found.append(scored.take(good))
            failed = [scored.take(~good)]
            low, high = low[: len(scored)][~good], high[: len(scored)][~good]
            if not len(low):
                break
        population = unique(Scored.join([*found, *failed]))
        missing = size - int(np.isfinite(population.scores).sum())
        if missing > 0 and len(pool):  # hypercubes without a valid design: fill up with what calibration saw
            extra = pool.take(rng.permutation(len(pool))[:missing])
            population = unique(Scored.join([valid(population), extra, population]))
        return population.take(np.argsort(~np.isfinite(population.scores), kind="stable")[: max(size, count)])


def cubes(space: Space, axes: PerGene, count: int, rng: np.random.Generator) -> tuple[Genomes, Genomes]:
    """`count` hypercubes as inclusive bounds (count, G) twice. Genes outside `axes` (G,) bool keep their full range.

    Axes are cut into equal parts, the longest parts first, until there are `count` hypercubes or every part is a single
    value. Fewer hypercubes than `count` are repeated; from more, distinct hypercubes are chosen at random."""
    ranges = space.high - space.low + 1
    parts = np.ones(len(space), dtype=np.int64)
    while parts.prod() < count:
        lengths = np.where(axes, ranges / parts, 0.0)
        lengths[parts >= ranges] = 0.0
        axis = int(lengths.argmax())
        if lengths[axis] <= 0.0:
            break
        parts[axis] += 1
    total = int(parts.prod())
    chosen = np.concatenate([rng.permutation(total) for _ in range(-(-count // total))])[:count]
    index = np.stack(np.unravel_index(chosen, tuple(parts.tolist())), axis=1) if len(parts) else chosen[:, None][:, :0]
    length, longer = np.divmod(ranges, parts)  # the first `longer` parts of an axis have one value more
    low = space.low + index * length + np.minimum(index, longer)
    return low, low + length + (index < longer) - 1
