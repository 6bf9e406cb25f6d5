"""Compression formats on the loop nest: which loop is which rank (section 6.1).

A rank is a loop with a bound above one that moves the tensor. Ranks are listed flat, one entry per (design, rank) of the
designs that compress the tensor, innermost first; the ranks of a level are then a prefix of that list.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import attrs
import numpy as np

from sparsemap import Fiber, Format, Outer
from sparsemap.errors import SpecError
from sparsemap.pieces.boundary import units_of
from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel, PerTensor, PerTile, Rows
from sparsemap.problem.problem import Problem

from .layout import Layout
from .nest import Nest
from .occupancy import AskedFormat, TensorTables
from .rank_loops import RankCounts, rank_ends


@attrs.frozen(eq=False, slots=False)
class FormatTables:
    """Which slot strings are valid, and which compress, by the candidates' flags (the genome's format slots)."""

    formats: tuple[Format, ...]
    beyond: int
    """Index into `formats` of the format of ranks further out than the last slot."""
    compressed: Array
    """(F,) bool, as are .."""
    padded: Array
    anywhere: Array
    """.. and whether the order of ranks allows the format below any other."""
    block: Array
    """(F,) positions stored together."""
    linked: Array
    """(F,) bool: positions lead to the rank below by payload that has bits."""
    offsets: Array
    """(F,) bool: with offsets in its code .."""
    needs_ends: Array
    """.. and with fibers that only such offsets end."""
    flattened: Array
    """(F,) bool: the rank is part of the one inside."""
    asked: tuple[AskedFormat, ...]
    """What tables are asked for: every format, and below ranks that have told so much what makes a difference to it."""
    row: Array
    """(`OUTER`, F) index into these."""
    every_fiber: bool
    """Whether formats are asked for their code; then fibers that hold nothing are counted where they are there."""

    @classmethod
    def of(cls, problem: Problem, run_lengths: bool = False) -> FormatTables:
        """`run_lengths`: metadata are those that an encoder writes, for every fiber that is there."""
        candidates = problem.candidates("format")
        beyond = problem.candidates("beyond-format")
        formats: tuple[Format, ...] = (*candidates, *beyond)
        if run_lengths:
            _check_codecs(formats, problem)
        pairs = [(i, form.heeded(outer) if run_lengths else None) for outer in OUTER for i, form in enumerate(formats)]
        distinct = list(dict.fromkeys(pairs))
        asked = tuple((formats[i], outer) for i, outer in distinct)
        row = np.array([distinct.index(pair) for pair in pairs], dtype=np.int64).reshape(len(OUTER), -1)
        linked = np.array([_links(*asked[i]) or (run_lengths and asked[i][0].offsets) for i in row[0]], dtype=bool)
        kinds = [(f.compressed, f.compressed and f.padded, f.compressed or f.below_compressed) for f in formats]
        compressed, padded, anywhere = np.array(kinds, dtype=bool).reshape(-1, 3).T
        block = np.array([float(f.block) if f.compressed else 1.0 for f in formats])
        more = [(f.offsets, f.needs_ends and run_lengths, f.flattened) for f in formats]
        offsets, needs_ends, flattened = np.array(more, dtype=bool).reshape(-1, 3).T
        last = len(candidates) if beyond else 0
        flags = compressed, padded, anywhere, block, linked, offsets, needs_ends, flattened
        return cls(formats, last, *flags, asked, row, run_lengths)

    @cached_property
    def single(self) -> Array:
        """(F,) bool: positions are stored or listed together, which takes a rank of one loop."""
        group = np.array([f.group > 1 for f in self.formats], dtype=bool)
        return (self.block > 1) | self.padded | group

    @cached_property
    def own_offsets(self) -> Array:
        """(F,) bool: the payload is that of `RankList.pointed`, whatever its rank is."""
        return self.offsets & self.every_fiber

    @cached_property
    def of_one_word(self) -> Array:
        """(F,) bool: a tile of one word has metadata as well."""
        return np.array([f.of_one_word for f in self.formats], dtype=bool)

    @cached_property
    def group(self) -> Array:
        """(F,) positions that a code lists together."""
        return np.array([float(f.group) for f in self.formats]) if self.every_fiber else np.ones(len(self.formats))

    @cached_property
    def pads(self) -> bool:
        """Whether any format stores more than nonzeros."""
        return bool((self.block > 1).any() or self.padded.any() or (self.anywhere & ~self.compressed).any())

    def chosen(self, slots: Array, place: Array, design: Rows) -> Array:
        """Index of the format of ranks by their `place` from the innermost one; `slots` is (R, B)."""
        width = len(slots)
        found = slots[np.clip(width - 1 - place, 0, width - 1), design].astype(np.int64)
        return np.where(place < width, found, self.beyond)

    def check(self, slots: Array, ranks: RankCounts) -> tuple[PerDesign, PerDesign]:
        """Slots (R, B), number of ranks -> (compresses the tensor, breaks the order), bool.

        The last ones are in use. An uncompressed rank below a compressed one breaks the order, unless its format
        allows it, and so does one that needs the ends of its fibers told below one without offsets. Ranks of several
        loops have neither blocks nor padding, and none reaches beyond a level's tile.
        """
        width, count = len(slots), ranks.count
        packed, anywhere = (flags[slots] for flags in (self.compressed, self.anywhere))
        any_packed = np.zeros(count.shape, dtype=bool)
        broken = np.zeros(count.shape, dtype=bool)
        told = (count > width) & self.offsets[self.beyond] if self.needs_ends.any() else broken
        flattens = bool(self.flattened.any())
        if flattens:
            broken |= (count > width) & self.flattened[self.beyond]
        several = np.zeros(count.shape, dtype=bool)
        for slot in range(width):
            used = count >= width - slot
            if flattens:
                flat = used & self.flattened[slots[slot]]
                assert ranks.tiles is not None
                broken |= flat & (ranks.tiles == width - 1 - slot).any(axis=0)
            if flattens or ranks.several is not None:
                if slot == width - 1 and ranks.several is not None:
                    several = several | ranks.several
                broken |= used & several & self.single[slots[slot]]
            if flattens:
                several, used = flat, used & ~flat
            now = packed[slot] & used
            broken |= any_packed & used & ~anywhere[slot]
            if self.needs_ends.any():
                broken |= self.needs_ends[slots[slot]] & used & ~told
                told = self.offsets[slots[slot]] & used
            any_packed |= now
        return any_packed, broken


OUTER = (Outer(), Outer(filled=True), Outer(ends=True), Outer(ends=True, filled=True))
"""What the rank above may have told: 1 for `filled`, and 2 for `ends`."""


def _check_codecs(formats: Iterable[Format], problem: Problem) -> None:
    for form in formats:
        if not form.decodable:
            raise SpecError.at(
                problem.files.get("space", "space"),
                "formats",
                f"format '{form.name}' has no codec, so nobody can read what it stores: expected `lists` in its TOML, or "
                f"`encode` and `decode` in its class ({type(form).__name__}); a cost model without the option "
                "'run-lengths', such as 'timeloop', takes it as it is",
            )


def _links(form: Format, outer: Outer | None) -> bool:
    """Whether it has payload with bits."""
    units = units_of(form, Fiber.of(np.ones(1), 4.0, np.full(1, 2.0), 16.0), outer)
    return bool(np.max(np.asarray(units.payload) * np.asarray(units.payload_bits)) > 0)


@attrs.frozen(eq=False)
class RankList:
    """The ranks of one tensor, flat, for the designs that compress it; N entries, innermost ranks first."""

    rows: Rows
    """Designs that compress the tensor."""
    design: Array
    """(N,) batch row."""
    place: Array
    """(N,) position from the innermost rank, 0 first."""
    format: Array
    """(N,) index into `FormatTables.asked` .."""
    pointed: Array
    """.. and (N,) bool: with an offset for every position and for the end of every fiber as its payload. They tell the fibers
    of the rank below where they end."""
    length: Array
    """(N,) L, positions of a fiber."""
    longest: Array
    """(N,) expected non-empty positions of the fullest fiber of the tensor, where the format is padded."""
    group: list[Array]
    """The same as `below` of a group of positions; empty if no code has groups."""
    box: list[Array]
    """(N,) words of the rank's tile, or its words per tensor rank where the shape matters."""
    below: list[Array]
    """(N,) the same of the part that one position covers."""
    positions: Array
    """(N,) product of the fiber lengths of this rank and all ranks inside."""
    ends: list[int]
    """Per storage level, how many leading entries belong to its tile."""
    counts: Array
    """(S, B) ranks in the tile of each level."""


def list_ranks(
    nest: Nest, t: int, rows: Rows, slots: Array, tables: FormatTables, table: TensorTables, decoded: PerTensor | None,
    offsets: PerTile | None = None,
) -> RankList:  # fmt: skip
    """6.1 for tensor t in the designs `rows`; `slots` is (R, B), `offsets` as of
    `pointer_ranks`. Loops are (P, n) by position, the innermost first.
    """
    lay = nest.layout
    dims, bounds = nest.loops(lay.inwards, rows)
    moves, ends, formats = rank_ends(nest, t, rows, slots, tables, decoded, dims, bounds)
    bounds = np.where(moves, bounds, 1.0)
    rank = np.cumsum(ends, axis=0, dtype=np.int16)  # ranks up to and including each loop
    entries = np.nonzero(ends)
    length, positions, box, below = _fibers(nest, t, dims, bounds, moves, ends, entries, table.by_shape)
    place, design, chosen = rank[entries].astype(np.int64) - 1, rows[entries[1]], formats[entries]
    if (tables.block > 1).any():  # the positions of such a rank are its blocks
        block = np.minimum(tables.block[chosen], length)
        share = (block - 1.0) / (length - 1.0)
        below = [np.floor(part + (whole - part) * share + 0.5) for part, whole in zip(below, box, strict=True)]
        length = np.ceil(length / block)
    group: list[Array] = []
    if (tables.group > 1).any():
        share = (np.minimum(tables.group[chosen], length) - 1.0) / np.maximum(length - 1.0, 1.0)
        group = [np.floor(part + (whole - part) * share + 0.5) for part, whole in zip(below, box, strict=True)]
    longest = length
    if tables.padded.any():
        mine = np.flatnonzero(tables.padded[chosen])
        fibers = nest.volume(t, lay.sizes[:, None]) / np.prod(box, axis=0)
        most = table.longest([part[mine] for part in box], [part[mine] for part in below], fibers[mine])
        longest = length.copy()
        longest[mine] = np.minimum(most, length[mine])
    if tables.pads or tables.every_fiber or offsets is not None:
        packed = _packed_at(tables.compressed[chosen], entries, dims.shape)
    if tables.pads or tables.every_fiber:
        alone = [np.full(part.shape, np.inf) for part in box] if tables.every_fiber else box
        box = _kept_together(packed, entries, alone, below)
    counts = np.zeros((lay.S, nest.batch), dtype=np.int64)
    prefixes, loops = [0] * lay.S, 0
    for s in range(lay.S - 1, -1, -1):
        loops += lay.D * (1 if lay.spatial[s] is None else 2)
        counts[s, rows] = rank[loops - 1].astype(np.int64)
        prefixes[s] = int(rank[loops - 1].sum())
    for s in range(lay.S):  # after the loop: of where it resides, a level has all ranks
        counts[s], prefixes[s] = counts[lay.spans(t, s)], prefixes[lay.spans(t, s)]
    if offsets is not None:
        pointed = _pointed(lay, t, offsets[t], counts, place, design)
        pointed &= (packed.min(axis=0)[entries[1]] < np.arange(len(place))) & ~tables.linked[chosen]
    else:
        pointed = np.zeros(len(place), dtype=bool)
    told = _told(tables, entries, dims.shape, chosen, pointed) if tables.every_fiber else 0
    form, pointed = tables.row[told, chosen], pointed | tables.own_offsets[chosen]
    return RankList(rows, design, place, form, pointed, length, longest, group, box, below, positions, prefixes, counts)


def _told(
    tables: FormatTables, entries: tuple[Array, ...], shape: tuple[int, ...], chosen: Array, pointed: Array
) -> Array:
    """(N,) position in `OUTER`: what the rank above, wherever it is stored, has told."""
    count = len(chosen)
    numbers = np.full((shape[0] + 1, shape[1]), count)
    numbers[entries] = np.arange(count)
    outwards = np.minimum.accumulate(numbers[::-1], axis=0)[::-1]
    above = outwards[entries[0] + 1, entries[1]]
    tells = tables.compressed & (tables.block == 1) & ~tables.padded
    found = tells[chosen] + 2 * (tables.offsets[chosen] | pointed)
    return np.append(found, 0)[above]


def _pointed(lay: Layout, t: int, offsets: PerLevel, counts: Array, place: Array, design: Rows) -> Array:
    """(N,) bool: the rank is the innermost of some level's tile that its child's tile does not have."""
    found = np.zeros(len(place), dtype=bool)
    for s in range(lay.S):
        child = lay.child(t, s)
        if child is not None and lay.stored[t, s]:
            inside = counts[child, design]
            found |= offsets[s, design] & (place == inside) & (inside < counts[s, design])
    return found


def _packed_at(packed: Array, entries: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """(P, n) number of the entry of a compressed rank by loop and design, the innermost loop first; elsewhere N."""
    found = np.full(shape, len(packed), dtype=np.int32)
    found[entries] = np.where(packed, np.arange(len(packed)), len(packed))
    return found


def _kept_together(packed: Array, entries: tuple[Array, ...], box: list[Array], below: list[Array]) -> list[Array]:
    """The part (N,) that must hold something for a fiber to be there: what the next compressed rank outside keeps
    together (6.5), or `box` if there is none; `packed` as of `_packed_at`."""
    count = len(entries[0])
    outwards = np.minimum.accumulate(packed[::-1], axis=0)[::-1]
    next_out = np.append(outwards[1:], np.full((1, packed.shape[1]), count, dtype=np.int32), axis=0)[entries]
    some = np.flatnonzero(next_out < count)
    kept = [part.copy() for part in box]
    for part, inner in zip(kept, below, strict=True):
        part[some] = inner[next_out[some]]
    return kept


def _fibers(
    nest: Nest,
    t: int,
    dims: Array,
    bounds: Array,
    moves: Array,
    ends: Array,
    entries: tuple[Array, ...],
    by_shape: bool,
) -> tuple[Array, Array, list[Array], list[Array]]:
    """L, positions, box and box below (`RankList`) of the ranks whose outermost loops, of (P, n), are at `entries`; bounds
    of loops that do not move the tensor are 1."""
    lay = nest.layout
    position, column = entries
    before = position
    single = np.array_equal(moves, ends)
    if not single:  # where the rank begins: behind the one inside
        begins = np.maximum.accumulate(np.where(ends, np.arange(1, len(ends) + 1)[:, None], 0))
        before = np.append(np.zeros_like(begins[:1]), begins, axis=0)[entries]
    if not (lay.windowed[t] or lay.holes[t] or by_shape):  # words are products of bounds
        cumulative = np.cumprod(bounds, axis=0)
        words = cumulative[entries]
        if single:
            return bounds[entries], words, [words], [words / bounds[entries]]
        inner = np.append(np.ones((1, bounds.shape[1])), cumulative, axis=0)[before, column]
        return words / inner, words, [words], [inner]
    widths: list[Array] = []
    coefficient = np.ones(lay.D)
    length: Array = np.ones(len(position))
    for rank in lay.ranks[t]:
        width, own = np.ones(bounds.shape), np.ones(len(position))
        for dim, c in rank:
            coefficient[dim] = c
            extent = np.cumprod(np.where(dims == dim, bounds, 1.0), axis=0)
            width = width + c * (extent - 1.0)
            if not single:
                inner = np.append(np.ones((1, bounds.shape[1])), extent, axis=0)[before, column]
                own = own + c * (extent[entries] / inner - 1.0)
        widths.append(width)
        length = length * own
    lengths = (bounds - 1.0) * coefficient[dims] + 1.0
    if not single:
        lengths = np.ones(bounds.shape)
        lengths[entries] = length
    box, below = [], []
    if not by_shape:
        widths = [np.multiply.reduce(np.stack(widths))]
    for part in widths:
        from_one = np.concatenate([np.ones((1, part.shape[1])), part])  # below the innermost loop is one word
        box.append(from_one[position + 1, column])
        below.append(from_one[before, column])
    return lengths[entries], np.cumprod(lengths, axis=0)[entries], box, below
