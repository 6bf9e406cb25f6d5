"""Counts that remain after compression, skipping and gating, level by level (6.4, 7.2)."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerTile

from .actions import NONE, Removal
from .layout import Layout
from .metadata import Metadata
from .traffic import Traffic


@attrs.define(eq=False)
class Counts:
    """Accesses of one instance; `gone` are gated or skipped as the action's `kind` says."""

    read: PerTile
    fill: PerTile
    update: PerTile
    gone_read: PerTile
    gone_update: PerTile
    kind: PerTile
    """int8: none, gate or skip."""


def less(count: Array, share: Array) -> Array:
    """What remains of a count, as Timeloop rounds it."""
    return count - np.floor(count * share)


def storage_counts(
    layout: Layout, read: PerTile, fill: PerTile, update: PerTile, metadata: Metadata, rank_counts: PerTile,
    removal: Removal, quirks: frozenset[str],
) -> Counts:  # fmt: skip
    """7.2, from the outermost level inwards; reduces the counts, which compression has left, and `metadata` as it goes.

    `rank_counts` are the ranks that each level's metadata has.
    """
    kind, share = removal.kind, removal.share
    acting = kind != NONE
    gone_read, gone_update = np.zeros(read.shape), np.zeros(read.shape)
    if not acting.any():
        return Counts(read, fill, update, gone_read, gone_update, kind)
    own = np.zeros(read.shape)  # what a level removes of what reaches it
    outer = np.zeros(read.shape)  # what the nearest outer level with an action removes of this one
    outer_acts = np.zeros(read.shape, dtype=bool)  # these two for Timeloop's mistakes only
    outer_one_rank = np.zeros(read.shape, dtype=bool)
    above = np.zeros(share[:, 0].shape)
    acts_above = np.zeros(above.shape, dtype=bool)
    one_rank = acts_above
    is_output = (np.arange(layout.T) == layout.output)[:, None]
    for s in range(layout.S):
        here = (slice(None), s)
        if quirks:
            outer_acts[here], outer_one_rank[here] = acts_above, one_rank
        if s:
            outer[here] = above
            for part in (read, fill, update):
                part[here] = less(part[here], above)
        if not acting[here].any():
            continue
        left = 1.0 - above
        nested = 1.0 - (1.0 - share[here]) / np.where(left > 0.0, left, 1.0)
        if "Q11" not in quirks:
            nested = np.maximum(nested, 0.0)
        nested = np.where(left > 0.0, nested, 0.0)
        own[here] = np.where(acting[here], np.where(acts_above, nested, share[here]), 0.0)
        lost = read[here] * own[here]
        gone_read[here] = np.where(is_output, np.ceil(lost), np.floor(lost))
        gone_update[here] = np.floor(update[here] * own[here])
        read[here] -= gone_read[here]
        update[here] -= gone_update[here]
        above = np.where(acting[here], share[here], above)
        acts_above = acts_above | acting[here]
        if quirks:
            one_rank = np.where(acting[here], rank_counts[here] == 1, one_rank)
    if len(metadata.cell):
        _reduce_metadata(metadata, outer, outer_acts, outer_one_rank, acting, quirks)
        _split_metadata(layout, metadata, own, rank_counts)
    return Counts(read, fill, update, gone_read, gone_update, kind)


def _reduce_metadata(
    metadata: Metadata, outer: PerTile, outer_acts: PerTile, one_rank: PerTile, acting: PerTile, quirks: frozenset[str]
) -> None:
    """What an outer level's action leaves of an inner level's metadata."""
    cell = metadata.cell
    some = np.flatnonzero((outer != 0.0).reshape(-1)[cell])
    if "Q7" in quirks:  # only the innermost rank, and only where the acting level has exactly one rank
        some = some[(metadata.place[some] == 0) & one_rank.reshape(-1)[cell[some]]]
    lost = outer.reshape(-1)[cell[some]]
    for x in (*metadata.read, *metadata.fill, *(() if "Q7" in quirks else metadata.update)):
        x[some] = less(x[some], lost)
    if "Q8" in quirks:
        # an action below another one: Timeloop reports the updates in place of the reads
        replaced = (acting & outer_acts).reshape(-1)[cell]
        pairs = zip(metadata.read, metadata.update, strict=True)
        metadata.read = [np.where(replaced, update, read) for read, update in pairs]


def _split_metadata(layout: Layout, metadata: Metadata, own: PerTile, rank_counts: PerTile) -> None:
    """The ranks that the child has (the innermost ones; all ranks if there is no child) are gated or skipped as well."""
    below = np.full(rank_counts.shape, 1 << 40, dtype=np.int64)
    for t in range(layout.T):
        for s in range(layout.S):
            child = layout.child(t, s)
            if child is not None:
                below[t, s] = rank_counts[t, child]
    some = np.flatnonzero((own != 0.0).reshape(-1)[metadata.cell])
    some = some[metadata.place[some] < below.reshape(-1)[metadata.cell[some]]]
    share = own.reshape(-1)[metadata.cell[some]]
    metadata.gone = some
    metadata.gone_read = [np.floor(x[some] * share) for x in metadata.read]
    metadata.gone_update = [np.floor(x[some] * share) for x in metadata.update]
    for x, gone in zip((*metadata.read, *metadata.update), (*metadata.gone_read, *metadata.gone_update), strict=True):
        x[some] -= gone


def temporal_reductions(layout: Layout, traffic: Traffic, counts: Counts) -> PerTile:
    """Additions to partial sums held at a level: the dense ones, scaled with the updates that remain."""
    t = layout.output
    found = np.zeros_like(traffic.reads)
    dense = traffic.updates[t]
    scaled = np.ceil(traffic.reads[t] * counts.update[t] / np.where(dense > 0.0, dense, 1.0))
    found[t] = np.where(dense > 0.0, scaled, traffic.reads[t])
    return found
