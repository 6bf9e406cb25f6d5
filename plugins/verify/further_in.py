"""Least cost of designs inside the level next to the outermost, for certificates (`unavoidable`).

All possible tiles of the inner levels, and all splits of a tile over the innermost fan-out, are tried individually."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from sparsemap.pieces.contracts import Tensor

from .hierarchies import words_of

if TYPE_CHECKING:
    from .unavoidable import OneTensor, Unavoidable

LESS = 1.0 - 2e-6
"""Margin for rounded counts."""


@attrs.frozen(eq=False)
class FurtherIn:
    """Least traffic of the level inside the outermost."""

    known: Unavoidable
    held: dict[tuple[int, ...], bool] = attrs.field(factory=dict)
    """Whether the innermost level has room for a tile."""
    spread: dict[tuple[int, ...], list[tuple[float, ...]]] = attrs.field(factory=dict)
    """Ways of all children to hold a tile together."""

    def least_pj(self, tile: Sequence[int], innermost: str) -> float:
        """Least pJ of words sent by the level inside the outermost, and of accesses next to the units.

        The minimum is over all joint tiles of the children; 0 with further levels, or with tensors that pass by."""
        problem, tensors = self.known.problem, self.known.tensors
        if len(problem.levels) != 3 or not all(problem.stores(t, s) for t in range(len(tensors)) for s in (1, 2)):
            return 0.0
        sizes, least, whole = problem.sizes, math.inf, dict(zip(problem.dims, tile, strict=True))
        every = self.known.units.computes
        for part in _parts(tile):
            extents, ways = dict(zip(problem.dims, part, strict=True)), self._together(part)
            met = [self.known.met(t, extents) for t in range(len(tensors))] if ways else []
            for dim in [dim for dim in sizes if whole[dim] > extents[dim]] or [innermost] if ways else ():
                counts = []
                for t, own in enumerate(tensors):
                    words = self._come(own, extents, whole, dim, innermost) * self.known.inside[t]
                    words = max(words, touched(own.tensor, sizes) * self.known.inside[t])
                    count = min(words * met[t], every * own.others) * own.density
                    if own.tensor.output and "sums" in self.known.charges:
                        count = max(count / 2.0, min(own.once * own.density, words * met[t]))  # as in `costs`
                    counts.append(max(0.0, count * LESS - 1.0))
                for units_pj, *way in ways:
                    each = (self.known.each_handed(own, 1, int(n)) for own, n in zip(tensors, way, strict=True))
                    least = min(least, units_pj + sum(n * pj for n, pj in zip(counts, each, strict=True)))
        return least if least < math.inf else 0.0

    def _come(self, own: OneTensor, extents: dict[str, int], whole: dict[str, int], dim: str, innermost: str) -> float:
        """Words of a tensor sent to the children in tiles of `extents`, with innermost loop `dim`, inside tiles of
        `whole`.

        A tile unmoved by every inner loop stays; otherwise it arrives again with every outer tile."""
        around = self.known.around(own.tensor, whole)
        if dim in own.tensor.dims or any(len(rank) > 1 for rank in own.tensor.ranks):
            return delivered(own.tensor, extents, self.known.around(own.tensor, extents), dim)
        if all(extents[name] == whole[name] for name in own.tensor.dims):
            return delivered(own.tensor, whole, around, innermost)
        return float(words_of(own.tensor, whole) * math.prod(around.values()))

    def _together(self, tile: tuple[int, ...]) -> list[tuple[float, ...]]:
        """Ways of the children of the level inside the outermost to hold `tile` together, each child a part.

        Each way has the pJ of accesses next to the units and, by tensor, the number of children with the same words."""
        if tile not in self.spread:
            limit, dims = float(self.known.problem.chip.fanout[1]), self.known.problem.dims
            still = [[dim not in own.tensor.dims for dim in dims] for own in self.known.tensors]
            found = set[tuple[float, ...]]()
            for split in (split for split in _parts(tile) if math.prod(split) <= limit):
                own = tuple(n // k for n, k in zip(tile, split, strict=True))
                if self._child_fits(own):
                    alone = (math.prod(itertools.compress(split, some)) for some in still)
                    found.add((self.known.units.least_pj(own), *alone))
            least = self.spread.setdefault(tile, [])
            for way in sorted(found, key=sum):  # the others cost more
                if not any(all(a <= b for a, b in zip(other, way, strict=True)) for other in least):
                    least.append(way)
        return self.spread[tile]

    def _child_fits(self, tile: tuple[int, ...]) -> bool:
        if tile not in self.held:
            self.held[tile] = self.known.fits(tile, 2)
        return self.held[tile]


@attrs.define(eq=False)
class NextToUnits:
    """Cost of accesses next to the compute units."""

    known: Unavoidable
    found: dict[tuple[tuple[int, ...], ...], float] = attrs.field(factory=dict)
    """Least pJ by the possible bounds of the loops over the units."""

    @cached_property
    def computes(self) -> float:
        return float(math.prod(self.known.ends.values()))

    @cached_property
    def actual(self) -> float:
        """Computes that no filter removes."""
        left = math.prod(own.density for own in self.known.tensors) * (1.0 - 1e-5)
        return max(0.0, self.computes * left - 4.0)

    def least_pj(self, tile: Sequence[int]) -> float:
        """Least pJ for innermost tiles of these extents: no loop over the units is longer than the tile."""
        lanes = int(self.known.problem.chip.fanout[len(self.known.problem.levels) - 1])
        options = [[n for n in range(1, min(size, lanes) + 1) if size % n == 0] for size in tile]
        key = tuple(map(tuple, options))
        if key not in self.found:
            ways = (way for way in itertools.product(*options) if math.prod(way) <= lanes)
            self.found[key] = min(self._of_way(way) for way in ways)
        return self.found[key]

    def _of_way(self, way: Sequence[int]) -> float:
        problem, pj = self.known.problem, 0.0
        last = len(problem.levels) - 1
        instances = float(problem.chip.instances[last])
        for t, own in enumerate(self.known.tensors):
            if not last or not problem.stores(t, last):
                continue
            price = own.chip.energy_pj
            read = self.computes * own.density * own.others * self.known.taken[t]
            served = self.actual if own.tensor.output else read
            count = max(0.0, served * LESS / self._served(own, way) - 4.0 * instances)
            pj += count * float(price["write" if own.tensor.output else "read"][last])
            if own.tensor.output:  # an instance reads each sum back but for the first time
                pj += max(0.0, count - own.once * instances - 4.0 * instances) * float(price["read"][last])
        return pj

    def _served(self, own: OneTensor, way: Sequence[int]) -> float:
        """Most computes served by an access: computes of a step over the different words needed."""
        bounds = dict(zip(self.known.problem.dims, way, strict=True))
        words = math.prod(sum(bounds[dim] - 1 for dim, _ in rank) + 1 for rank in own.tensor.ranks)
        return math.prod(way) / words


def _parts(tile: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All tiles with extents that divide the extents of a tile."""
    return itertools.product(*([n for n in range(1, size + 1) if size % n == 0] for size in tile))


def delivered(tensor: Tensor, extents: dict[str, int], loops: dict[str, int], innermost: str) -> float:
    """Fewest words delivered by the tiles of a tensor.

    A tensor moved by the innermost loop gets new words in every step. Otherwise all loops that do not move the tensor
    may lie inside the others. Of two loops along a rank, the outer one keeps overlap only if its step, less the
    returning inner step, equals the inner step or zero."""
    whole = float(words_of(tensor, extents))
    widths = [1 + sum(c * (extents[dim] - 1) for dim, c in rank) for rank in tensor.ranks]
    for rank, width in zip(tensor.ranks, widths, strict=True):
        for dim, c in rank:
            if dim == innermost:
                step = 2 * c * extents[dim]
                along = math.prod(loops[o] for o, other in rank if o == dim or other * extents[o] == step)
                along = along if loops[dim] > 1 else math.prod(loops[o] for o, _ in rank)
                new = whole * min(1.0, c * extents[dim] / width)
                return math.prod(loops.values()) / along * (whole + (along - 1) * new)
    for rank in tensor.ranks:
        counts, steps = [loops[dim] for dim, _ in rank], {c * extents[dim] for dim, c in rank}
        whole *= min(counts) if len(counts) > 1 and min(counts) > 1 and len(steps) == 1 else math.prod(counts)
    return whole


def touched(tensor: Tensor, sizes: dict[str, int]) -> float:
    """Words read by at least one compute."""
    if any(c > 1 for rank in tensor.ranks for _, c in rank):
        return float(math.prod(max(sizes[dim] for dim, _ in rank) for rank in tensor.ranks))
    return float(words_of(tensor, sizes))
