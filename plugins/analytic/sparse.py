"""Counts that remain after compression, skipping and gating, level by level and at the compute unit (6.4, 7.2, 7.3)."""

from __future__ import annotations

import attrs
import numpy as np

from .actions import GATE, NONE, SKIP, Removal
from .layout import Layout
from .ranks import Metadata
from .traffic import Traffic

Array = np.ndarray


@attrs.define(eq=False)
class Counts:
    """Accesses of one instance, each (T, S, B); `gone` are gated or skipped as the action's `kind` says."""

    read: Array
    fill: Array
    update: Array
    gone_read: Array
    gone_update: Array
    kind: Array
    """(T, S, B) int8: none, gate or skip."""


@attrs.define(eq=False)
class Compute:
    actual: Array
    gated: Array
    skipped: Array


def less(count: Array, share: Array) -> Array:
    """What remains of a count, as the evaluator rounds it."""
    return count - np.floor(count * share)


def storage_counts(
    layout: Layout, traffic: Traffic, emptiness: Array, metadata: Metadata, rank_counts: Array, removal: Removal,
    quirks: frozenset[str],
) -> Counts:  # fmt: skip
    """7.2, from the outermost level inwards; reduces `metadata` as it goes.

    `emptiness` (T, S, B) is 1 - density of the tile where the tensor has metadata, else 0; `rank_counts` (T, S, B) the
    ranks that each level's metadata has.
    """
    read, fill = less(traffic.reads, emptiness), less(traffic.fills, emptiness)
    update = less(traffic.updates, emptiness)
    kind, share = removal.kind, removal.share
    acting = kind != NONE
    counts = Counts(read, fill, update, np.zeros_like(read), np.zeros_like(read), kind)
    if not acting.any():
        return counts
    own = np.zeros_like(share)  # what a level removes of what reaches it
    outer = np.zeros_like(share)  # what the nearest outer level with an action removes of this one
    outer_acts = np.zeros_like(acting)
    outer_one_rank = np.zeros_like(acting)
    above = np.zeros_like(share[:, 0])
    acts_above = np.zeros_like(acting[:, 0])
    one_rank = np.zeros_like(acting[:, 0])
    is_output = (np.arange(layout.T) == layout.output)[:, None]
    for s in range(layout.S):
        outer[:, s], outer_acts[:, s], outer_one_rank[:, s] = above, acts_above, one_rank
        for part in (read, fill, update):
            part[:, s] = less(part[:, s], above)
        if not acting[:, s].any():
            continue
        left = 1.0 - above
        nested = 1.0 - (1.0 - share[:, s]) / np.where(left > 0.0, left, 1.0)
        if "Q11" not in quirks:
            nested = np.maximum(nested, 0.0)
        nested = np.where(left > 0.0, nested, 0.0)
        own[:, s] = np.where(acting[:, s], np.where(acts_above, nested, share[:, s]), 0.0)
        lost = read[:, s] * own[:, s]
        counts.gone_read[:, s] = np.where(is_output, np.ceil(lost), np.floor(lost))
        counts.gone_update[:, s] = np.floor(update[:, s] * own[:, s])
        read[:, s] -= counts.gone_read[:, s]
        update[:, s] -= counts.gone_update[:, s]
        above = np.where(acting[:, s], share[:, s], above)
        acts_above = acts_above | acting[:, s]
        one_rank = np.where(acting[:, s], rank_counts[:, s] == 1, one_rank)
    if metadata.cell.size:
        _reduce_metadata(metadata, outer, outer_acts, outer_one_rank, acting, quirks)
        _split_metadata(layout, metadata, own, rank_counts)
    return counts


def _reduce_metadata(
    metadata: Metadata, outer: Array, outer_acts: Array, one_rank: Array, acting: Array, quirks: frozenset[str]
) -> None:
    """What an outer level's action leaves of an inner level's metadata."""
    cell = metadata.cell
    lost = outer.reshape(-1)[cell]
    if "Q7" in quirks:
        # only the innermost rank, and only where the acting level has exactly one rank
        lost = np.where((metadata.place == 0) & one_rank.reshape(-1)[cell], lost, 0.0)
    else:
        metadata.update = [less(x, lost) for x in metadata.update]
    metadata.read = [less(x, lost) for x in metadata.read]
    metadata.fill = [less(x, lost) for x in metadata.fill]
    if "Q8" in quirks:
        # an action below another one: the evaluator reports the updates in place of the reads
        replaced = (acting & outer_acts).reshape(-1)[cell]
        pairs = zip(metadata.read, metadata.update, strict=True)
        metadata.read = [np.where(replaced, update, read) for read, update in pairs]


def _split_metadata(layout: Layout, metadata: Metadata, own: Array, rank_counts: Array) -> None:
    """The ranks that the child has (the innermost ones; all ranks if there is no child) are gated or skipped as well."""
    below = np.full_like(rank_counts, np.iinfo(rank_counts.dtype).max)
    for t in range(layout.T):
        for s in range(layout.S):
            child = layout.child(t, s)
            if child is not None:
                below[t, s] = rank_counts[t, child]
    cell = metadata.cell
    share = np.where(metadata.place < below.reshape(-1)[cell], own.reshape(-1)[cell], 0.0)
    metadata.gone_read = [np.floor(x * share) for x in metadata.read]
    metadata.gone_update = [np.floor(x * share) for x in metadata.update]
    metadata.read = [x - gone for x, gone in zip(metadata.read, metadata.gone_read, strict=True)]
    metadata.update = [x - gone for x, gone in zip(metadata.update, metadata.gone_update, strict=True)]


def temporal_reductions(layout: Layout, traffic: Traffic, counts: Counts) -> Array:
    """(T, S, B) additions to partial sums held at a level: the dense ones, scaled with the updates that remain."""
    t = layout.output
    found = np.zeros_like(traffic.reads)
    dense = traffic.updates[t]
    scaled = np.ceil(traffic.reads[t] * counts.update[t] / np.where(dense > 0.0, dense, 1.0))
    found[t] = np.where(dense > 0.0, scaled, traffic.reads[t])
    return found


def compute_counts(
    layout: Layout, total: Array, densities: list[float], packed: Array, removal: Removal, kind: Array, quirks: frozenset[str]
) -> Compute:  # fmt: skip
    """7.3 for two operands. `total` (B,) dense computes, `packed` (T, B) tensors with metadata, `kind` (B,) of the unit."""
    batch = total.shape[0]
    left = total
    caught: dict[int, Array] = {}
    for t in layout.operands:
        if removal.kind[t].any():
            # the share of the innermost level with an action decides which computes remain
            caught[t] = np.zeros(batch)
            for s in range(layout.S):
                caught[t] = np.where(removal.kind[t, s] != NONE, removal.share[t, s], caught[t])
            left = less(left, caught[t])
    nonzero, zero, absent = [], [], []
    for position, t in enumerate(layout.operands):
        density = np.floor(1e6 * densities[t] + 0.5) / 1e6
        others = [u for i, u in enumerate(layout.operands) if i != position]
        present = np.full(batch, density)
        for u in others:
            if u in caught:
                kept = 1.0 - np.floor(1e6 * caught[u] + 0.5) / 1e6
                present = np.where(kept > 0.0, present / np.where(kept > 0.0, kept, 1.0), 0.0)
        present = np.clip(present, 0.0, 1.0)
        rest = 1.0 - present
        nonzero.append(present)
        zero.append(np.where(packed[t], 0.0, rest))
        absent.append(np.where(packed[t], rest, 0.0))
    (np_, nq), (zp, zq), (ap, aq) = nonzero, zero, absent
    one_absent = left * (np_ * aq + ap * nq) + left * (zp * aq + ap * zq)
    some_zero = left * (np_ * zq + zp * nq) + left * (zp * zq)
    vanish = np.floor(left * (ap * aq))
    skipped = np.where(kind == SKIP, np.floor(one_absent), 0.0)
    gated = np.where(kind == GATE, np.floor(one_absent + some_zero), 0.0)
    actual = np.trunc(left - skipped - gated - vanish)
    return Compute(actual, gated, skipped)
