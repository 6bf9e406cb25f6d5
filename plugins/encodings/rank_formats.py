"""Compression formats as one gene per tensor and rank slot (Section IV-F, sub-segments P, Q and Z)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.backend import backend_of
from sparsemap.pieces.contracts import Array, Piece
from sparsemap.problem.designs import slots_used

from .choices import Choices, build_candidates


@attrs.frozen(kw_only=True)
class RankFormats(Choices):
    """`slots` genes per tensor, operands first: the candidate format of each rank slot, outer to inner.

    Slots align with the innermost ranks: a tensor with three ranks uses its last three genes. Which loops form ranks
    follows from the mapping, so the cost model assigns them. Provides `formats` (T, R, B) int8.
    """

    type_name: ClassVar[str] = "rank-formats"
    provides: ClassVar[tuple[str, ...]] = ("formats",)
    chosen: ClassVar[str] = "format"
    canonical_needs: ClassVar[tuple[str, ...]] = ("bounds",)

    slots: int = attrs.field(default=5, validator=[attrs.validators.ge(1), attrs.validators.le(64)])
    """Rank slots R of every tensor."""
    beyond: str = ""
    """The format of ranks further out than the slots; absent: the first candidate."""

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        found = super().choices(problem)
        if not self.beyond:
            return found
        path = f"{self.name or self.type_name}.beyond"
        return {**found, "beyond-format": build_candidates(problem, "format", (self.beyond,), path)}

    def gene_names(self, problem: Problem) -> tuple[str, ...]:
        return tuple(f"{tensor.name}.{slot + 1}" for tensor in problem.tensors for slot in range(self.slots))

    def explain(self, problem: Problem) -> str:
        return f"{self.slots} slots each for {', '.join(tensor.name for tensor in problem.tensors)}"

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        xp = backend_of(genes)
        return {"formats": xp.astype(genes, xp.int8).reshape(len(problem.tensors), self.slots, genes.shape[1])}

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """One tensor changes: one slot, one format from some slot inwards, one format above it, or another tensor's."""
        flags = np.array([f.compressed for f in self.choices(problem)["format"]], dtype=bool)
        tensors, batch = len(problem.tensors), genes.shape[1]
        slots = genes.reshape(tensors, self.slots, batch)
        rows = np.arange(batch)
        kind = rng.random(batch)
        chosen = rng.integers(0, tensors, size=batch)
        mine = slots[chosen, :, rows].T  # (slots, B)
        place, position = np.arange(self.slots)[:, None], rng.integers(0, self.slots, size=batch)
        value = rng.integers(0, len(flags), size=batch)
        here, inside = place == position, place >= position
        fill = np.where(flags[value], inside, ~inside | (position == 0))
        other = slots[(chosen + rng.integers(1, max(2, tensors), size=batch)) % tensors, :, rows].T
        mine = np.where(kind < 0.4, np.where(here, value, mine), np.where(fill, value, mine))
        mine = np.where(kind > 0.9, other, mine)
        changed = slots.copy()
        changed[chosen, :, rows] = mine.T
        return changed.reshape(genes.shape)

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Every tensor has one format on its innermost ranks, mostly on the last one only, and one on those above."""
        flags = np.array([f.compressed for f in self.choices(problem)["format"]], dtype=bool)
        shape = (len(problem.tensors), 1, count)
        inner = rng.integers(0, len(flags), size=shape)
        plain = np.flatnonzero(~flags)
        above = plain[rng.integers(0, len(plain), size=shape)] if plain.size else inner
        first = np.where(rng.random(shape) < 0.5, self.slots - 1, rng.integers(0, self.slots, size=shape))
        slots = np.where(np.arange(self.slots)[:, None] >= first, inner, above)
        return slots.reshape(-1, count)

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """An uncompressed format below a compressed one is invalid unless it says otherwise: slots above become its like.

        The innermost slot stays, so that a tensor remains compressed or not.
        """
        formats = self.choices(problem)["format"]
        compressed = np.array([f.compressed for f in formats], dtype=bool)
        strict = np.array([not f.compressed and not f.below_compressed for f in formats], dtype=bool)
        slots = genes.reshape(len(problem.tensors), self.slots, -1).copy()
        inner = slots[:, -1].copy()  # the nearest strict format inside, or any other if there is none
        for slot in range(self.slots - 2, -1, -1):
            slots[:, slot] = np.where(compressed[slots[:, slot]] & strict[inner], inner, slots[:, slot])
            inner = np.where(strict[inner] & ~strict[slots[:, slot]], inner, slots[:, slot])
        return slots.reshape(genes.shape)

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Slots further out than a tensor has ranks, that is loops with a bound above one that move it, are zero."""
        busy = (columns["bounds"] > 1.0).sum(axis=0)  # (D, B)
        slots = genes.reshape(len(problem.tensors), self.slots, -1).copy()
        for tensor, mine in zip(problem.tensors, slots, strict=True):
            moving = [i for i, dim in enumerate(problem.dims) if dim in tensor.dims]
            mine *= slots_used(self.slots, busy[moving].sum(axis=0))
        return slots.reshape(genes.shape)
