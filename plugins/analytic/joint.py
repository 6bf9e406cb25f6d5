"""What tensors of actual data hold at the same computes (section 7.5): counted, where others are taken as independent."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign

from .layout import Layout


@attrs.frozen(eq=False)
class JointNonzeros:
    """Of two or more tensors of actual data."""

    layout: Layout
    tensors: frozenset[int]
    shares: dict[frozenset[int], float] = attrs.field(factory=dict)

    def share(self, tensors: Collection[int]) -> float:
        """Of all computes, those at which each of these tensors holds a nonzero."""
        key = frozenset(tensors) & self.tensors
        if key not in self.shares:
            arrays = [self._over_loops(t) for t in sorted(key)]
            dims = {d for _, axes in arrays for d in axes}
            both: float = np.einsum(*(part for pair in arrays for part in pair), [], optimize=True) if key else 1.0
            self.shares[key] = float(both) / math.prod(self.layout.sizes[d] for d in dims)
        return self.shares[key]

    def _over_loops(self, t: int) -> tuple[Array, list[int]]:
        """The tensor by the loops that move it, and these."""
        lay = self.layout
        words = lay.occupancies[t].draw(np.random.default_rng(0)).astype(np.float64)
        axes, positions = list[int](), list[Array]()
        for terms in lay.ranks[t]:
            place = np.zeros((), np.int64)
            for d, factor in terms:
                place = np.add.outer(place, factor * np.arange(int(lay.sizes[d])))
                axes.append(d)
            positions.append(place.ravel())
        return words[np.ix_(*positions)].reshape([int(lay.sizes[d]) for d in axes]), axes

    def left(
        self, t: int, leaders: Sequence[int], empty: Sequence[Array], words: Sequence[Array], packed: Array, left: Array
    ) -> Array:
        """(n,) share of the accesses to tensor t that its leaders leave, in place of `left`, where the tiles of all leaders
        of actual data are single words. Where t is `packed`, only its nonzeros are accessed."""
        mine = [i for i, c in enumerate(leaders) if c in self.tensors]
        if not mine:
            return left
        alone = np.logical_and.reduce([words[i] == 1.0 for i in mine])
        others = np.ones(len(left))
        for i in (i for i in range(len(leaders)) if i not in mine):
            others = others * (1.0 - empty[i])
        names = [leaders[i] for i in mine]
        given = self.share([t])
        nonzeros = self.share([t, *names]) / given if given > 0.0 else 0.0
        return np.where(alone, np.where(packed, nonzeros, self.share(names)) * others, left)

    def present(self, t: int, emptied: PerDesign) -> PerDesign:
        """(B,) share of the computes at which operand t holds a nonzero, after a share `emptied` of all is gone at which the
        other one holds none."""
        other = next(u for u in self.layout.operands if u != t)
        mine, zeros = self.share([t]), 1.0 - self.share([other])
        there = (mine - self.share([t, other])) / zeros if zeros > 0.0 else 0.0
        return (mine - emptied * there) / np.where(emptied < 1.0, 1.0 - emptied, 1.0)

    def again(self, t: int, share: PerDesign, emptied: PerDesign) -> PerDesign:
        """The share of computes that a filter on operand t removes of those which the filter of the other operand, on t's
        zeros, has left."""
        other = next(u for u in self.layout.operands if u != t)
        exact = np.isclose(emptied, 1.0 - self.share([t])) & np.isclose(share, 1.0 - self.share([other]))
        given = self.share([t])
        return np.where(exact, 1.0 - (self.share([t, other]) / given if given > 0.0 else 0.0), share)

    @staticmethod
    def met(left: PerDesign, states: Sequence[tuple[PerDesign, ...]], both: PerDesign) -> tuple[PerDesign, ...]:
        """`Meetings` of two operands that hold a nonzero together at a share `both` of the computes."""
        (p, zero_p, absent_p), (q, zero_q, absent_q) = states
        p = np.maximum(p, both)
        q = np.clip(q, both, 1.0 + both - p)
        gone_p, gone_q = (
            np.where(zero + absent > 0.0, absent / np.where(zero + absent > 0.0, zero + absent, 1.0), 0.0)
            for zero, absent in ((zero_p, absent_p), (zero_q, absent_q))
        )
        only_p, only_q, none = p - both, q - both, 1.0 - p - q + both
        absent = left * (only_p * gone_q + only_q * gone_p + none * (gone_p + gone_q - 2.0 * gone_p * gone_q))
        vanish = left * (none * gone_p * gone_q)
        zero = left * (1.0 - both) - absent - vanish
        return absent, zero, absent + zero, vanish
