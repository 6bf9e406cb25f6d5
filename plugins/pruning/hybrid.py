"""N:M sparsity inside of blocks, with equally many blocks in every row of blocks (CRISP, Algorithm 1).

Every row of blocks sorts its blocks by score. The r-th smallest blocks of all rows are a *rank column*: a block of each
row, at any place. Rank columns of all layers compete; pruning a rank column takes a block of every row."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from .blocks import BlockGrid


@attrs.frozen
class NmPattern:
    """At most `n` of `m` consecutive words of a row are kept; 1:1 keeps all."""

    n: int
    m: int

    def __attrs_post_init__(self) -> None:
        if not 0 < self.n <= self.m:
            raise SparseMapError(f"pattern '{self}': expected N:M with N of at most M, such as 2:4")

    @classmethod
    def parse(cls, text: str) -> NmPattern:
        """Parse `2:4`; SparseMapError for any other form."""
        found = re.fullmatch(r"(\d{1,3}):(\d{1,3})", text, re.ASCII)
        if not found:
            raise SparseMapError(f"pattern {text!r}: expected N:M with N of at most M, such as 2:4")
        return cls(int(found[1]), int(found[2]))

    @property
    def density(self) -> float:
        return self.n / self.m

    def __str__(self) -> str:
        return f"{self.n}:{self.m}"


DENSE = NmPattern(1, 1)


def nm_mask(scores: Array, pattern: NmPattern) -> Array:
    """Mask (S, K) bool of the N words with the largest scores in every group of M in a row; ties go to the lower
    column.

    A last group of g < M words keeps min(N, g)."""
    rows, columns = scores.shape
    padded = np.full((rows, -(-columns // pattern.m) * pattern.m), -np.inf)
    padded[:, :columns] = scores
    groups = padded.reshape(rows, -1, pattern.m)
    best = np.argsort(-groups, axis=2, kind="stable")[:, :, : pattern.n]
    mask = np.zeros(groups.shape, bool)
    np.put_along_axis(mask, best, True, axis=2)
    return mask.reshape(rows, -1)[:, :columns]


def rank_columns(scores: Array, kept: Array) -> tuple[Array, Array]:
    """Columns of blocks in ascending order of score, a permutation per row (R, C), and the score of every rank (C,).

    Pruned blocks come first, with a score of 0; the left block wins a tie."""
    masked = np.where(kept, scores, 0.0)
    order = np.lexsort((masked, kept), axis=1)
    return order, np.take_along_axis(masked, order, axis=1).sum(axis=0)


@attrs.frozen
class Masks:
    """Masks of a layer."""

    grid: BlockGrid
    blocks: Array
    """(R, C) bool: the kept blocks."""
    words: Array
    """(S, K) bool: words of the forward pass."""

    @classmethod
    def of_blocks(cls, grid: BlockGrid, blocks: Array) -> Masks:
        """Masks without a pattern inside blocks."""
        return cls(grid, blocks, grid.expand(blocks))

    @property
    def live(self) -> Array:
        """(S, K) bool: words with gradients, all words of the kept blocks (straight-through estimator)."""
        return self.grid.expand(self.blocks)

    @property
    def density(self) -> float:
        """The share of kept words."""
        return float(self.words.mean())


@attrs.define
class HybridPruner:
    """Prunes several layers together, step by step; pruned blocks never return.

    Layers with a size that is no multiple of the block have the N:M pattern only."""

    grids: Mapping[str, BlockGrid]
    pattern: NmPattern
    kept: dict[str, Array] = attrs.field(init=False)
    """(R, C) bool per layer."""

    def __attrs_post_init__(self) -> None:
        self.kept = {name: np.ones(grid.counts, bool) for name, grid in self.grids.items()}

    @property
    def prunable(self) -> list[str]:
        """Layers with whole blocks, by name."""
        return sorted(name for name, grid in self.grids.items() if grid.whole)

    def _size(self, name: str) -> float:
        """Words of a rank column of a layer."""
        grid = self.grids[name]
        return float(grid.size[0] * grid.columns)

    def _total(self) -> float:
        return float(sum(math.prod(grid.size) for grid in self.grids.values()))

    @property
    def highest(self) -> float:
        """The largest sparsity with a block in every row of blocks."""
        most = math.fsum((self.grids[name].counts[1] - 1) * self._size(name) for name in self.prunable)
        return 1 - (1 - most / self._total()) * self.pattern.density

    @property
    def lowest(self) -> float:
        """Sparsity of the N:M pattern alone."""
        return 1 - self.pattern.density

    def check(self, sparsity: float) -> None:
        """Raise SparseMapError if no step can reach the sparsity."""
        if sparsity < self.lowest - 1e-12:
            text = f"is below the {self.lowest:g} that the pattern {self.pattern} alone prunes"
            raise SparseMapError(f"sparsity {sparsity:g} {text}")
        if sparsity > self.highest + 1e-12:
            text = f"cannot be reached: at most {self.highest:.4g}, where every row of blocks keeps one"
            raise SparseMapError(f"sparsity {sparsity:g} {text}; use smaller blocks or a sparser pattern")

    def targets(self, sparsity: float, steps: int) -> list[float]:
        """The sparsity of each step, in equal parts; SparseMapError for an unreachable sparsity."""
        self.check(sparsity)
        return [self.lowest + step * (sparsity - self.lowest) / steps for step in range(1, steps + 1)]

    def step(self, scores: Mapping[str, Array], sparsity: float) -> dict[str, Masks]:
        """Masks of every layer with at least a share `sparsity` of zeros over all layers together.

        `scores`: T_w of the dense weights, (S, K) >= 0, for a new N:M choice; block scores are sums over the chosen
        words of kept blocks."""
        self.check(sparsity)
        words = {name: nm_mask(scores[name], self.pattern) for name in self.grids}
        share = min(1 - (1 - sparsity) / self.pattern.density, 1.0)
        missing = share * self._total() * (1 - 1e-12)  # a rounding error prunes no column
        orders, candidates, pruned = {}, [], {}
        for name in self.prunable:
            blocks = self.grids[name].sums(np.where(words[name], scores[name], 0.0))
            orders[name], ranked = rank_columns(blocks, self.kept[name])
            pruned[name] = int((~self.kept[name][0]).sum())
            missing -= pruned[name] * self._size(name)
            candidates += [(float(score), name) for score in ranked[pruned[name] : -1]]  # the last is never pruned
        for _, name in sorted(candidates):  # the cheapest of all layers; of a layer in order, as scores ascend
            if missing > 0:
                pruned[name] += 1
                missing -= self._size(name)
        for name, count in pruned.items():
            np.put_along_axis(self.kept[name], orders[name][:, :count], False, axis=1)
        masks = {name: Masks.of_blocks(grid, self.kept[name].copy()) for name, grid in self.grids.items()}
        return {name: attrs.evolve(mask, words=mask.words & words[name]) for name, mask in masks.items()}


def sparsity_of(masks: Mapping[str, Masks]) -> float:
    """Share of pruned words of all layers together."""
    words = sum(mask.words.size for mask in masks.values())
    return 1 - sum(int(mask.words.sum()) for mask in masks.values()) / words
