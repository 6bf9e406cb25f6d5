"""The least metadata of a whole tensor over all its rank hierarchies: a part of the lower bound (`bound_words`).

A hierarchy is a way from one word to the whole tensor: every rank multiplies the extent of one dimension, from the inside
outwards, with one format. What a rank costs depends on the part below it, its length, its format, and on what the next
rank outside tells; so the cheapest way is found rank by rank over the extents reached and what is told there. Each step
is priced by the tables that price designs.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.sparsity import name_bits
from sparsemap.primes import divisors, prime_factors

from .occupancy import Ranks
from .occupancy.lookup import take
from .ranks import OUTER

if TYPE_CHECKING:
    from .prepared import ModelTables

MOST_PARTS = 1 << 14
"""Parts of a tensor above which nothing is tried."""
MOST_STEPS = 1 << 17
"""Steps from a part to a larger one above which parts of as many words are taken as one, and then above which nothing is
tried."""


@attrs.frozen(eq=False)
class Steps:
    """Every rank that a hierarchy of a tensor may have: n steps from one part of it to a larger one."""

    dims: Array
    """Dimensions of the tensor that have several positions .."""
    options: list[Array]
    """.. and the divisors of each, ascending."""
    part: Array
    """The part, by the places of its extents among these, in C order; 0 is one word, the last the tensor."""
    layer: Array
    """(m,) of every part: every step goes to a higher one."""
    start: Array
    """(n,) the part below .."""
    end: Array
    """.. and the part that a fiber covers; steps are sorted by the layer of this, and by this."""
    below: Array
    """(n,) words of the one .."""
    box: Array
    """.. and of the other."""
    length: Array
    positions: Array
    """(n,) of this rank and all inside."""
    fibers: Array
    """(n,) in the whole tensor, empty or not."""
    first: Array
    """The first one of the steps that cost the same .."""
    alike: Array
    """.. and (n,) its place among these."""

    @classmethod
    def of(cls, known: ModelTables, t: int) -> Steps | None:
        """None: there are too many, or ranks whose lengths depend on their order (strides)."""
        lay = known.layout
        dims = np.flatnonzero(lay.relevant[t] & (lay.sizes > 1.0))
        options = [np.array(divisors(int(lay.sizes[d]))) for d in dims]
        if lay.holes[t] or not len(dims) or math.prod(len(option) for option in options) > MOST_PARTS:
            return None
        grid = np.stack(np.meshgrid(*options, indexing="ij")).reshape(len(dims), -1).astype(np.float64)
        extents: Array = np.ones((lay.D, grid.shape[1]))
        extents[dims] = grid
        words, product = np.prod(box(lay.ranks[t], extents), axis=0), grid.prod(axis=0)
        strides = np.cumprod([1, *[len(option) for option in options[::-1]]])[::-1][1:]
        starts, ends = [], []
        for option, stride, own in zip(options, strides, grid, strict=True):
            place = np.searchsorted(option, own)
            for at, n in enumerate(option):
                rows = np.flatnonzero(place == at)
                further = np.flatnonzero(option % n == 0)[1:] - at
                starts.append(np.repeat(rows, len(further)))
                ends.append((rows[:, None] + further * stride).ravel())
        start, end = np.concatenate(starts), np.concatenate(ends)
        part = np.arange(len(product))
        if len(start) > MOST_STEPS:
            _, first, part = np.unique(np.stack([product, words]), axis=1, return_index=True, return_inverse=True)
            part, words, product = part.reshape(-1), words[first], product[first]
            start, end = np.unique(np.stack([part[start], part[end]]), axis=1)
            if len(start) > MOST_STEPS:
                return None
        factors = {int(n): len(prime_factors(int(n))) for n in np.unique(product)}
        layer = np.array([factors[int(n)] for n in product])
        order = np.lexsort([end, layer[end]])
        start, end = start[order], end[order]
        length, fibers = product[end] / product[start], product.max() / product[end]
        columns = words[start], words[end], length, product[end], fibers
        _, first, alike = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
        return cls(dims, options, part, layer, start, end, *columns, first, alike.reshape(-1))

    def parts(self, extents: Array) -> Array:
        """(n,) those with these extents (D, n)."""
        place = np.zeros(extents.shape[1], dtype=np.int64)
        for dim, option in zip(self.dims, self.options, strict=True):
            place = place * len(option) + np.searchsorted(option, extents[dim])
        return self.part[place]


@attrs.frozen(eq=False)
class LeastRanks:
    """Bits of metadata of a compressed tensor at the outermost level, at least."""

    steps: Steps
    through: Array
    """(m,) by part, those of the cheapest hierarchy of ranks that passes it."""

    def of_tiles(self, extents: Array) -> Array:
        """(n,) of those that pass the parts with these extents (D, n)."""
        return self.through[self.steps.parts(extents)]

    @classmethod
    def of(cls, known: ModelTables, t: int) -> LeastRanks | None:
        """None: not known."""
        tables, formats = known.tables[t], known.formats
        if tables.by_shape or formats.pads or not formats.every_fiber or not formats.compressed.any():
            return None
        if formats.flattened.any() or (formats.group > 1).any() or known.layout.problem.space.provides("decoded"):
            return None
        steps = Steps.of(known, t)
        return None if steps is None else cls(steps, _cheapest(known, t, steps))


def _cheapest(known: ModelTables, t: int, steps: Steps) -> Array:
    """(m,) bits of the cheapest hierarchy through every part."""
    packed, leads = _prices(known, t, steps)
    start, end, count = steps.start, steps.end, len(steps.layer)
    inside, outside = np.full((2, len(OUTER), count), np.inf)
    """Bits of the ranks up to a part, and further out, by what the next rank outside tells; the ranks inside are compressed."""
    done = np.full(count, np.inf)
    """Bits up to a part of which ranks further out are not compressed."""
    inside[:, 0] = 0.0
    for some in _runs(steps.layer[end]):
        first = start[some]
        ways = (inside[1::2, first] + packed[..., some]).min(axis=1)  # (told, n)
        ended = np.minimum(
            np.where(first > 0, np.minimum(done, inside[0])[first], np.inf), inside[2, first] + leads[some]
        )
        begins = np.flatnonzero(np.diff(end[some], prepend=-1))
        inside[:, end[some][begins]] = np.minimum.reduceat(ways, begins, axis=1)
        done[end[some][begins]] = np.minimum.reduceat(ended, begins)
    outside[0] = 0.0
    order = np.lexsort([start, -steps.layer[start]])
    for rows in _runs(-steps.layer[start[order]]):
        some = order[rows]
        begins = np.flatnonzero(np.diff(start[some], prepend=-1))
        ways = (outside[:, None, end[some]] + packed[..., some]).min(axis=0)  # (ends, n)
        outside[1::2, start[some][begins]] = np.minimum.reduceat(ways, begins, axis=1)
        outside[2, start[some][begins]] = np.minimum.reduceat(leads[some], begins)
    found: Array = np.minimum(done, (inside + outside).min(axis=0))
    found[0] = min(done[-1], inside[0, -1])
    return found


def _runs(keys: Array) -> list[slice]:
    """The rows of every key; keys are sorted."""
    ends = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


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
    units = known.tables[t].units(take(ranks, steps.first))
    innermost = steps.positions[steps.first] == steps.length[steps.first]  # whose payload is the data
    bits = units.metadata * units.metadata_bits + np.where(innermost, 0.0, units.payload) * units.payload_bits
    return bits[steps.alike]
