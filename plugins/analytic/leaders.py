"""Leader tiles: what must be empty for an access to another tensor to be skipped or gated (section 7.1).

Names are those of docs/model.md, 7.1: the target loop, R, e, f, g, q, agg, need, eff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from .nest import Nest
from .occupancy import TensorTables

if TYPE_CHECKING:
    from .granules import Granules


@attrs.frozen(eq=False)
class Region:
    """The part of the loop nest within which one access of tensor t serves, of n designs (7.1).

    Loops are those of the blocks between the level and its child, (P, n) by position, the innermost first.
    """

    t: int
    dim: Array
    """(P, n) dimension of each loop."""
    bound: Array
    """(P, n)"""
    target: Array
    """(n,) position of the target loop: the innermost one that moves t, or else the outermost of the loops scanned."""
    grows: Array
    """(n,) bool: words beyond the tile of t lie along the target loop."""
    target_spatial: Array
    """(n,) bool: there is such a loop, and it is spatial."""
    R: Array
    """(P, n) bool: the target loop and those outside it that the region spans as well."""
    e: list[Array]
    """Per dimension, (n,) extents up to and including the target loop."""
    f: list[Array]
    """Per dimension, (n,) extents of the region."""
    words: float
    """Words of t that one access takes."""
    scalar: bool
    """Whether a word of t serves a single compute at a time."""
    along: tuple[Array, Array]
    """(n,) dimension and bound of the loop along which the further words of an access to such a tensor lie."""
    most: Array
    """(D, n) or (D, 1) extents that a tile does not exceed: Timeloop takes the sizes; `apart`: those up to the target
    loop, without one what the level holds."""

    @classmethod
    def of(cls, nest: Nest, rows: Rows, t: int, level: int, apart: bool) -> Region:
        """The region of accesses to tensor t at `level`, which stores it, in the designs `rows`. Loops of bound one are not
        scanned. Timeloop takes the innermost loop for `along`, and words beyond the tile along any target loop; `apart`: the
        innermost loop that moves t, for both."""
        lay = nest.layout
        child = lay.child(t, level)
        inner, words = lay.S if child is None else child, float(lay.problem.chip.access_words[level])
        scalar, along = child is None and lay.spatial[lay.S - 1] is None, (np.zeros(0), np.zeros(0))
        if scalar and words > 1.0:
            dim, bound = nest.loops([lay.temporal[s] for s in range(lay.S - 1, level - 1, -1)], rows)
            busy = (bound > 1.0) & (not apart or lay.relevant[t][dim])
            first = busy.argmax(axis=0), np.arange(len(rows))
            along = dim[first], np.where(busy.any(axis=0), bound[first], 1.0)
        groups: list[tuple[int, bool]] = []
        for s in range(inner - 1, level - 1, -1):
            spatial = lay.spatial[s]
            if spatial is not None:
                groups.append((spatial, True))
            if child is not None:
                groups.append((lay.temporal[s], False))
        if groups:
            which = [g for g, _ in groups]
            dim, bound = nest.loops(which, rows)
            is_spatial = np.repeat([flag for _, flag in groups], lay.D)[:, None]
            # at the compute unit only the spatial loops of the innermost level are searched for a target
            searched = np.repeat([child is not None or lay.block[g] == lay.S - 1 for g in which], lay.D)[:, None]
        else:  # the scalar case
            dim, bound = np.zeros((1, len(rows)), dtype=np.int8), np.ones((1, len(rows)))
            is_spatial, searched = np.zeros((1, 1), dtype=bool), np.ones((1, 1), dtype=bool)
        inside, busy, relevant = np.take(nest.extents[inner], rows, axis=1), bound > 1.0, lay.relevant[t][dim]
        scanned, position = busy & searched, np.arange(len(bound))[:, None]
        candidates = scanned & relevant
        found = candidates.any(axis=0)
        target = np.where(found, candidates.argmax(axis=0), np.max(position * scanned, axis=0))
        grows = found if apart else scanned.any(axis=0)
        target_spatial = found & is_spatial[:, 0][target]
        outside = (position > target) & busy
        # outside a spatial target loop, the target stays until the first temporal loop that moves it
        moved = np.logical_or.accumulate(outside & ~is_spatial & relevant)
        spans = outside & (is_spatial | (~relevant & ~moved & target_spatial))
        to_target = np.where(position <= target, bound, 1.0)
        to_region = np.where(spans, bound, to_target)

        def extents(factors: Array) -> list[Array]:
            return [inside[d] * np.multiply.reduce(np.where(dim == d, factors, 1.0)) for d in range(lay.D)]

        R = spans | ((position == target) & found)
        e, f = extents(to_target), extents(to_region)
        sizes = np.array([[lay.problem.sizes[dim]] for dim in lay.dims], dtype=np.float64)
        most = sizes if not apart else nest.extents[level][:, rows] if scalar else np.array(e)
        return cls(t, dim, bound, target, grows, target_spatial, R, e, f, words, scalar, along, most)

    def leader_tile(self, nest: Nest, c: int, apart: bool) -> tuple[list[Array], Array]:
        """Per dimension, (n,) extents of the tile of leader c, and (n,) bool: the action does nothing with this leader.

        One access of t serves several positions of the loops in R that move both tensors (co-iterated ones): there the
        leader's tile is shared, and only the `need` of them that one access spans belong to it. Timeloop divides in the order
        of dimensions, and compares words up to the target loop with positions of all these loops; `apart`: each dimension by
        itself, and words with positions of the same loops.
        """
        lay = nest.layout
        moves_t, moves_c = (lay.relevant[tensor][self.dim] for tensor in (self.t, c))
        both = self.R & moves_t & moves_c & (apart or not self.scalar)
        before = np.concatenate([np.zeros((1, both.shape[1]), dtype=bool), np.logical_or.accumulate(both)[:-1]])
        again = self.R & moves_c & before & self.target_spatial  # a second such loop: the tiles no longer match
        bound = np.where(both & ~again, self.bound, 1.0)
        e = list(self.e)
        for d in range(lay.D) if apart else ():
            beyond = (self.dim == d) & (np.arange(len(bound))[:, None] > self.target)
            e[d] = e[d] * np.multiply.reduce(np.where(beyond, bound, 1.0))
        words, ratio = 1.0 if self.scalar else self.words, nest.volume(self.t, e) / np.multiply.reduce(bound)
        need = spans = np.maximum(np.ceil(words / ratio), 1.0)
        if apart:
            need = np.ones_like(spans)
        f = list(self.f)
        shared = [d for d in range(lay.D) if lay.relevant[self.t, d] and lay.relevant[c, d]]
        factors = [np.multiply.reduce(np.where(self.dim == d, bound, 1.0)) for d in shared]
        for d, q in zip(shared, factors, strict=True):
            on = q > 1.0
            f[d] = np.where(on, np.ceil(f[d] / (q / need)), f[d])
            need = np.where(on, need / q, need) if not apart else need
        need, dim = np.where(self.grows, spans if apart else need, 1.0), self.dim[self.target, np.arange(len(need))]
        if self.scalar and self.words > 1.0:
            dim, longest = self.along
            need = np.minimum(self.words, longest if apart else np.where(longest > 1.0, np.inf, 1.0))
        rest = np.flatnonzero(need > 1.0)
        for d in sorted({*dim[rest].tolist()}):
            rows = rest[dim[rest] == d]
            f[d] = f[d].copy()
            f[d][rows] = np.minimum(np.trunc(f[d][rows] * need[rows]), np.broadcast_to(self.most[d], need.shape)[rows])
        return f, again.any(axis=0)


def leaders_empty(
    nest: Nest, rows: Rows, level: int, t: int, leaders: Sequence[int], tables: Sequence[TensorTables],
    granules: Mapping[int, Granules], blind: Array, apart: bool, while_it_stays: bool = False,
) -> list[tuple[Array, Array]]:  # fmt: skip
    """P0 of 7.1: per leader, (n,) probability that its tile of an access to tensor t at `level` is empty, 0 where the action
    does nothing with this leader, and (n,) words of that tile, infinity there.

    Designs that are `blind`, (n,) bool, look at metadata, which tells of whole granules (6.5), not at the words. `apart`:
    see `Region.leader_tile`. `while_it_stays`: the leader's tile is all that the tile of t meets in the child.
    """
    region = Region.of(nest, rows, t, level, apart)
    more = stay_of(nest, rows, t, level) if while_it_stays else None
    found = []
    for c in leaders:
        f, ineffective = region.leader_tile(nest, c, apart)
        if more is not None:
            f = [extent * n for extent, n in zip(f, more, strict=True)]
        if c in granules:
            f = [np.where(blind, joined, e) for joined, e in zip(granules[c].joined(f, rows), f, strict=True)]
        words = nest.volume(c, f)
        empty = tables[c].empty(nest.box(c, f) if tables[c].by_shape else [words])
        found.append((np.where(ineffective, 0.0, empty), np.where(ineffective, np.inf, words)))
    return found


def stay_of(nest: Nest, rows: Rows, t: int, level: int) -> list[Array]:
    """Per dimension, (n,) iterations of the loops outside `level` over which the tile of t stays in the next level that
    stores it (docs/model.md, `stay`): the innermost temporal ones that do not move t, if none inside moves it either."""
    lay, child = nest.layout, nest.layout.child(t, level)
    ones = np.ones(len(rows))
    if child is None or level == 0:
        return [ones] * lay.D
    moved = nest.moves[t, level][rows]
    found = [ones] * lay.D
    for s in range(level - 1, -1, -1):
        dims, bounds = nest.loops([lay.temporal[s]], rows)
        for dim, bound in zip(dims, bounds, strict=True):
            moved = moved | ((bound > 1.0) & lay.relevant[t][dim])
            kept = np.where(moved, 1.0, bound)
            for d in range(lay.D):
                found[d] = np.where(dim == d, found[d] * kept, found[d])
    return found
