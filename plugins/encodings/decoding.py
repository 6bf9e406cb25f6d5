"""Genes choosing the level from which inwards a tensor is uncompressed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array, Genes, Segment
from sparsemap.problem.designs import Designs
from sparsemap.problem.layouts import unplaced

from .choices import compressed_tensors


class Decoding(Segment):
    """A gene for each tensor decodable at some level (`decodes` of the hardware). 0: compressed everywhere. Otherwise
    the first, second .. of these levels, innermost first, and all levels inside hold the tensor uncompressed. Levels at
    the tensor's home and further out are omitted from the end of the list.

    Provides `decoded` (T, B) int8."""

    type_name: ClassVar[str] = "decoding"
    provides: ClassVar[tuple[str, ...]] = ("decoded",)
    canonical_needs: ClassVar[tuple[str, ...]] = ("formats",)

    def levels(self, problem: Problem) -> dict[int, Array]:
        """By tensor, the values of column `decoded` by gene; the tensors are independent of residence."""
        none, found, anywhere = len(problem.levels), dict[int, Array](), unplaced(problem)
        for t in range(len(problem.tensors)):
            able, here = (
                [s for s in reversed(range(none)) if one.decodes[s, t] and one.stores(t, s)]
                for one in (anywhere, problem)
            )
            if able:
                found[t] = np.array([none, *here], dtype=np.int8)
        return found

    def genes(self, problem: Problem) -> Genes:
        levels = self.levels(problem)
        names = tuple(f"decoded.{problem.tensors[t].name}" for t in levels)
        high = np.array([len(values) - 1 for values in levels.values()], dtype=np.int64)
        return Genes(names, np.zeros(len(names), dtype=np.int64), high, ordered=False)

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        found = np.full((len(problem.tensors), genes.shape[1]), len(problem.levels), dtype=np.int8)
        for row, (t, values) in zip(genes, self.levels(problem).items(), strict=True):
            found[t] = values[row]
        return {"decoded": found}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        levels, given = self.levels(problem), designs.columns["decoded"]
        found = np.zeros((len(levels), len(designs)), dtype=np.int64)
        for t, column in enumerate(given):
            values = levels.get(t, np.array([len(problem.levels)]))
            match = values[:, None] == column
            if not match.any(axis=0).all():
                row = int(np.argmin(match.any(axis=0)))
                name = problem.tensors[t].name
                raise DesignError(f"design {row}: no level decodes '{name}' as column 'decoded' says")
            if t in levels:
                found[list(levels).index(t)] = match.argmax(axis=0)
        return found

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        """Match levels by name and tensors by role."""
        from sparsemap.problem.similarity import pairs

        if "decoded" not in designs.columns:
            return None
        levels = self.levels(target)
        names = [level.name for level in target.levels]
        there = [names.index(level.name) if level.name in names else -1 for level in source.levels] + [-1]
        found = np.zeros((len(levels), len(designs)), dtype=np.int64)
        for given, own in pairs(source.loops, target.loops):
            if own in levels:
                match = levels[own][:, None] == np.array(there)[designs.columns["decoded"][given]]
                found[list(levels).index(own)] = match.argmax(axis=0)
        return found

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Random genes; half of all genes leave a tensor compressed."""
        genes = super().guess(count, problem, rng)
        return np.where(rng.random(genes.shape) < 0.5, 0, genes)

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Set the genes of tensors without metadata to 0."""
        packed = compressed_tensors(problem, columns)
        return genes if packed is None else np.where(packed[list(self.levels(problem))], genes, 0)
