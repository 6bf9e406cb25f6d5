"""Bands of `crisp` tiles with as many nonzeros as possible: the blocks kept, and their probability."""

from __future__ import annotations

import math
from typing import NamedTuple

from sparsemap.inner.arrays import power

from .footprints import NEVER, Footprint

Classes = tuple[tuple[Footprint, int], ...]
"""Footprints, and the number of blocks of a band with each."""


class Filled(NamedTuple):
    """Blocks kept by a band with as many nonzeros as possible."""

    sure: list[Classes]
    """By nonzeros per row, footprints with all blocks and all words kept, except footprints with probability 1."""
    last: Classes
    """Footprints of the last weight."""
    left: int
    """Number of blocks kept among `last`, or among the blocks outside the tile."""
    ways: int
    """Number of all choices of kept blocks."""
    share: float
    """Share of the suitable choices, if `last` has at most one footprint."""

    def chance(self, height: int, inner: int) -> float:
        """Probability of a full band of `height` rows, with the sub-tile empty in `inner` rows."""
        chance = 1.0
        for level in filter(None, self.sure):
            chance = chance * math.prod([power(footprint.full(height, inner), count) for footprint, count in level])
        last = [(footprint.full(height, inner), count) for footprint, count in self.last]
        if len(last) < 2:
            return chance * (power(last[0][0], self.left) * self.share if last else self.share)
        return chance * self._some(last, self.left, 1)

    def _some(self, rest: list[tuple[float, int]], left: int, product: int) -> float:
        """The probability summed over all choices of `left` blocks with these footprints."""
        if not rest:
            return product / self.ways
        (full, count), *others = rest
        shares = range(max(0, left - sum(more for _, more in others)), min(count, left) + 1)
        return sum(power(full, k) * self._some(others, left - k, product * math.comb(count, k)) for k in shares)


def heaviest(classes: Classes, keep: int) -> int:
    """Largest number of nonzeros per row of a band."""
    left, found = keep, 0
    for weight, count in sorted(((footprint.most, count) for footprint, count in classes), reverse=True):
        found += weight * min(count, left)
        left -= min(count, left)
    return found


def filled(classes: Classes, most: int, blocks: int, keep: int) -> Filled | None:
    """A band with `most` nonzeros in each row, keeping `keep` blocks; None: a needed block never leaves the sub-tile empty."""
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
