"""Counts that remain after compression, skipping and gating, level by level (6.4, 7.2)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerLevel, PerTile

from .actions import GATE, NONE, SKIP
from .charges.drains import OutputCounts, OutputVisits
from .computes import Computes, computes_of, less
from .layout import Layout
from .metadata import Metadata, MetadataAccesses, accesses
from .nest import DesignChoices, Nest
from .prepared import ModelTables
from .removal import Removal, Removals
from .stored import StoredTiles
from .traffic import Traffic


@attrs.frozen(eq=False)
class Counts:
    """Accesses of one instance, (T, S, B), and computes of the chip, that some filters leave."""

    active: PerTile
    """(T, S, B) instances that are expected in use."""
    read: PerTile
    fill: PerTile
    update: PerTile
    gone_read: PerTile
    """GatedEnergy or skipped, as `kind` says."""
    gone_update: PerTile
    kind: PerTile
    """int8: none, gate or skip."""
    leaving: PerLevel | None
    """(S, B) of the output's reads, those for its parent; None: not counted."""
    metadata: MetadataAccesses
    bits: Mapping[str, PerTile]
    """Metadata bits by action, such as "read" or "skipped_update"."""
    computes: Computes

    def gone(self, kind: int) -> tuple[PerTile, PerTile]:
        """Reads and updates that are gated, or skipped."""
        mask = self.kind == kind
        return self.gone_read * mask, self.gone_update * mask


def counts_of(
    known: ModelTables, nest: Nest, choices: DesignChoices, traffic: Traffic, stored: StoredTiles, removals: Removals,
    removal: Removal, metadata: Metadata,
) -> Counts:  # fmt: skip
    """6.4, 7.2 and 7.3. `removal`: all filters, or those that save time."""
    lay, options, lanes = known.layout, known.options, removals.lanes
    emptiness = 1.0 - stored.density
    dense = traffic.reads, traffic.fills, traffic.updates
    words = _Words(*(less(part, emptiness) for part in dense))
    reads, fills, updates = (accesses(metadata, nest, part) for part in dense)
    ranks = _Ranks(reads, fills, updates)
    single = single_words(nest) if options.pointers else None
    _filter(lay, words, ranks, metadata, single, removal, known.quirks)
    if lanes is not None:
        for c, passes in lanes.passes.items():
            for t in lay.operands:
                if t != c:
                    here = words.read[t, lay.innermost(t)]
                    here[:] = less(here, 1.0 - passes)
    dealt = {} if lanes is None else lanes.empty
    computes = computes_of(known, nest.computes, choices.inside(lay), choices.genes, stored.granules, removal, dealt)
    leaving = None
    if options.drains or options.sums:
        mine = [part[lay.output] for part in (words.read, words.fill, words.update)]
        given = nest, traffic, stored, choices.packed, removal, computes, options.drains, options.sums
        output = OutputVisits(*given).counts(*mine)
        leaving = output.leaving if options.drains else None
        _replace_output(lay.output, words, ranks, metadata, traffic, output)
    if options.filter_metadata:
        _read_in_full(known, choices, words, ranks, metadata)
    of_ranks = MetadataAccesses(metadata, ranks.read, ranks.fill, ranks.update, ranks.gone_read, ranks.gone_update)
    used = nest.instances_used[None, : lay.S] * (1.0 if lanes is None else lanes.mean)
    return Counts(
        np.where(lay.handled[:, :, None], used, 0.0) * stored.occupied, words.read, words.fill, words.update,
        words.gone_read, words.gone_update, removal.kind, leaving, of_ranks,
        of_ranks.bits(removal.kind == GATE, removal.kind == SKIP), computes,
    )  # fmt: skip


@attrs.define(eq=False)
class _Words:
    """The arrays of words that `counts_of` works on until they are a record, (T, S, B)."""

    read: PerTile
    fill: PerTile
    update: PerTile
    gone_read: PerTile = attrs.field(init=False)
    gone_update: PerTile = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.gone_read, self.gone_update = np.zeros(self.read.shape), np.zeros(self.read.shape)


@attrs.define(eq=False)
class _Ranks:
    """The same of ranks, as in `MetadataAccesses`."""

    read: list[Array]
    fill: list[Array]
    update: list[Array]
    gone_read: list[Array] = attrs.field(init=False)
    gone_update: list[Array] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.gone_read, self.gone_update = ([np.zeros(part.shape) for part in self.read] for _ in range(2))


def _filter(
    lay: Layout, words: _Words, ranks: _Ranks, cells: Metadata, single: PerTile | None, removal: Removal,
    quirks: frozenset[str],
) -> None:  # fmt: skip
    """7.2, from the outermost level inwards."""
    kind, share, read, update = removal.kind, removal.share, words.read, words.update
    rank_counts = cells.rank_counts
    acting = kind != NONE
    own = np.zeros(read.shape)  # what a level removes of what reaches it
    comes, goes = removal.along()  # what the nearest outer level with an action removes of this one
    outer_acts = np.zeros(read.shape, dtype=bool)  # these two for Timeloop's mistakes only
    outer_one_rank = np.zeros(read.shape, dtype=bool)
    acts_above = np.zeros(share[:, 0].shape, dtype=bool)
    one_rank = acts_above
    is_output = (np.arange(lay.T) == lay.output)[:, None]
    for s in range(lay.S):
        here = (slice(None), s)
        outer_acts[here], outer_one_rank[here] = acts_above, one_rank
        for part, lost in ((read, goes), (words.fill, comes), (update, goes)):
            part[here] = less(part[here], lost[here])
        left = 1.0 - goes[here]
        nested = 1.0 - (1.0 - removal.still[here]) / np.where(left > 0.0, left, 1.0)
        if "Q11" not in quirks:
            nested = np.maximum(nested, 0.0)
        nested = np.where(left > 0.0, nested, 0.0)
        own[here] = np.where(acting[here], np.where(acts_above, nested, removal.still[here]), 0.0)
        lost = read[here] * own[here]
        words.gone_read[here] = np.where(is_output, np.ceil(lost), np.floor(lost))
        words.gone_update[here] = np.floor(update[here] * own[here])
        read[here] -= words.gone_read[here]
        update[here] -= words.gone_update[here]
        acts_above = acts_above | acting[here]
        one_rank = np.where(acting[here], rank_counts[here] == 1, one_rank)
    if len(cells.cell):
        _reduce_metadata(ranks, cells, comes, goes, outer_acts, outer_one_rank, acting, quirks)
        sent = rank_counts if "Q17" in quirks else np.maximum(rank_counts, 1)
        _split_metadata(lay, ranks, cells, own if single is None else np.where(single, 0.0, own), sent)


def single_words(nest: Nest) -> PerTile:
    """(T, S, B) bool: the level hands on tiles of one word of an operand to another level. Which of them are left out is known
    to who reads the metadata of all (docs/model.md, `pointers`)."""
    lay = nest.layout
    found = np.zeros((lay.T, lay.S, nest.batch), dtype=bool)
    for t in lay.operands:
        for s in range(lay.S):
            child = lay.child(t, s)
            if child is not None:
                found[t, s] = nest.tile_words[t, child] == 1.0
    return found


def _reduce_metadata(
    ranks: _Ranks, cells: Metadata, comes: PerTile, goes: PerTile, outer_acts: PerTile, one_rank: PerTile,
    acting: PerTile, quirks: frozenset[str],
) -> None:  # fmt: skip
    """What an outer level's action leaves of an inner level's metadata: `comes` and `goes` as in `Removal.along`."""
    cell = cells.cell
    for parts, outer in (
        ((*ranks.read, *(() if "Q7" in quirks else ranks.update)), goes),
        (ranks.fill, comes),
    ):
        lost = outer.reshape(-1)[cell]
        if "Q7" in quirks:  # only the innermost rank, and only where the acting level has exactly one rank
            lost = np.where((cells.place == 0) & one_rank.reshape(-1)[cell], lost, 0.0)
        for x in parts:
            x[:] = less(x, lost)
    if "Q8" in quirks:
        # an action below another one: Timeloop reports the updates in place of the reads
        replaced = (acting & outer_acts).reshape(-1)[cell]
        pairs = zip(ranks.read, ranks.update, strict=True)
        ranks.read = [np.where(replaced, update, read) for read, update in pairs]


def _split_metadata(lay: Layout, ranks: _Ranks, cells: Metadata, own: PerTile, rank_counts: PerTile) -> None:
    """The ranks that the child has (the innermost ones; all ranks if there is no child) are gated or skipped as well; a
    tile that is decoded on its way has one."""
    below = np.full(rank_counts.shape, 1 << 40, dtype=np.int64)
    for t in range(lay.T):
        for s in range(lay.S):
            child = lay.child(t, s)
            if child is not None:
                below[t, s] = rank_counts[t, child]
    share = np.where(cells.place < below.reshape(-1)[cells.cell], own.reshape(-1)[cells.cell], 0.0)
    ranks.gone_read, ranks.gone_update = ([np.floor(x * share) for x in part] for part in (ranks.read, ranks.update))
    for x, gone in zip((*ranks.read, *ranks.update), (*ranks.gone_read, *ranks.gone_update), strict=True):
        x -= gone


def _replace_output(
    t: int,
    words: _Words,
    ranks: _Ranks,
    cells: Metadata,
    traffic: Traffic,
    output: OutputCounts,
) -> None:
    """The counts of the output with `drains`; metadata go with their words."""
    dense = traffic.reads[t], traffic.updates[t]
    for gone, whole, left in zip(
        (words.gone_read, words.gone_update), dense, (output.read, output.update), strict=True
    ):
        gone[t] = np.minimum(gone[t], np.maximum(whole - left, 0.0))
    cell = cells.cell - t * output.read.size
    mine = np.flatnonzero((cell >= 0) & (cell < output.read.size))
    for old, entries, new in (
        (words.read[t], ranks.read, output.read), (words.fill[t], ranks.fill, output.fill),
        (words.update[t], ranks.update, output.update),
    ):  # fmt: skip
        changed = (new / np.where(old > 0.0, old, 1.0)).reshape(-1)[cell[mine]]
        for part in entries:
            part[mine] *= changed
        old[:] = new


def _read_in_full(known: ModelTables, choices: DesignChoices, words: _Words, ranks: _Ranks, cells: Metadata) -> None:
    """No filter of a leader at the level at which it leads holds back what the filter looks at: its metadata, or its words
    where it has none (docs/model.md, `filter-metadata`)."""
    leads = led(known, choices)
    if not leads.any():
        return
    plain = leads & ~choices.packed
    if plain.any():
        words.read = words.read + words.gone_read * plain
        words.gone_read = np.where(plain, 0.0, words.gone_read)
    mine = leads.reshape(-1)[cells.cell]
    for read, gone in zip(ranks.read, ranks.gone_read, strict=True):
        read[mine] += gone[mine]
        gone[mine] = 0.0


def led(known: ModelTables, choices: DesignChoices, least: int = GATE) -> PerTile:
    """(T, S, B) bool: the tensor leads a filter at the level, of kind `least` or a stronger one."""
    lay = known.layout
    found = np.zeros((lay.T, lay.S, choices.genes.shape[-1]), dtype=bool)
    for action in known.places.actions:
        if action.place.storage is None:
            continue
        acts = action.kind[choices.genes[action.gene]] >= least
        for leader in action.leaders:
            found[leader, lay.holder(leader, action.place.storage)] |= acts
    return found


def temporal_reductions(layout: Layout, traffic: Traffic, update: PerTile) -> PerTile:
    """Additions to partial sums held at a level: the dense ones, scaled with the updates that remain."""
    t = layout.output
    found = np.zeros_like(traffic.reads)
    dense = traffic.updates[t]
    scaled = np.ceil(traffic.reads[t] * update[t] / np.where(dense > 0.0, dense, 1.0))
    found[t] = np.where(dense > 0.0, scaled, traffic.reads[t])
    return found
