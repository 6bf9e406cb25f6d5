"""The least metadata of a whole tensor over all its rank hierarchies: a part of the lower bound (`bound_words`).

A hierarchy is a way from one word to the whole tensor: every rank multiplies the extent of one dimension, from the inside
outwards, with one format. What a rank costs depends on the part below it, its length, its format, and on what the next
rank outside tells; so the cheapest way is found rank by rank over the extents reached and what is told there. Each step
is priced by the tables that price designs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.sparsity import name_bits
from sparsemap.primes import divisors

from .occupancy import Ranks
from .ranks import OUTER

if TYPE_CHECKING:
    from .prepared import ModelTables

MOST_STEPS = 1 << 14
"""Different steps of a tensor above which nothing is tried."""


@attrs.frozen(eq=False)
class Steps:
    """Every rank that a hierarchy of a tensor may have: n steps from one part of it to a larger one."""

    parts: Array
    """(2, m) product of the extents, and words, of every part, ascending; the first is one word, the last the tensor."""
    start: Array
    """(n,) index of the part below .."""
    end: Array
    """.. and of the part that a fiber covers."""
    below: Array
    """(n,) words of the one .."""
    box: Array
    """.. and of the other."""
    length: Array
    positions: Array
    """(n,) of this rank and all inside."""
    fibers: Array
    """(n,) in the whole tensor, empty or not."""

    @classmethod
    def of(cls, known: ModelTables, t: int) -> Steps | None:
        """None: there are too many, or ranks whose lengths depend on their order (strides)."""
        lay = known.layout
        if lay.holes[t] or not (lay.relevant[t] & (lay.sizes > 1.0)).any():
            return None
        dims = np.flatnonzero(lay.relevant[t] & (lay.sizes > 1.0))
        options = [np.array(divisors(int(lay.sizes[d]))) for d in dims]
        if math.prod(len(option) for option in options) > MOST_STEPS:
            return None
        grid = np.stack(np.meshgrid(*options, indexing="ij")).reshape(len(dims), -1).astype(np.float64)
        extents: Array = np.ones((lay.D, grid.shape[1]))
        extents[dims] = grid
        words = np.prod([np.ones(grid.shape[1]), *box(lay.ranks[t], extents)], axis=0)
        product, whole = grid.prod(axis=0), float(np.prod(lay.sizes[dims]))
        strides = np.cumprod([1, *[len(option) for option in options[::-1]]])[::-1][1:]
        starts, ends = [], []
        for option, stride, own in zip(options, strides, grid, strict=True):
            place = np.searchsorted(option, own)
            for at, n in enumerate(option):
                for further in np.flatnonzero(option % n == 0)[1:]:
                    rows = np.flatnonzero(place == at)
                    starts.append(rows)
                    ends.append(rows + (further - at) * stride)
        if sum(map(len, starts)) > 16 * MOST_STEPS:
            return None
        # parts with the same words are one: whatever leads to one of them leads on from all
        parts, which = np.unique(np.stack([product, words]), axis=1, return_inverse=True)
        which = which.reshape(-1)
        start, end = which[np.concatenate(starts)], which[np.concatenate(ends)]
        pairs = np.unique(np.stack([start, end]), axis=1)
        if pairs.shape[1] > MOST_STEPS:
            return None
        start, end = pairs
        (before, below), (after, around) = parts[:, start], parts[:, end]
        return cls(parts, start, end, below, around, after / before, after, whole / after)


@attrs.frozen(eq=False)
class LeastRanks:
    """Bits of metadata of a compressed tensor at the outermost level, at least."""

    parts: Array
    """(2, m) product of the extents, and words, of the parts that hierarchies of its ranks pass ..."""
    through: Array
    """.. and (m,) bits of the cheapest that passes them."""

    def of_tiles(self, product: Array, words: Array) -> Array:
        """(n,) bits of those that pass such parts."""
        known = self.parts[0] + 1j * self.parts[1]  # complex numbers are ordered by both
        return self.through[np.searchsorted(known, product + 1j * words)]

    @classmethod
    def of(cls, known: ModelTables, t: int) -> LeastRanks | None:
        """None: not known."""
        tables, formats = known.tables[t], known.formats
        if tables.by_shape or formats.pads or not formats.every_fiber or not formats.compressed.any():
            return None
        if formats.flattened.any() or (formats.group > 1).any() or known.layout.problem.space.provides("decoded"):
            return None
        steps = Steps.of(known, t)
        return None if steps is None else cls(steps.parts, _cheapest(known, t, steps))


def _cheapest(known: ModelTables, t: int, steps: Steps) -> Array:
    """(m,) bits of the cheapest hierarchy through every part."""
    packed, leads = _prices(known, t, steps)
    start, count = steps.start, steps.parts.shape[1]
    inside, outside = np.full((2, len(OUTER), count), np.inf)
    """Bits of the ranks up to a part, and further out, by what the next rank outside tells; the ranks inside are compressed."""
    done = np.full(count, np.inf)
    """Bits up to a part of which ranks further out are not compressed."""
    inside[:, 0] = 0.0
    for some in _runs(steps.end):
        end = steps.end[some[0]]
        ways = inside[1::2, start[some]] + packed[..., some]  # (told, ends, n)
        inside[:, end] = ways.min(axis=(1, 2))
        apart = inside[2, start[some]] + leads[some]
        ended = np.where(start[some] > 0, np.minimum(done, inside[0])[start[some]], np.inf)
        done[end] = np.minimum(ended, apart).min()
    outside[0] = 0.0
    for some in reversed(_runs(start)):
        begin = start[some[0]]
        outside[1::2, begin] = (outside[:, None, steps.end[some]] + packed[..., some]).min(axis=(0, 2))
        outside[2, begin] = leads[some].min()
    found: Array = np.minimum(done, (inside + outside).min(axis=0))
    found[0] = min(done[-1], inside[0, -1])
    return found


def _runs(keys: Array) -> list[Array]:
    """The rows of every key, ascending."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _prices(known: ModelTables, t: int, steps: Steps) -> tuple[Array, Array]:
    """Bits (told, ends, n) of every step in the cheapest compressed format, where the next rank outside tells so much and it
    tells the ends of the fibers inside, or not; and (n,) of offsets in an uncompressed one, which tell them."""
    formats, pointers, innermost = known.formats, known.options.pointers, steps.start == 0
    offset = name_bits(steps.positions + 1.0)
    there, some = (1.0 - known.tables[t].empty([part]) for part in (steps.below, steps.box))
    found = np.full((len(OUTER), 2, len(offset)), np.inf)
    for told in range(len(OUTER)):
        fibers = steps.fibers * (some if told % 2 else 1.0)
        pointed = np.where(innermost, 0.0, (fibers + steps.fibers * steps.length * there) * offset)
        for name in np.flatnonzero(formats.compressed):
            bits, ends = _bits(known, t, steps, told, int(name)), int(formats.offsets[name])
            found[told, ends] = np.minimum(found[told, ends], bits)
            if pointers and not ends:
                found[told, 1] = np.minimum(found[told, 1], bits + pointed)
    told_apart = pointers or bool((formats.offsets & ~formats.compressed).any())
    leads = steps.fibers * (steps.length + 1.0) * offset if told_apart else np.inf
    return found, np.where(innermost, np.inf, leads)


def _bits(known: ModelTables, t: int, steps: Steps, told: int, name: int) -> Array:
    """(n,) bits of every step in a compressed format, if the next rank outside tells so much."""
    one = np.ones(len(steps.below))
    whole = one * steps.box.max()
    ranks = Ranks(
        whole[None], (steps.box if told % 2 else whole)[None], steps.below[None], steps.length, steps.fibers,
        np.full(len(one), name + told * len(known.formats.formats)), steps.positions, 0.0 * one, steps.length,
        np.zeros((0, len(one))),
    )  # fmt: skip
    units = known.tables[t].units(ranks)
    payload = np.where(steps.start == 0, 0.0, units.payload)  # of the innermost rank, that is the data
    return units.metadata * units.metadata_bits + payload * units.payload_bits
