"""Genes choosing the levels to keep a tensor, and the levels to bypass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import SpecError, unknown
from sparsemap.pieces.contracts import Array, Genes, Segment
from sparsemap.problem.designs import PASSES, Designs
from sparsemap.problem.layouts import unplaced

Cell = tuple[int, int]


@attrs.frozen(kw_only=True)
class Passing(Segment):
    """A gene for each tensor and level below the outermost allowed by the hardware to keep the tensor. 0: the level
    keeps the tensor; 1: the tensor bypasses the level, and the next level keeping it takes over. At the tensor's home
    and further out, the gene is 0.

    Provides `passes` (T, S, B) int8."""

    type_name: ClassVar[str] = "passing"
    provides: ClassVar[tuple[str, ...]] = (PASSES,)

    levels: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """By level, the tensors allowed to bypass the level; absent: every tensor may bypass every level."""

    def cells(self, problem: Problem) -> list[Cell]:
        """Tensor and level by gene, independent of residence."""
        problem = unplaced(problem)
        names = [level.name for level in problem.levels]
        file = problem.files.get("space", "space")
        if strange := [name for name in self.levels if name not in names]:
            raise SpecError.at(file, f"{self.name}.levels.{strange[0]}", unknown("level", strange[0], names))
        texts = [(text, name) for name, some in self.levels.items() for text in some]
        named = {(problem.tensor(x, file, f"{self.name}.levels.{name}"), names.index(name)) for x, name in texts}
        every = [(t, s) for s in range(1, len(names)) for t in range(len(problem.tensors)) if problem.stores(t, s)]
        return [cell for cell in every if cell in named or not self.levels]

    def genes(self, problem: Problem) -> Genes:
        cells = self.cells(problem)
        names = tuple(f"passes.{problem.levels[s].name}.{problem.tensors[t].name}" for t, s in cells)
        high = np.array([problem.homes[t] < s for t, s in cells], np.int64)
        return Genes(names, np.zeros(len(cells), np.int64), high)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        found = np.zeros((len(problem.tensors), len(problem.levels), genes.shape[1]), np.int8)
        for (t, s), row in zip(self.cells(problem), genes, strict=True):
            found[t, s] = row
        return {PASSES: found}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        given = designs.columns[PASSES]
        return np.array([given[t, s] for t, s in self.cells(problem)], np.int64).reshape(-1, len(designs))

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Match levels by name and tensors by role; other designs have the levels kept by their hardware."""
        from sparsemap.problem.similarity import pairs

        own, there = {b: a for a, b in pairs(source.loops, target.loops)}, [level.name for level in source.levels]
        found = np.zeros((len(cells := self.cells(target)), len(designs)), np.int64)
        for i, (t, s) in enumerate(cells):
            name = target.levels[s].name
            if t in own and name in there:
                at = own[t], there.index(name)
                kept = source.stores(*at) or at[1] < source.homes[at[0]]
                found[i] = designs.columns[PASSES][at] if PASSES in designs.columns and kept else not kept
                found[i] *= target.homes[t] < s
        return found

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Random genes keeping most tensors where the hardware keeps them."""
        genes = super().guess(count, problem, rng)
        return np.where(rng.random(genes.shape) < 0.75, 0, genes)
