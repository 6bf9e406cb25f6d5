"""The metadata of every rank at every level (6.2, 6.3): one flat list of all tensors and levels, so that a batch costs a
fixed number of array operations."""

from __future__ import annotations

import math

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from .nest import Nest
from .occupancy import Ranks, RankUnits, TensorTables
from .ranks import RankList
from .traffic import Traffic


@attrs.define(eq=False)
class Metadata:
    """Flat entries (N,), by tensor, then level; accesses per instance as [metadata, payload]."""

    shape: tuple[int, int, int]
    """(T, S, C)"""
    cell: Array
    """(N,) index into (T, S, C), flat."""
    place: Array
    """(N,) position from the innermost rank, 0 first."""
    metadata_bits: Array
    payload_bits: Array
    largest: list[Array]
    """Units of the fullest tile."""
    read: list[Array]
    fill: list[Array]
    update: list[Array]
    gone: Rows = attrs.field(factory=lambda: np.zeros(0, dtype=np.int64))
    """(n,) entries of which accesses are gated or skipped, as the action of the cell says .."""
    gone_read: list[Array] = attrs.field(factory=lambda: [np.zeros(0), np.zeros(0)])
    """.. and how many (n,)."""
    gone_update: list[Array] = attrs.field(factory=lambda: [np.zeros(0), np.zeros(0)])
    alike: tuple[Rows, Array] | None = None
    """For the last n columns, (n,) the column, and (T, S, n) bool: the cell has the entries of the same cell there, and
    none of its own."""

    def bits(self, counts: list[Array], entries: Rows | slice = slice(None)) -> Array:
        """(T, S, C) bits of some accesses, those of all entries or of some."""
        weights = counts[0] * self.metadata_bits[entries] + counts[1] * self.payload_bits[entries]
        found = np.bincount(self.cell[entries], weights, math.prod(self.shape)).reshape(self.shape)
        if self.alike is not None:
            column, same = self.alike
            last = found[..., -len(column) :]
            last[:] = np.where(same, np.take(found, column, axis=-1), last)
        return found

    def twice(self, designs: Rows, same: Array) -> Metadata:
        """The accesses of B designs, and once more those of the n `designs`, but for cells that are the `same`, (T, S, n)."""
        batch, count = self.shape[-1], len(designs)
        again, further = np.zeros(self.shape, dtype=bool), np.zeros(batch, dtype=np.int64)
        again[..., designs] = ~same
        further[designs] = np.arange(count) + batch
        more = np.flatnonzero(again.reshape(-1)[self.cell])
        tile = self.cell // batch
        design = self.cell[more] - tile[more] * batch
        cell = np.concatenate([self.cell + tile * count, tile[more] * (batch + count) + further[design]])

        def both(*parts: Array) -> list[Array]:
            return [np.concatenate([part, part[more]]) for part in parts]

        return Metadata(
            (*self.shape[:2], batch + count), cell, *both(self.place, self.metadata_bits, self.payload_bits), [],
            both(*self.read), both(*self.fill), both(*self.update), alike=(designs, same),
        )  # fmt: skip

    def after(self, other: Metadata) -> Metadata:
        """With the accesses of another one, which begins with these."""
        count, mine = len(self.cell), other.gone < len(self.cell)
        first = {name: [part[:count] for part in getattr(other, name)] for name in ("read", "fill", "update")}
        gone = {name: [part[mine] for part in getattr(other, name)] for name in ("gone_read", "gone_update")}
        return attrs.evolve(self, **first, **gone, gone=other.gone[mine])

    def level(self, t: int, s: int) -> Metadata | None:
        """The entries of one tensor at one level; their cells are then designs, and all entries are listed as gone."""
        batch, count = self.shape[-1], len(self.cell)
        rows = np.flatnonzero(self.cell // batch == t * self.shape[1] + s)
        if not rows.size:
            return None

        def some(parts: list[Array]) -> list[Array]:
            return [part[rows] for part in parts]

        def lost(parts: list[Array]) -> list[Array]:
            found = np.zeros((len(parts), count))
            found[:, self.gone] = parts
            return some(list(found))

        return Metadata(
            (1, 1, batch), self.cell[rows] % batch, self.place[rows], self.metadata_bits[rows], self.payload_bits[rows],
            some(self.largest), some(self.read), some(self.fill), some(self.update), np.arange(len(rows)),
            lost(self.gone_read), lost(self.gone_update),
        )  # fmt: skip


def metadata_of(
    nest: Nest, lists: dict[int, RankList], slots: Array, tables: list[TensorTables], dense: Traffic, detail: bool
) -> Metadata:
    """For every tensor in `lists`, at every level that stores it.

    A compressed tile of one word has one rank without width: it costs nothing, and only `detail` lists it.
    """
    lay = nest.layout
    parts = [_entries(nest, t, ranks, slots[t], tables[t], detail) for t, ranks in lists.items()]
    none = [np.zeros(0, dtype=np.int64)] * 2 + [np.zeros(0)] * len(RankUnits._fields)
    cell, place, *columns = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else none
    units = RankUnits(*columns)
    words = nest.tile_words[:, : lay.S].reshape(-1)[cell]

    def accesses(count: Array) -> list[Array]:
        ratio = count.reshape(-1)[cell] / words
        return [np.ceil(units.metadata * ratio), np.ceil(units.payload * ratio)]

    return Metadata(
        (lay.T, lay.S, nest.batch), cell, place, units.metadata_bits, units.payload_bits,
        [units.largest_metadata, units.largest_payload],
        accesses(dense.reads), accesses(dense.fills), accesses(dense.updates),
    )  # fmt: skip


def _entries(
    nest: Nest, t: int, ranks: RankList, slots: Array, tables: TensorTables, detail: bool
) -> tuple[Array, ...]:
    """Cell, place and units of every rank of tensor t at every level that stores it."""
    lay = nest.layout
    levels = [s for s in range(lay.S) if lay.stored[t, s]]
    pick = np.concatenate([np.arange(ranks.ends[s]) for s in levels])
    level = np.concatenate([np.full(ranks.ends[s], s, dtype=np.int64) for s in levels])
    design, place = ranks.design[pick], ranks.place[pick]
    positions, length, chosen = ranks.positions[pick], ranks.length[pick], ranks.format[pick]
    longest = ranks.longest[pick]
    box, below, group = ([b[pick] for b in part] for part in (ranks.box, ranks.below, ranks.group))
    # fibers of a rank in the tile: positions of the ranks further out, within this level
    all_positions = np.ones((lay.S, nest.batch))
    last = ranks.counts[level, design] - 1 == place
    all_positions[level[last], design[last]] = positions[last]
    above = all_positions[level, design] / positions
    if detail:
        lone_level, lone = np.nonzero(ranks.counts[levels][:, ranks.rows] == 0)
        one, none = np.ones(len(lone)), np.zeros(len(lone), dtype=np.int64)
        level = np.concatenate([level, np.asarray(levels)[lone_level]])
        design, place = np.concatenate([design, ranks.rows[lone]]), np.concatenate([place, none])
        positions, length, longest, above = (np.concatenate([x, one]) for x in (positions, length, longest, above))
        box, below, group = ([np.concatenate([x, one]) for x in part] for part in (box, below, group))
        chosen = np.concatenate([chosen, slots[-1, ranks.rows[lone]].astype(np.int64)])
    if tables.by_shape:
        tile = np.stack([np.stack(list(widths))[level, design] for widths in zip(*nest.boxes[t], strict=True)])
    else:
        tile = nest.tile_words[t][level, design][None]
    drops = np.array([lay.parent(t, s) is not None for s in range(lay.S)], dtype=np.float64)[level]
    box = [np.minimum(part, whole) for part, whole in zip(box, tile, strict=True)]
    found = tables.units(
        Ranks(
            tile,
            np.stack(box),
            np.stack(below),
            length,
            above,
            chosen,
            positions,
            drops,
            longest,
            np.stack(group) if group else np.zeros((0, len(above))),
        )
    )
    if detail and lone.size:
        for bits in (found.metadata_bits, found.payload_bits):
            bits[len(design) - len(lone) :] = 0.0
    inner = place > 0  # the payload of the innermost rank is the data
    found = found._replace(payload=found.payload * inner, largest_payload=found.largest_payload * inner)
    return ((t * lay.S + level) * nest.batch + design, place, *found)
