"""Compression formats on the loop nest: which loop is which rank (section 6.1).

A rank is a loop with a bound above one that moves the tensor. Ranks are listed flat, one entry per (design, rank) of the
designs that compress the tensor, innermost first; the ranks of a level are then a prefix of that list.
"""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerLevel, PerTensor, PerTile, Rows

from .layout import Layout
from .nest import Nest
from .occupancy import TensorTables
from .rank_loops import rank_ends
from .ranks import FormatTables


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
    length, positions, box, below = _fibers(nest, t, dims, bounds, ends, entries, table.by_shape)
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
    nest: Nest, t: int, dims: Array, bounds: Array, ends: Array, entries: tuple[Array, ...], by_shape: bool
) -> tuple[Array, Array, list[Array], list[Array]]:
    """L, positions, box and box below (`RankList`) of the ranks whose outermost loops, of (P, n), are at `entries`; bounds
    of loops that do not move the tensor are 1."""
    position, column = entries
    begins = np.maximum.accumulate(np.where(ends, np.arange(1, len(ends) + 1)[:, None], 0))
    before = np.append(np.zeros_like(begins[:1]), begins, axis=0)[entries]  # behind the rank inside
    one, length, widths = np.ones((1, bounds.shape[1])), np.ones(len(position)), list[Array]()
    for rank in nest.layout.ranks[t]:
        width, own = np.ones((len(bounds) + 1, bounds.shape[1])), np.ones(len(position))
        for dim, c in rank:  # below the innermost loop is one word
            extent: Array = np.append(one, np.cumprod(np.where(dims == dim, bounds, 1.0), axis=0), axis=0)
            width = width + c * (extent - 1.0)
            own = own + c * (extent[position + 1, column] / extent[before, column] - 1.0)
        widths.append(width)
        length *= own
    lengths = np.ones(bounds.shape)
    lengths[entries] = length
    widths = widths if by_shape else [np.multiply.reduce(widths)]
    box, below = ([width[at, column] for width in widths] for at in (position + 1, before))
    return length, np.cumprod(lengths, axis=0)[entries], box, below
