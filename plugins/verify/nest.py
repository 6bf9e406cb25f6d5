"""The loop nest of a design, unrolled: the position of every instance of every level at every step.

Storage levels are numbered from the outermost (0) inwards; level S stands for the compute units. A *step* of a level is
a combination of the temporal loops outside it, an *instance* a combination of the spatial loops outside. Both are
numbered in the order of the nest, outermost loop slowest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.workload import Occupancy
from sparsemap.problem.designs import Design, Loop


@attrs.frozen(eq=False, slots=False)
class ExecutedNest(Design):
    """Geometry of a design, independent of the data."""

    def __attrs_post_init__(self) -> None:
        if tuple(self.extents(0)) != self.sizes:
            raise ValueError("the loop bounds do not multiply to the sizes of the dimensions")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(self.problem.sizes[dim]) for dim in self.problem.dims)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Positions of every dimension: fewer than the loops cover, if loops end with the data (`remainders`)."""
        charges = {charge.type_name for charge in getattr(self.problem.cost_model, "charges", ())}
        given = self.problem.loops.sizes if "remainders" in charges else self.problem.sizes
        return tuple(int(given[dim]) for dim in self.problem.dims)

    @property
    def ragged(self) -> bool:
        return self.ends != self.sizes

    def exists(self, level: int, rows: slice = slice(None)) -> Array:
        """(steps, instances) bool: the tile of a level begins before the end of the data."""
        steps, places = self._begins(level)
        found = np.ones((len(steps[rows]), len(places)), dtype=bool)
        for axis, end in enumerate(self.ends):
            if end < self.sizes[axis]:
                found &= steps[rows, axis, None] + places[:, axis] < end
        return found

    def _begins(self, level: int) -> tuple[Array, Array]:
        if level not in self._known_begins:
            self._known_begins[level] = self.offsets(level, False), self.offsets(level, True)
        return self._known_begins[level]

    @cached_property
    def _known_begins(self) -> dict[int, tuple[Array, Array]]:
        return {}

    @cached_property
    def units_at_work(self) -> float:
        """Compute units at work per step, averaged over the steps that take place."""
        if not self.ragged:
            return float(self.instances(self.levels))
        taken = (self._begins(self.levels)[0] < np.array(self.ends)).all(axis=1)
        return math.prod(self.ends) / int(taken.sum())

    def behind(self, tensor: int) -> Array | None:
        """(ranks) bool: positions of a tensor beyond the last iteration; None: no position is."""
        if not self.ragged:
            return None
        found = np.ones(self.shape(tensor), dtype=bool)
        found[tuple(slice(0, width) for width in self.widths(tensor, np.array(self.ends)))] = False
        return found if found.any() else None

    @cached_property
    def levels(self) -> int:
        """S, the number of storage levels."""
        return len(self.problem.levels)

    def block(self, outer: int, inner: int) -> tuple[Loop, ...]:
        """The loops of the blocks from `outer` up to but without `inner`, outer to inner."""
        return tuple(loop for loop in self.loops if outer <= loop.storage < inner)

    def extents(self, level: int) -> Array:
        """(D,) positions of every dimension in the tile of a level's instance."""
        found = np.ones(len(self.sizes), dtype=np.int64)
        for loop in self.block(level, self.levels):
            found[loop.axis] *= loop.bound
        return found

    def steps(self, level: int) -> int:
        return math.prod(loop.bound for loop in self.block(0, level) if not loop.spatial)

    def instances(self, level: int) -> int:
        return math.prod(loop.bound for loop in self.block(0, level) if loop.spatial)

    def origins(self, loops: Iterable[Loop], fixed: Mapping[Loop, int] = {}) -> Array:
        """(n, D) origins of the iterations of nested loops in the operation space, the outermost loop slowest.

        A loop in `fixed` is grouped: all `fixed[loop]` iterations of a group take the origin of the first."""
        found = np.zeros((1, len(self.sizes)), dtype=np.int64)
        for loop in loops:
            moves = np.zeros((loop.bound, len(self.sizes)), dtype=np.int64)
            count = fixed.get(loop, 1)
            first = np.minimum(np.arange(loop.bound) // count * count, loop.bound - count)
            moves[:, loop.axis] = first * loop.stride
            found = (found[:, None] + moves).reshape(-1, len(self.sizes))
        return found

    def offsets(self, level: int, spatial: bool, fixed: Mapping[Loop, int] = {}) -> Array:
        """(steps or instances, D) origin of the tile of a level; see `origins`."""
        return self.origins((loop for loop in self.block(0, level) if loop.spatial == spatial), fixed)

    @cached_property
    def operands(self) -> tuple[int, ...]:
        return tuple(i for i, tensor in enumerate(self.problem.tensors) if not tensor.output)

    @cached_property
    def output(self) -> int:
        return next(i for i, tensor in enumerate(self.problem.tensors) if tensor.output)

    @cached_property
    def access(self) -> tuple[Array, ...]:
        """Per tensor, (ranks, D): change of the index in a rank per step of a dimension."""
        index = {dim: i for i, dim in enumerate(self.problem.dims)}
        found = []
        for tensor in self.problem.tensors:
            matrix = np.zeros((max(1, len(tensor.ranks)), len(index)), dtype=np.int64)
            for r, rank in enumerate(tensor.ranks):
                for dim, coefficient in rank:
                    matrix[r, index[dim]] += coefficient
            found.append(matrix)
        return tuple(found)

    def relevant(self, tensor: int, axis: int) -> bool:
        return bool(self.access[tensor][:, axis].any())

    def widths(self, tensor: int, extents: Array) -> tuple[int, ...]:
        """Words per rank of the box of a tensor that covers the extents."""
        return tuple(int(w) for w in 1 + self.access[tensor] @ (np.asarray(extents) - 1))

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self.widths(tensor, np.array(self.sizes))

    def tile(self, tensor: int, level: int) -> tuple[int, ...]:
        return self.widths(tensor, self.extents(level))

    def plain(self, tensor: int) -> bool:
        """Whether tiles partition the tensor: no sliding windows, no strides."""
        matrix = self.access[tensor]
        return bool((matrix.sum(axis=1) <= 1).all())

    def stored(self, tensor: int) -> tuple[int, ...]:
        """Levels that keep the tensor, outermost first."""
        return tuple(s for s in range(self.levels) if self.problem.stores(tensor, s))

    def spans(self, tensor: int, level: int) -> int:
        """The level at which the tile equals the tensor's part at `level`: 0, the whole tensor, where the tensor
        resides."""
        return 0 if level == self.problem.homes[tensor] else level

    @cached_property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """Per tensor, the levels that keep it, outermost first, and the compute units."""
        return tuple((*self.stored(t), self.levels) for t in range(len(self.access)))

    def child(self, tensor: int, level: int) -> int:
        """The next level inwards that keeps the tensor, or S."""
        chain = self.chains[tensor]
        return chain[chain.index(level) + 1]

    @cached_property
    def charges(self) -> frozenset[str]:
        """The charges of the problem's cost model."""
        return frozenset(charge.type_name for charge in getattr(self.problem.cost_model, "charges", ()))

    def separate(self, tensor: int, child: int) -> bool:
        """Whether each child reads or updates words of its own, also where children have tiles at the same place."""
        memory = self.problem.levels[self.stored(tensor)[-1]].memory
        return child == self.levels and "shared-words" in self.charges and memory.shared_words == "separate"

    @cached_property
    def gaps(self) -> tuple[Array | None, ...]:
        """Per tensor, (ranks) bool: positions of an operand that are padding or unused by all computes; None: no
        position is."""
        found: list[Array | None] = []
        ends = dict(zip(self.problem.dims, self.ends, strict=True))
        for t, tensor in enumerate(self.problem.tensors):
            there = np.ones((), dtype=bool)
            for rank in () if tensor.output else tensor.words(ends):
                there = there[..., None] & rank
            gaps = None if there.all() else np.broadcast_to(~there, tensor.shape(ends))
            behind = None if tensor.output else self.behind(t)
            if behind is not None:
                behind[tuple(slice(0, width) for width in tensor.shape(ends) or (1,))] = False if gaps is None else gaps
            found.append(gaps if behind is None else behind)
        return tuple(found)

    @cached_property
    def occupancies(self) -> tuple[Occupancy, ...]:
        """Per tensor, the occupancy model of the density."""
        return tuple(tensor.density.occupancy(self.shape(t)) for t, tensor in enumerate(self.problem.tensors))

    def drawn(self, tensor: int, rng: np.random.Generator) -> Array:
        """(ranks) bool: the nonzeros of one draw, all before the end of the data."""
        if not self.ragged:
            return np.asarray(self.occupancies[tensor].draw(rng), dtype=bool).reshape(self.shape(tensor))
        own, widths = self.problem.tensors[tensor], self.widths(tensor, np.array(self.ends))
        some = own.density.occupancy(own.shape(dict(zip(self.problem.dims, self.ends, strict=True)))).draw(rng)
        found = np.zeros(self.shape(tensor), dtype=bool)
        found[tuple(slice(0, width) for width in widths)] = np.asarray(some, dtype=bool).reshape(widths)
        return found


class Boxes:
    """Sums of a tensor over boxes of any size at any place."""

    def __init__(self, values: Array) -> None:
        self.values = values.astype(np.int64)
        self._maps: dict[tuple[int, ...], Array] = {}

    def sums(self, widths: tuple[int, ...]) -> Array:
        """Sum of the box at every place inside the tensor."""
        if widths not in self._maps:
            total = self.values
            for axis, width in enumerate(widths):
                running = np.insert(total.cumsum(axis=axis), 0, 0, axis=axis)
                places = np.arange(running.shape[axis] - width)
                total = running.take(places + width, axis=axis) - running.take(places, axis=axis)
            self._maps[widths] = total
        return self._maps[widths]

    def count(self, widths: tuple[int, ...], steps: Array, places: Array) -> Array:
        """(n, i) sums of the boxes with origins `steps` (n, ranks) plus `places` (i, ranks)."""
        sums = self.sums(widths)
        return sums.reshape(-1)[flat(steps, sums.shape)[:, None] + flat(places, sums.shape)]


def flat(index: Array, shape: tuple[int, ...]) -> Array:
    """(n,) row-major numbers of index vectors (n, ranks)."""
    number = np.zeros(index.shape[:-1], dtype=np.int64)
    for rank, size in enumerate(shape):
        number = number * size + index[..., rank]
    return number


def box_words(widths: tuple[int, ...]) -> Array:
    """(words, ranks) index vectors of a box at the origin."""
    return np.indices(widths).reshape(len(widths), -1).T
