"""The segment `sub-volume`: the division of a convolution, as genes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs
import numpy as np

from sparsemap.errors import DesignError, SpecError
from sparsemap.pieces.contracts import Genes, Segment
from sparsemap.pieces.contracts.base import Array, GeneColumns
from sparsemap.problem.designs import Design, Designs
from sparsemap.problem.problem import Problem

from .cost_model import ConvProblem
from .durations import tile_rows
from .splits import Splits

NAMES = ("co", "ci", "rows", "tiles", "passes")


@attrs.frozen(kw_only=True)
class SubVolume(Segment):
    """Channels of a chunk of weights, output rows of a step, and tiles with passes: the work of a core at a time.

    Four genes: output channels and input channels by their place among the choices, rows, and a place in the list of
    tiles and passes with room in memory tiles, fewest first."""

    type_name: ClassVar[str] = "sub-volume"
    provides: ClassVar[tuple[str, ...]] = ("subvolume",)
    fits_all: ClassVar[bool] = False

    design: Mapping[str, int] = attrs.field(factory=dict)
    """A sub-volume (co, ci, rows, tiles, passes) instead of genes."""

    def __attrs_post_init__(self) -> None:
        wrong = [name for name in self.design if name not in NAMES]
        missing = [name for name in NAMES if name not in self.design]
        if wrong or (self.design and missing):
            what = f"unknown: {', '.join(wrong)}" if wrong else f"missing: {', '.join(missing)}"
            raise SpecError.at("", "design", f"expected whole numbers for {', '.join(NAMES)}; {what}")
        if any(value < 1 for value in self.design.values()):
            raise SpecError.at("", "design", "expected whole numbers from 1 on")

    def genes(self, problem: Problem) -> Genes:
        if self.design:
            return Genes((), np.zeros(0, np.int64), np.zeros(0, np.int64))
        known = ConvProblem.of(problem)
        if not known.tilings or not known.most_rows.any():
            text = "no sub-volume of this layer fits in the buffers of its cores and memory tiles"
            raise SpecError.at(problem.files.get("hardware", ""), "levels", text)
        chunks, parts = known.most_rows.shape
        high = [chunks - 1, parts - 1, known.cut.layer.out_height, len(known.tilings) - 1]
        return Genes(("co", "ci", "rows", "tiles-and-passes"), np.array([0, 0, 1, 0]), np.array(high))

    def decode(self, genes: GeneColumns, problem: Problem) -> Mapping[str, Array]:
        if self.design:
            one = np.array([[self.design[name]] for name in NAMES], np.int64)
            return {"subvolume": np.repeat(one, genes.shape[1], axis=1)}
        splits = self._splits(genes, ConvProblem.of(problem))
        return {"subvolume": np.stack(attrs.astuple(splits, recurse=False))}

    def _splits(self, genes: GeneColumns, known: ConvProblem) -> Splits:
        chunks, parts = np.array(known.cut.chunk_choices), np.array(known.cut.part_choices)
        return Splits(chunks[genes[0]], parts[genes[1]], genes[2], *np.array(known.tilings).T[:, genes[3]])

    def encode(self, designs: Designs, problem: Problem) -> GeneColumns:
        known = ConvProblem.of(problem)
        co, ci, rows, *tilings = designs.columns["subvolume"].astype(np.int64).tolist()
        try:
            chunks, parts = map(known.cut.chunk_choices.index, co), map(known.cut.part_choices.index, ci)
            both = map(known.tilings.index, zip(*tilings, strict=True))
            return np.array([[*chunks], [*parts], rows, [*both]], np.int64)
        except ValueError as error:
            raise DesignError(f"a sub-volume that the layer cannot be divided into: {error}") from None

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> GeneColumns:
        """The rule's sub-volume first; then random ones with room, most of them with the most rows."""
        if self.design:
            return np.zeros((0, count), np.int64)
        known = ConvProblem.of(problem)
        pairs = np.argwhere(known.most_rows > 0)
        co, ci = pairs[rng.integers(0, len(pairs), count)].T
        most = known.most_rows[co, ci]
        rows = np.where(rng.random(count) < 0.6, most, 1 + (rng.random(count) * most).astype(np.int64))
        tilings = np.minimum(rng.geometric(0.6, count) - 1, len(known.tilings) - 1)
        genes = np.stack([co, ci, rows, tilings]).astype(np.int64)
        rule = known.rule
        pair = known.cut.chunk_choices.index(rule.co), known.cut.part_choices.index(rule.ci)
        if count and known.most_rows[pair]:
            genes[:, 0] = *pair, rule.rows, 0
        return self._fitted(genes, known)

    def repair(
        self, genes: GeneColumns, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator
    ) -> GeneColumns:
        """Reduce rows to the buffers of a core, change channels if no row fits, and add tiles or passes."""
        if self.design:
            return genes
        known = ConvProblem.of(problem)
        fixed = genes.copy()
        pairs = np.argwhere(known.most_rows > 0)
        bad = known.most_rows[fixed[0], fixed[1]] == 0
        if bad.any():  # the nearest pair of channels that fits
            away = np.abs(pairs[None] - fixed[:2, bad].T[:, None]).sum(axis=2)
            fixed[:2, bad] = pairs[away.argmin(axis=1)].T
        fixed[2] = np.minimum(fixed[2], known.most_rows[fixed[0], fixed[1]])
        return self._fitted(fixed, known)

    def _fitted(self, genes: GeneColumns, known: ConvProblem) -> GeneColumns:
        """Tiles and passes further down the list until memory tiles have room; from the start of the list again if none
        has."""
        fixed, last = genes.copy(), len(known.tilings) - 1
        for _ in range(2):
            over = known.overflows(self._splits(fixed, known))
            while (over & (fixed[3] < last)).any():
                fixed[3, over & (fixed[3] < last)] += 1
                over = known.overflows(self._splits(fixed, known))
            if not over.any():
                break
            fixed[3, over] = 0
        return fixed

    def settled(self, design: Design) -> SubVolume:
        return attrs.evolve(self, design=attrs.asdict(splits_of(design)))

    def lines(self, design: Design) -> Sequence[str]:
        cut, splits = ConvProblem.of(design.problem).cut, splits_of(design)
        co, ci, rows, tiles, passes = attrs.astuple(splits)
        chunks, steps = -(-cut.row_channels // co), -(-tile_rows(cut, splits)[0] // rows)
        return (
            f"memory tile  {tiles} tiles of rows, {passes} passes of weights",
            f"core         {cut.out_columns} columns, {cut.row_channels} output channels",
            f"weights      {chunks} chunks of {co} output channels, {cut.parts(ci)} parts of {ci} input channels",
            f"step         {rows} rows, {steps} steps per tile",
        )


def splits_of(design: Design) -> Splits:
    """The sub-volume of a design."""
    return Splits(*design.batch.columns["subvolume"][:, 0].astype(int).tolist())
