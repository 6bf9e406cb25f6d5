"""The metadata of every rank at every level (6.2, 6.3): one flat list of all tensors and levels, so that a batch costs a
fixed number of array operations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerTile

from .actions import NONE
from .nest import DesignChoices, Nest
from .occupancy import Ranks, RankUnits, TensorTables
from .prepared import ModelTables
from .rank_list import RankList, list_ranks
from .ranks import FormatTables
from .removal import Removal


@attrs.frozen(eq=False)
class Metadata:
    """Flat entries (N,), by tensor, then level."""

    shape: tuple[int, int, int]
    """(T, S, B)"""
    rank_counts: PerTile
    """int64: ranks of the tile."""
    cell: Array
    """(N,) index into (T, S, B), flat."""
    place: Array
    """(N,) position from the innermost rank, 0 first."""
    units: RankUnits
    """Units of each rank in one tile, expected and at most, and the bits of one."""

    @property
    def largest_bits(self) -> PerTile:
        """Bits of the fullest tile."""
        return np.ceil(
            bits_of(self.shape, self.cell, self.units, self.units.largest_metadata, self.units.largest_payload)
        )

    @property
    def narrow(self) -> Array:
        """(T, B) bool: the code of some rank cannot be read."""
        return np.bincount(self.cell, self.units.narrow, math.prod(self.shape)).reshape(self.shape).sum(axis=1) > 0.0


def bits_of(shape: tuple[int, ...], cell: Array, units: RankUnits, metadata: Array, payload: Array) -> Array:
    """(T, S, C) bits of so many units of the ranks `cell` (n,)."""
    weights = metadata * units.metadata_bits + payload * units.payload_bits
    return np.bincount(cell, weights, math.prod(shape)).reshape(shape)


def metadata_of(known: ModelTables, nest: Nest, choices: DesignChoices, removal: Removal) -> Metadata:
    """For every tensor that has metadata, at every level that stores it. `removal`: all filters.

    A compressed tile of one word has one rank without width, which costs nothing, unless its format says otherwise.
    """
    lay, packed = known.layout, choices.packed
    offsets = pointer_ranks(nest, removal) if known.options.pointers else None
    rank_counts = packed.astype(np.int64)
    parts = []
    for t, table in enumerate(known.tables):
        rows = np.flatnonzero(packed[t, 0])
        if not len(rows):
            continue
        ranks = list_ranks(nest, t, rows, choices.slots[t], known.formats, table, choices.decoded, offsets)
        rank_counts[t] = np.maximum(rank_counts[t], ranks.counts * packed[t])
        parts.append(_entries(nest, t, ranks, choices, table, known.formats))
    none = [np.zeros(0, dtype=np.int64)] * 2 + [np.zeros(0)] * len(RankUnits._fields)
    cell, place, *columns = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else none
    return Metadata((lay.T, lay.S, nest.batch), rank_counts, cell, place, RankUnits(*columns))


def pointer_ranks(nest: Nest, removal: Removal) -> PerTile:
    """bool: the innermost rank outside the child's tile has an offset for each position (docs/model.md, `pointers`)."""
    lay = nest.layout
    found = np.zeros((lay.T, lay.S, nest.batch), dtype=bool)
    for t in range(lay.T):
        for s in range(lay.S):
            child = lay.child(t, s)
            if child is None or not lay.stored[t, s]:
                continue
            found[t, s] = removal.kind[t, s] != NONE
            for block in range(s, child):
                bounds = nest.spatial_bounds(block)
                if bounds is not None:
                    found[t, s] |= (bounds[lay.relevant[t]] > 1.0).any(axis=0)
    return found


def _entries(
    nest: Nest,
    t: int,
    ranks: RankList,
    choices: DesignChoices,
    tables: TensorTables,
    formats: FormatTables,
) -> tuple[Array, ...]:
    """Cell, place and units of every rank of tensor t at every level that stores it."""
    lay = nest.layout
    levels = [s for s in range(lay.S) if lay.stored[t, s]]
    pick = np.concatenate([np.arange(ranks.ends[s]) for s in levels])
    level = np.concatenate([np.full(ranks.ends[s], s, dtype=np.int64) for s in levels])
    if choices.decoded is not None:
        mine = choices.packed[t][level, ranks.design[pick]]
        pick, level = pick[mine], level[mine]
    design, place = ranks.design[pick], ranks.place[pick]
    positions, length, chosen = ranks.positions[pick], ranks.length[pick], ranks.format[pick]
    pointed = ranks.pointed[pick]
    longest = ranks.longest[pick]
    box, below, group = ([b[pick] for b in part] for part in (ranks.box, ranks.below, ranks.group))
    # fibers of a rank in the tile: positions of the ranks further out, within this level
    all_positions = np.ones((lay.S, nest.batch))
    last = ranks.counts[level, design] - 1 == place
    all_positions[level[last], design[last]] = positions[last]
    above = all_positions[level, design] / positions
    empty = (ranks.counts[levels] == 0) & choices.packed[t][levels]
    lone_level, lone = np.nonzero(empty[:, ranks.rows])
    one, none = np.ones(len(lone)), np.zeros(len(lone), dtype=np.int64)
    level = np.concatenate([level, np.asarray(levels)[lone_level]])
    design, place = np.concatenate([design, ranks.rows[lone]]), np.concatenate([place, none])
    positions, length, longest, above = (np.concatenate([x, one]) for x in (positions, length, longest, above))
    box, below, group = ([np.concatenate([x, one]) for x in part] for part in (box, below, group))
    last_slot = choices.slots[t][-1, ranks.rows[lone]].astype(np.int64)
    chosen = np.concatenate([chosen, formats.row[0][last_slot]])
    pointed = np.concatenate([pointed, formats.own_offsets[last_slot]])
    if tables.by_shape:
        tile = np.stack([np.stack(list(widths))[level, design] for widths in zip(*nest.boxes[t], strict=True)])
    else:
        tile = nest.tile_words[t][level, design][None]
    drops = np.array([lay.parent(t, s) is not None for s in range(lay.S)], dtype=np.float64)[level]
    box = [np.minimum(part, whole) for part, whole in zip(box, tile, strict=True)]
    shapes, groups = (np.stack(box), np.stack(below)), np.stack(group) if group else np.zeros((0, len(above)))
    asked = Ranks(tile, *shapes, length, above, chosen, positions, drops, longest, groups)
    found = tables.units(asked, pointed)
    for bits in (found.metadata_bits, found.payload_bits):
        bits[len(design) - len(lone) :] *= formats.of_one_word[last_slot]
    inner = place > 0  # the payload of the innermost rank is the data
    found = found._replace(payload=found.payload * inner, largest_payload=found.largest_payload * inner)
    return ((t * lay.S + level) * nest.batch + design, place, *found)


def accesses(metadata: Metadata, nest: Nest, count: PerTile) -> list[Array]:
    """(N,) dense accesses to metadata and to payload, rounded up; `count` (T, S, B) of words."""
    cell, units = metadata.cell, metadata.units
    ratio = count.reshape(-1)[cell] / nest.tile_words[:, : metadata.shape[1]].reshape(-1)[cell]
    return [np.ceil(units.metadata * ratio), np.ceil(units.payload * ratio)]


@attrs.frozen(eq=False)
class MetadataAccesses:
    """Accesses of one instance, as (metadata, payload)."""

    entries: Metadata
    read: Sequence[Array]
    """(N,) each."""
    fill: Sequence[Array]
    update: Sequence[Array]
    gone_read: Sequence[Array]
    """Gated or skipped, as the action of the cell says."""
    gone_update: Sequence[Array]

    def bits(self, gated: PerTile, skipped: PerTile) -> dict[str, PerTile]:
        """(T, S, B) bits by action, such as "read" or "gated_read"; `gated` and `skipped` are bool."""
        of = self.entries
        if not len(of.cell):
            return {}

        def counted(name: str) -> PerTile:
            return bits_of(of.shape, of.cell, of.units, *getattr(self, name))

        found = {name: counted(name) for name in ("read", "fill", "update")}
        masks = {name: mask for name, mask in (("gated", gated), ("skipped", skipped)) if mask.any()}
        for name in ("read", "update") if masks else ():
            lost = counted(f"gone_{name}")
            found |= {f"{prefix}_{name}": lost * mask for prefix, mask in masks.items()}
        return found
