"""Layout of a problem for the model: plain tuples and small arrays, computed once, before any design."""

from __future__ import annotations

import math
from functools import cached_property

import attrs
import numpy as np

from sparsemap import Occupancy
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array, PerTensor
from sparsemap.pieces.contracts.workload import POSITIONS
from sparsemap.pieces.occupancies import checked
from sparsemap.problem.problem import Problem


@attrs.define(eq=False, slots=False)
class Layout:
    """Axes: dimensions D, tensors T, storage levels S, mapping groups L as in `Problem.mapping_levels`.

    Level 0 is the outermost storage level."""

    problem: Problem
    remainders: bool = False
    """Whether loops end with the data (docs/model.md, `remainders`)."""
    words_alone: bool = False
    """Whether padding of operands and holes between windows do not move (docs/model.md, `holes`)."""

    def __attrs_post_init__(self) -> None:
        problem = self.problem
        self.dims = problem.dims
        self.sizes = np.array([problem.sizes[d] for d in self.dims], dtype=np.float64)
        self.tensors = problem.tensors
        self.D, self.T, self.S = len(self.dims), len(self.tensors), len(problem.levels)
        index = {dim: i for i, dim in enumerate(self.dims)}
        self.ranks: list[list[list[tuple[int, int]]]] = [
            [[(index[dim], c) for dim, c in rank] for rank in tensor.ranks] for tensor in self.tensors
        ]
        """Per tensor, per rank: (dimension, coefficient) terms."""
        self.relevant = np.array([[dim in tensor.dims for dim in self.dims] for tensor in self.tensors], dtype=bool)
        self.windowed = [any(len(rank) > 1 for rank in ranks) for ranks in self.ranks]
        """Tensors with sliding windows: two dimensions move along a rank."""
        self.holes = [any(c > 1 for rank in ranks for _, c in rank) for ranks in self.ranks]
        given = problem.loops.sizes if self.remainders else problem.sizes
        self.ends = np.array([given[d] for d in self.dims], dtype=np.float64)
        """(D,) positions with data; loop bounds multiply to `sizes`."""
        self.ragged = bool((self.ends < self.sizes).any())
        self.output = next(i for i, tensor in enumerate(self.tensors) if tensor.output)
        self.operands = [i for i in range(self.T) if i != self.output]
        self.temporal = [0] * self.S
        self.spatial: list[int | None] = [None] * self.S
        for group, mapping_level in enumerate(problem.mapping_levels):
            if mapping_level.spatial:
                self.spatial[mapping_level.storage] = group
            else:
                self.temporal[mapping_level.storage] = group
        self.inwards = [
            group for s in reversed(range(self.S)) for group in (self.spatial[s], self.temporal[s]) if group is not None
        ]
        """Mapping groups, the innermost first."""
        self.block = [m.storage for m in problem.mapping_levels]
        """Storage level by mapping group."""
        self._check()

    def _check(self) -> None:
        for tensor, ranks in zip(self.tensors, self.ranks, strict=True):
            dims = [dim for rank in ranks for dim, _ in rank]
            if any(len(rank) > 2 for rank in ranks) or len(set(dims)) < len(dims):
                raise SpecError.at(
                    self.problem.workload.name or "workload",
                    "einsum",
                    f"tensor '{tensor.name}': the analytic model takes ranks of at most two dimensions, "
                    "each dimension once per tensor",
                )

    @cached_property
    def stored(self) -> Array:
        """(T, S) bool: whether the level stores the tensor; the tensor's outermost level stores the whole of it."""
        kept = np.array([[self.problem.stores(t, s) for s in range(self.S)] for t in range(self.T)], dtype=bool)
        for t in range(self.T):
            if not kept[t, self.problem.homes[t]]:
                raise SpecError.at(
                    self.problem.files.get("hardware", "hardware"),
                    "levels[0].bypass",
                    f"the outermost level must store every tensor; '{self.tensors[t].name}' is bypassed",
                )
        return kept

    @cached_property
    def streamed(self) -> Array:
        """(T, S) bool: words of the tensor are written and read at the level while passing inwards."""
        return np.array([[self.problem.streams(t, s) for s in range(self.S)] for t in range(self.T)], dtype=bool)

    @cached_property
    def linked(self) -> list[bool]:
        """Per tensor: whether compute units pass words on to their neighbours (4.6)."""
        return [self.problem.links(t) for t in range(self.T)]

    @cached_property
    def handled(self) -> Array:
        """(T, S) bool: the level stores the tensor, or its words stream through."""
        return self.stored | self.streamed

    def spans(self, t: int, s: int) -> int:
        """Level defining the tile held by level s: s, or 0 for the whole tensor at the home of a resident tensor."""
        return 0 if s == self.problem.homes[t] else s

    def parent(self, t: int, s: int) -> int | None:
        """Next outer level storing the tensor, or None."""
        return next((i for i in range(s - 1, -1, -1) if self.stored[t, i]), None)

    def child(self, t: int, s: int) -> int | None:
        """Next inner level storing the tensor; None: the compute unit."""
        return next((i for i in range(s + 1, self.S) if self.stored[t, i]), None)

    def holder(self, t: int, s: int) -> int:
        """Level delivering the tensor at level s: s itself or, for a bypassed tensor, the next outer level storing it."""
        return next(i for i in range(s, -1, -1) if self.stored[t, i])

    def innermost(self, t: int) -> int:
        return max(s for s in range(self.S) if self.stored[t, s])

    @cached_property
    def next_stored(self) -> Array:
        """(T, S + 1) by level: this level or the next inner level storing the tensor; S: none."""
        found = np.full((self.T, self.S + 1), self.S, dtype=np.int64)
        for s in range(self.S - 1, -1, -1):
            found[:, s] = np.where(self.stored[:, s], s, found[:, s + 1])
        return found

    @cached_property
    def visited(self) -> Array:
        """(2, T) share of a tensor's box visited by loops ending with the data: over all ranks, and over `cut` ranks."""
        return np.array([np.where(cut, self.ends / self.sizes, 1.0).prod(axis=1) for cut in (self.relevant, self.cut)])

    def turns(self, extents: Array) -> Array:
        """(D, n) turns, beginning before the end of the data, of the loops around tiles with these extents."""
        return np.ceil(self.ends[:, None] / extents)

    @cached_property
    def gaps(self) -> list[list[Array | None]]:
        """Per tensor and rank, (positions,) bool: whether a position holds a word (`Tensor.words`); None: all do, as in
        an output."""
        found = []
        for t, tensor in enumerate(self.tensors):
            ranks = () if tensor.output else tensor.words(self.problem.sizes)
            found.append([None if there.all() else there for there in ranks])
            for r in range(len(ranks)) if self.ragged and self.words_alone else ():
                if self._complicated(t, r):
                    ends = dict(zip(self.dims, map(int, self.ends), strict=True))
                    there = np.zeros(tensor.shape(self.problem.sizes)[r], dtype=bool)
                    there[: tensor.shape(ends)[r]] = tensor.words(ends)[r]
                    found[t][r] = there
        return found

    def _complicated(self, t: int, r: int) -> bool:
        """Whether words of a padded rank are counted tile by tile, because of windows, strides or padding."""
        rank = self.ranks[t][r]
        if not any(self.ends[d] < self.sizes[d] for d, _ in rank):
            return False
        if self.tensors[t].shape(self.problem.sizes)[r] > POSITIONS:
            return False
        return len(rank) > 1 or rank[0][1] > 1 or not self.tensors[t].words(self.problem.sizes)[r].all()

    @cached_property
    def cut(self) -> Array:
        """(T, D) bool: words along the dimension scale with the dimension's share of the padded size."""
        found = self.relevant.copy()
        for t in self.operands if self.ragged and self.words_alone else ():
            for r, rank in enumerate(self.ranks[t]):
                if self._complicated(t, r):
                    found[t, [d for d, _ in rank]] = False
        return found

    @cached_property
    def word_share(self) -> list[float]:
        """Per tensor, the share of words in its box, without padded dimensions."""
        ends = dict(zip(self.dims, map(int, self.ends), strict=True))
        ranks = [() if tensor.output else tensor.words(ends) for tensor in self.tensors]
        return [math.prod(float(r.mean()) for r in of_one if not r.all()) for of_one in ranks]

    @cached_property
    def occupancies(self) -> list[Occupancy]:
        """Per tensor, the occupancy of its tiles."""
        return [checked(t.density, t.shape(self.problem.sizes)) for t in self.tensors]

    @cached_property
    def least_densities(self) -> list[float]:
        """Per tensor, the least mean density of its tiles. Tiles of a window need not divide a rank: of a tensor whose
        tiles count by shape the last tile is cut off, and the mean over all tiles is below the density."""
        found = [min(1.0, occupancy.density) for occupancy in self.occupancies]
        for t, ranks in enumerate(self.ranks):
            shape = self.tensors[t].shape(self.problem.sizes) if getattr(self.occupancies[t], "by_shape", False) else ()
            for rank, length in zip(ranks, shape, strict=False):
                widths = np.arange(1, length + 1) if len(rank) > 1 else np.ones(1)
                found[t] *= float((length / (np.ceil(length / widths) * widths)).min())
        return found

    @cached_property
    def alike(self) -> dict[int, tuple[int, ...]]:
        """Words per rank of a block with equally many nonzeros in all tiles, for operands with this property
        (`OccupancyMethods`)."""
        found = {t: getattr(self.occupancies[t], "alike", None) for t in self.operands}
        return {t: words for t, words in found.items() if words is not None}


def by_level(figure: Array) -> Array:
    """(S, 1) from a chip's (S,), for arithmetic with arrays (.., S, B); (S, B) is returned unchanged."""
    return figure[:, None] if figure.ndim == 1 else figure


def limited(figure: Array) -> bool:
    """Whether a chip's figure is finite for any design."""
    return bool(figure != np.inf) if figure.ndim == 0 else bool((figure != np.inf).any())


def decoded_of(layout: Layout, given: Array | None) -> PerTensor | None:
    """Column `decoded` (T, B), moved inwards to levels storing the tensors; None if no tensor is decoded."""
    if given is None or not (given < layout.S).any():
        return None
    return np.take_along_axis(layout.next_stored, given.astype(np.int64), axis=1)
