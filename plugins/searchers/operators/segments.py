"""Operators of the default search: better designs mate more often, by whole segments or single genes, and mutate by the
moves of segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Context, Crossover, Genomes, Mutation, Scored, Selection

from .. import mating


class SegmentMoves(Mutation):
    """The moves of a space's segments: two factors or whole loops swap levels, a tensor changes its formats.

    Every segment is a part with a separate share; used alone, the mutation varies each genome in a random segment."""

    type_name: ClassVar[str] = "segment-moves"

    def parts(self, space: Space) -> Sequence[tuple[Mutation, float]]:
        """Moves by segment. A segment with more genes has a larger initial share; segments without any choice are
        omitted."""
        return [
            (SegmentMove(name=f"{self.type_name}:{name}", segment=name), math.sqrt(part.stop - part.start))
            for name, part in space.slices.items()
            if (space.high[part] > space.low[part]).any()
        ]

    def mutate(self, genomes: Genomes, context: Context) -> Genomes:
        changed, parts = genomes.copy(), self.parts(context.space)
        which = context.rng.integers(0, max(len(parts), 1), size=len(genomes))
        for index, (part, _) in enumerate(parts):
            changed[which == index] = part.mutate(changed[which == index], context)
        return changed


@attrs.frozen(kw_only=True)
class SegmentMove(Mutation):
    """The moves of one segment."""

    type_name: ClassVar[str] = "segment-move"

    segment: str

    def mutate(self, genomes: Genomes, context: Context) -> Genomes:
        return context.space.vary(genomes, self.segment, context.rng)


class SegmentCrossover(Crossover):
    """Half of the children take whole segments from either parent, the others single genes."""

    type_name: ClassVar[str] = "segment-crossover"

    def cross(self, pairs: Genomes, context: Context) -> Genomes:
        ends = np.array([part.stop for part in context.space.slices.values()])
        return mating.cross(pairs, ends, context.rng)


@attrs.frozen(kw_only=True)
class GreedyRanking(Selection):
    """Better designs mate more often, invalid designs never; at most two designs of equal score survive.

    Designs with equal scores are nearly always the same design with different genes."""

    type_name: ClassVar[str] = "greedy-ranking"

    greed: float = attrs.field(default=3.0, validator=attrs.validators.gt(0.0))
    """Selection pressure: a parent's rank is drawn as u ** greed, u uniform in 0..1."""

    def pick(self, parents: Scored, count: int, context: Context) -> Genomes:
        valid = parents.genomes[: max(1, np.count_nonzero(np.isfinite(parents.scores)))]
        return mating.pick(valid, count, self.greed, context.rng)

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        pool = Scored.join([parents, children])
        order = np.argsort(pool.scores, kind="stable")
        scores = pool.scores[order]
        starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
        twins = np.arange(len(scores)) - np.repeat(starts, np.diff(np.append(starts, len(scores))))
        return pool.take(np.concatenate([order[twins < 2], order[twins >= 2]])[:size])
