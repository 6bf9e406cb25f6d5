"""Minimum metadata of a whole tensor over all rank hierarchies: a part of the lower bound (`bound_words`).

A hierarchy is a path from one word to the whole tensor: every rank multiplies the extent of one dimension, from the
inside outwards, with one format. The cost of a rank depends on the part below, the length, the format, and the
knowledge from the next outer rank. So the cheapest path is found rank by rank, over the extents reached and the
knowledge there. The tables used for designs price each step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.sparsity import name_bits
from sparsemap.primes import divisors, prime_factors

from .layout import Layout
from .occupancy import Ranks
from .occupancy.lookup import distinct
from .ranks import OUTER

if TYPE_CHECKING:
    from .bound_fullest import FullestBits
    from .prepared import ModelTables

MOST_PARTS = 1 << 14
"""Limit of the parts of a tensor; beyond, nothing is tried."""
MOST_STEPS = 1 << 15
"""Limit of steps from a part to a larger part. Beyond, parts of equally many words are merged; if still beyond, nothing
is tried."""


@attrs.frozen(eq=False)
class RankSteps:
    """Every possible rank of a tensor's hierarchies: n steps from a part to a larger part."""

    dims: Array
    """Dimensions of the tensor with several positions."""
    options: list[Array]
    """Divisors of each of these dimensions, ascending."""
    part: Array
    """Index of a part, by the places of its extents among `options`, in C order; 0 is one word, the last is the tensor."""
    layer: Array
    """(m,) layer of every part: every step goes to a higher layer."""
    start: Array
    """(n,) the part below one position."""
    end: Array
    """(n,) the part covered by a fiber; steps are sorted by its layer, then by its index."""
    below: Array
    """(n,) words of the part below."""
    box: Array
    """(n,) words of the fiber's part."""
    length: Array
    positions: Array
    """(n,) words under a fiber."""
    fibers: Array
    """(n,) fibers in the whole tensor, including empty fibers."""
    first: Array
    """First step of each group of equal cost."""
    alike: Array
    """(n,) group of each step."""

    @classmethod
    def of(cls, lay: Layout, t: int, sizes: Array) -> RankSteps | None:
        """Steps of a part with extents `sizes` (D,). None: too many steps, or rank lengths depend on their order
        (strides)."""
        dims = several(lay, t, sizes)
        options = [np.array(divisors(int(sizes[d]))) for d in dims]
        if lay.holes[t] or not len(dims) or math.prod(len(option) for option in options) > MOST_PARTS:
            return None
        grid = np.stack(np.meshgrid(*options, indexing="ij")).reshape(len(dims), -1).astype(np.float64)
        extents: Array = np.ones((lay.D, grid.shape[1]))
        extents[dims] = grid
        widths = np.array(box(lay.ranks[t], extents))
        words = widths.prod(axis=0)
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
        part = np.arange(len(words))
        sizes_of = widths if lay.windowed[t] else words[None]
        if len(start) > MOST_STEPS:
            first, part = _alike(*sizes_of)
            words, sizes_of = words[first], sizes_of[:, first]
            start, end = np.divmod(distinct(part[start] * len(first) + part[end]), len(first))
            if len(start) > MOST_STEPS:
                return None
        layer = _layers(words, grid.prod(axis=0) if len(words) == grid.shape[1] else words, start, end)
        order = np.lexsort([end, layer[end]])
        start, end = start[order], end[order]
        length = np.ceil(sizes_of[:, end] / sizes_of[:, start]).prod(axis=0)
        columns = words[start], words[end], length, words[end], words.max() / words[end]
        return cls(dims, options, part, layer, start, end, *columns, *_alike(*columns))


def _layers(words: Array, product: Array, start: Array, end: Array) -> Array:
    """(m,) layers of parts: prime factors of their products, which every step adds to; words where parts are merged."""
    whole = [int(n) for n in product]
    factors = {n: len(prime_factors(n)) for n in {*whole}}
    layer = np.array([factors[n] for n in whole])
    if (layer[end] > layer[start]).all():
        return layer
    found: Array = np.unique(words, return_inverse=True)[1]
    return found


def _alike(*columns: Array) -> tuple[Array, Array]:
    """First row of each group equal in all columns (n,), and the group (n,) of each row."""
    first, alike = np.zeros(1, dtype=np.int64), np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:  # one by one: `unique` compares rows byte by byte
        values, place = np.unique(column, return_inverse=True)
        _, first, alike = np.unique(alike * len(values) + place, return_index=True, return_inverse=True)
    return first, alike


@attrs.frozen(eq=False)
class LeastRanks:
    """Minimum metadata bits of a compressed tensor at the outermost level."""

    dims: Array
    options: list[Array]
    through: Array
    """Bits of the cheapest hierarchy of ranks through each part, indexed by the places of the part's extents among
    `options`, in C order."""

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        return self.through.size

    def of_tiles(self, extents: Array) -> Array:
        """(n,) bits of the cheapest hierarchies through the parts with extents (D, n)."""
        place = np.zeros(extents.shape[1], dtype=np.int64)
        for dim, option in zip(self.dims, self.options, strict=True):
            place = place * len(option) + np.searchsorted(option, extents[dim])
        return self.through[place]

    @classmethod
    def of(cls, known: ModelTables, t: int) -> LeastRanks | None:
        """Minimum bits of a tensor; None: unknown. Independent of the chip: problems with the same tensor and formats
        share the result."""
        if not told_by_ranks(known, t):
            return None
        found = known.tables[t].remember(content(known, t, known.layout.sizes), lambda: cls._made(known, t))
        return found and attrs.evolve(found, dims=several(known.layout, t, known.layout.sizes))

    @classmethod
    def _made(cls, known: ModelTables, t: int) -> LeastRanks | None:
        steps = RankSteps.of(known.layout, t, known.layout.sizes)
        if steps is None:
            return None
        inside, outside, done = cheapest(known, MeanBits(known, t, steps), steps)
        found: Array = np.minimum(done, (inside + outside).min(axis=0))
        found[0] = min(done[-1], inside[0, -1])
        return cls(steps.dims, steps.options, found[steps.part])


def content(known: ModelTables, t: int, extents: Array) -> tuple[Hashable, ...]:
    """Key of the ranks of a tile with extents (D,), in addition to the key of the tables."""
    lay, dims = known.layout, several(known.layout, t, extents).tolist()
    ranks = tuple(tuple((dims.index(d), c) for d, c in rank if d in dims) for rank in lay.ranks[t])
    return ranks, tuple(extents[dims]), bool(lay.holes[t]), bool(lay.windowed[t]), known.options.pointers


def several(lay: Layout, t: int, extents: Array) -> Array:
    """Dimensions of a tensor with several positions in a part with extents (D,)."""
    return np.flatnonzero(lay.relevant[t] & (extents > 1.0))


def told_by_ranks(known: ModelTables, t: int) -> bool:
    """Whether all metadata are ranks of the formats, with bits depending on volumes alone."""
    tables, formats = known.tables[t], known.formats
    plain = not (formats.pads or formats.flattened.any() or (formats.group > 1).any())
    decodes = known.layout.problem.space.provides("decoded")
    return plain and not decodes and formats.every_fiber and not tables.by_shape and bool(formats.compressed.any())


def cheapest(known: ModelTables, priced: MeanBits | FullestBits, steps: RankSteps) -> tuple[Array, Array, Array]:
    """Bits of the cheapest hierarchies. First, (told, m) of the ranks up to a part, and (told, m) of the ranks further
    out, by the knowledge from the next outer rank, for compressed inner ranks. Then (m,) up to a part with uncompressed
    ranks further out."""
    packed, leads = _prices(known, priced, steps)
    start, end, count = steps.start, steps.end, len(steps.layer)
    inside, outside = np.full((2, len(OUTER), count), np.inf)
    done = np.full(count, np.inf)
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
    for run in _runs(-steps.layer[start[order]]):
        rows = order[run]
        begins = np.flatnonzero(np.diff(start[rows], prepend=-1))
        ways = (outside[:, None, end[rows]] + packed[..., rows]).min(axis=0)  # (ends, n)
        outside[1::2, start[rows][begins]] = np.minimum.reduceat(ways, begins, axis=1)
        outside[2, start[rows][begins]] = np.minimum.reduceat(leads[rows], begins)
    return inside, outside, done


def _runs(keys: Array) -> list[slice]:
    """Slices of equal keys, from sorted keys."""
    ends = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def _prices(known: ModelTables, priced: MeanBits | FullestBits, steps: RankSteps) -> tuple[Array, Array]:
    """Bits (told, ends, n) of every step in the cheapest compressed format, by knowledge from the next outer rank, and
    by whether the step provides the ends of inner fibers. And (n,) bits of offsets in an uncompressed rank, which
    provide these ends."""
    formats, pointers = known.formats, known.options.pointers
    found = np.full((len(OUTER), 2, len(steps.length)), np.inf)
    rows = {
        (told, name): (int(formats.row[told, name]), told % 2 > 0)
        for told in range(len(OUTER)) for name in np.flatnonzero(formats.compressed)
    }  # fmt: skip
    asked = list(dict.fromkeys(rows.values()))
    known_bits = dict(zip(asked, priced.bits(asked), strict=True))
    for (told, name), row in rows.items():
        metadata, *payloads = known_bits[row]
        own = int(formats.offsets[name])
        for ends in {own, own or int(pointers)}:  # in a code without offsets the payload is that of the format
            payload = np.where(steps.below == 1.0, 0.0, payloads[ends][steps.alike])  # else the data
            found[told, ends] = np.minimum(found[told, ends], metadata[steps.alike] + payload)
    tells = pointers or bool((formats.offsets & ~formats.compressed).any())
    leads = steps.fibers * (steps.length + 1.0) * name_bits(steps.positions + 1.0) if tells else np.inf
    return found, np.where(steps.start == 0, np.inf, leads)


@attrs.frozen(eq=False)
class MeanBits:
    """Mean bits of the distinct steps, `RankSteps.first`."""

    known: ModelTables
    t: int
    steps: RankSteps

    def bits(self, asked: Sequence[tuple[int, bool]]) -> list[tuple[Array, Array, Array]]:
        """Bits (n,) of metadata, payload and offsets, for each pair of an index into `FormatTables.asked` and whether
        every fiber is non-empty."""
        steps, count = self.steps, len(asked)
        below, box, length, positions, fibers = (
            np.tile(part[steps.first], count)
            for part in (steps.below, steps.box, steps.length, steps.positions, steps.fibers)
        )
        form, filled = (np.repeat(part, len(steps.first)) for part in zip(*asked, strict=True))
        whole = np.full(len(length), steps.box.max())
        units = self.known.tables[self.t].units(Ranks.of(
            whole[None], np.where(filled, box, whole), below, length, fibers, form, positions, 0.0 * length, length,
        ))  # fmt: skip
        offsets = units.offsets * name_bits(positions + 1.0)
        found = units.metadata * units.metadata_bits, units.payload * units.payload_bits, offsets
        return list(zip(*(part.reshape(count, -1) for part in found), strict=True))
