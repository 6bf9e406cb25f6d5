"""Compression formats on the loop nest: which loop is which rank, and the metadata of every rank (section 6).

A rank is a loop with a bound above one that moves the tensor. Ranks are listed flat, one entry per (design, rank) of the
designs that compress the tensor, innermost first; the ranks of a level are then a prefix of that list.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from .layout import Layout
from .nest import Nest
from .tables import TensorTables

Array = np.ndarray


@attrs.frozen(eq=False)
class FormatTables:
    """Which slot strings are valid, and which compress, by the candidates' flags (the genome's format slots)."""

    formats: tuple[Any, ...]
    beyond: int
    """Index into `formats` of the format of ranks further out than the last slot."""
    compressed: Array
    """(F,) bool."""

    @classmethod
    def of(cls, problem: Any) -> FormatTables:
        candidates = problem.candidates("format")
        beyond = problem.candidates("beyond-format")
        formats = (*candidates, *beyond)
        return cls(formats, len(candidates) if beyond else 0, np.array([f.compressed for f in formats], dtype=bool))

    def check(self, slots: Array, count: Array) -> tuple[Array, Array]:
        """Slots (R, B), number of ranks (B,) -> (compresses the tensor, breaks the order), each (B,) bool.

        The last `count` slots are in use. An uncompressed rank below a compressed one breaks the order.
        """
        width = len(slots)
        packed = self.compressed[slots]
        any_packed = np.zeros(count.shape, dtype=bool)
        broken = np.zeros(count.shape, dtype=bool)
        for slot in range(width):
            used = count >= width - slot
            now = packed[slot] & used
            broken |= any_packed & used & ~packed[slot]
            any_packed |= now
        return any_packed, broken


def rank_counts(layout: Layout, bounds: Array) -> Array:
    """(T, B) number of ranks of each tensor: loops with a bound above one that move it."""
    busy = (bounds > 1.0).sum(axis=0, dtype=np.int16)  # (D, B)
    return np.stack([busy[layout.relevant[t]].sum(axis=0, dtype=np.int16) for t in range(layout.T)])


@attrs.define(eq=False)
class RankList:
    """The ranks of one tensor, flat, for the designs that compress it; N entries, innermost ranks first."""

    design: Array
    """(N,) batch row."""
    place: Array
    """(N,) position from the innermost rank, 0 first."""
    format: Array
    length: Array
    box: list[Array]
    below: list[Array]
    positions: Array
    """Product of the fiber lengths of this rank and all ranks inside."""
    ends: list[int]
    """Per storage level, how many leading entries belong to its tile."""
    counts: Array
    """(S, B) ranks in the tile of each level."""
    rows: Array
    """Batch rows that compress the tensor."""
    innermost: Array
    """(B,) format of the last slot."""


def list_ranks(nest: Nest, t: int, rows: Array, slots: Array, tables: FormatTables, by_shape: bool) -> RankList:
    """Walks the loops of tensor t from the innermost outwards for the designs `rows`; `slots` is (R, B)."""
    lay = nest.layout
    width = len(slots)
    ranks = lay.ranks[t]
    rank_of = {dim: (r, c) for r, rank in enumerate(ranks) for dim, c in rank}
    rank_index = np.array([rank_of.get(d, (0, 0))[0] for d in range(lay.D)])
    coefficient = np.array([float(rank_of.get(d, (0, 0))[1]) for d in range(lay.D)])
    moves = lay.relevant[t]
    widths = np.ones((max(1, len(ranks)), nest.batch))
    inner = np.ones((lay.D, nest.batch))
    volume = np.ones(nest.batch)
    positions = np.ones(nest.batch)
    place = np.zeros(nest.batch, dtype=np.int64)
    parts: list[tuple[Array, ...]] = []
    ends = [0] * lay.S
    counts = np.zeros((lay.S, nest.batch), dtype=np.int64)
    total = 0
    selected = np.zeros(nest.batch, dtype=bool)
    selected[rows] = True
    for s in range(lay.S - 1, -1, -1):
        for group in (lay.spatial[s], lay.temporal[s]):
            if group is None:
                continue
            for position in range(lay.D - 1, -1, -1):
                dims = nest.order[group, position]
                bounds = nest.loop_bounds[group, position]
                on = np.flatnonzero(selected & (bounds > 1.0) & moves[dims])
                if not on.size:
                    continue
                dim, bound = dims[on].astype(np.intp), bounds[on]
                rank, c = rank_index[dim], coefficient[dim]
                length = (bound - 1.0) * c + 1.0
                below = [w[on] for w in widths] if by_shape else [volume[on]]
                before = inner[dim, on]
                after = before * bound
                inner[dim, on] = after
                old = widths[rank, on]
                new = old + c * (after - before)
                widths[rank, on] = new
                volume[on] = volume[on] / old * new
                positions[on] *= length
                box = [w[on] for w in widths] if by_shape else [volume[on]]
                where = place[on]
                chosen = slots[np.maximum(width - 1 - where, 0), on].astype(np.int64)
                chosen = np.where(where < width, chosen, tables.beyond)
                parts.append((on, where, chosen, length, positions[on], *box, *below))
                place[on] += 1
                total += on.size
        ends[s] = total
        counts[s] = place
    boxes = len(widths) if by_shape else 1
    if parts:
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    else:
        columns = [np.zeros(0, dtype=np.int64)] * 3 + [np.zeros(0)] * (2 + 2 * boxes)
    return RankList(
        design=columns[0], place=columns[1], format=columns[2], length=columns[3], positions=columns[4],
        box=columns[5 : 5 + boxes], below=columns[5 + boxes :], ends=ends, counts=counts, rows=rows,
        innermost=slots[-1].astype(np.int64),
    )  # fmt: skip


@attrs.define(eq=False)
class LevelMetadata:
    """Metadata of one tensor at one level: flat entries (N,) as in `RankList`, counts per instance."""

    design: Array
    place: Array
    """(N,) position from the innermost rank, 0 first."""
    metadata_bits: Array
    payload_bits: Array
    largest: tuple[Array, Array]
    """Units of the largest tile: metadata, payload."""
    read: list[Array]
    fill: list[Array]
    update: list[Array]
    """Accesses, [metadata, payload]; later reduced by skipping and gating."""

    def bits(self, counts: list[Array], batch: int) -> Array:
        """(B,) bits of some accesses."""
        weights = counts[0] * self.metadata_bits + counts[1] * self.payload_bits
        return np.bincount(self.design, weights, batch)


def level_metadata(
    nest: Nest, ranks: RankList, tables: TensorTables, t: int, s: int, drop_empty: bool,
    dense: tuple[Array, Array, Array], detail: bool,
) -> LevelMetadata:  # fmt: skip
    """6.2 and 6.3; `dense` are the algorithmic reads, fills and updates of the level, each (B,).

    A compressed tile of one word has one rank without width: it costs nothing, and only `detail` lists it.
    """
    end = ranks.ends[s]
    design, place = ranks.design[:end], ranks.place[:end]
    tile = [width[design] for width in tables.key(nest.boxes[t][s], nest.tile_words[t, s])]
    # fibers of a rank in the tile: positions of the ranks further out, within this level
    level_positions = np.ones(nest.batch)
    last = ranks.counts[s][design] - 1 == place
    level_positions[design[last]] = ranks.positions[:end][last]
    above = level_positions[design] / ranks.positions[:end]
    entries: list[Any] = [
        tile, [b[:end] for b in ranks.box], [b[:end] for b in ranks.below], ranks.length[:end], above,
        ranks.format[:end].astype(np.float64), ranks.positions[:end],
    ]  # fmt: skip
    scalar = ranks.rows[ranks.counts[s][ranks.rows] == 0] if detail else ranks.rows[:0]
    if scalar.size:
        one = np.ones(scalar.size)
        word = [one for _ in tile]
        more: list[Any] = [word, word, word, one, one, ranks.innermost[scalar].astype(np.float64), one]
        entries = [_joined(a, b) for a, b in zip(entries, more, strict=True)]
        design = np.concatenate([design, scalar])
        place = np.concatenate([place, np.zeros(scalar.size, dtype=np.int64)])
    values = tables.rank_values(*entries, np.full(len(design), float(drop_empty)))
    if scalar.size:
        values[[tables.METADATA_BITS, tables.PAYLOAD_BITS], end:] = 0.0
    has_payload = place > 0  # the payload of the innermost rank is the data
    payload = np.where(has_payload, values[tables.PAYLOAD], 0.0)
    largest_payload = np.where(has_payload, values[tables.LARGEST_PAYLOAD], 0.0)
    words = nest.tile_words[t, s]

    def accesses(count: Array) -> list[Array]:
        if not count.any():
            return [np.zeros(len(design)), np.zeros(len(design))]
        ratio = (count / words)[design]
        return [np.ceil(values[tables.METADATA] * ratio), np.ceil(payload * ratio)]

    return LevelMetadata(
        design=design,
        place=place,
        metadata_bits=values[tables.METADATA_BITS],
        payload_bits=values[tables.PAYLOAD_BITS],
        largest=(values[tables.LARGEST_METADATA], largest_payload),
        read=accesses(dense[0]),
        fill=accesses(dense[1]),
        update=accesses(dense[2]),
    )


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, list):
        return [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    return np.concatenate([first, second])
