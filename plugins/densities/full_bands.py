"""Bands of `crisp` tiles that hold all that they can: which blocks they keep, and the probability of that."""

from __future__ import annotations

import math
from typing import NamedTuple

from sparsemap.inner.arrays import power

from .footprints import NEVER, Footprint

Classes = tuple[tuple[Footprint, int], ...]
"""Footprints, and in how many blocks of a band each occurs."""


class Filled(NamedTuple):
    """Which blocks a band keeps that holds all that it can."""

    sure: list[Classes]
    """By nonzeros, footprints of which all blocks are kept, with all of their words; but for those that always are, .."""
    last: Classes
    """.. those of the last weight, and .."""
    left: int
    """.. how many blocks are left for these, or else for the blocks outside."""
    ways: int
    """To keep blocks at all."""
    share: float
    """The share of these ways, where `last` has no more than one footprint."""

    def chance(self, height: int, inner: int) -> float:
        """Probability of that in a band of so many rows, with the sub-tile empty in `inner` of them."""
        chance = 1.0
        for level in filter(None, self.sure):
            chance = chance * math.prod([power(footprint.full(height, inner), count) for footprint, count in level])
        last = [(footprint.full(height, inner), count) for footprint, count in self.last]
        if len(last) < 2:
            return chance * (power(last[0][0], self.left) * self.share if last else self.share)
        return chance * self._some(last, self.left, 1)

    def _some(self, rest: list[tuple[float, int]], left: int, product: int) -> float:
        """Over all ways to keep `left` blocks of these footprints."""
        if not rest:
            return product / self.ways
        (full, count), *others = rest
        shares = range(max(0, left - sum(more for _, more in others)), min(count, left) + 1)
        return sum(power(full, k) * self._some(others, left - k, product * math.comb(count, k)) for k in shares)


def heaviest(classes: Classes, keep: int) -> int:
    """The most nonzeros per row of a band."""
    left, found = keep, 0
    for weight, count in sorted(((footprint.most, count) for footprint, count in classes), reverse=True):
        found += weight * min(count, left)
        left -= min(count, left)
    return found


def filled(classes: Classes, most: int, blocks: int, keep: int) -> Filled | None:
    """A band that holds `most` nonzeros in each of its rows, all that it can, keeping so many of its blocks; None: a block
    that would have to be kept is never empty."""
    heavy = tuple(one for one in classes if one[0] is not NEVER)
    if len(heavy) < len(classes) and heaviest(heavy, keep) != most:
        return None
    left, sure, ways = keep, list[Classes](), math.comb(blocks, keep)
    for weight in sorted({footprint.most for footprint, _ in heavy}, reverse=True):
        level = tuple((footprint, count) for footprint, count in heavy if footprint.most == weight)
        count = sum(count for _, count in level)
        if count > left:
            return Filled(sure, level, left, ways, math.comb(count, left) / ways)
        left -= count
        sure.append(tuple(one for one in level if one[0].fullest != (1.0, 1.0)))
    outside = blocks - sum(count for _, count in classes)
    return Filled(sure, (), left, ways, math.comb(outside, left) / ways)
