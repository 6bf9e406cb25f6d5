"""Counts that remain after compression, skipping and gating, level by level and at the compute unit (6.4, 7.2, 7.3)."""

from __future__ import annotations

import attrs
import numpy as np

from .actions import GATE, NONE, SKIP, Removal
from .layout import Layout
from .ranks import LevelMetadata
from .traffic import Traffic

Array = np.ndarray


@attrs.define(eq=False)
class Counts:
    """Accesses of one tensor at one level, one instance, each (B,); `gone` are gated or skipped as `kind` says."""

    read: Array
    fill: Array
    update: Array
    gone_read: Array
    gone_update: Array
    temporal_reductions: Array
    kind: Array | None
    """(B,) int8; None: no action."""
    metadata: LevelMetadata | None = None
    metadata_gone_read: list[Array] = attrs.field(factory=list)
    metadata_gone_update: list[Array] = attrs.field(factory=list)


@attrs.define(eq=False)
class Compute:
    actual: Array
    gated: Array
    skipped: Array


def less(count: Array, share: Array) -> Array:
    """What remains of a count, as the evaluator rounds it."""
    return count - np.floor(count * share)


def storage_counts(
    layout: Layout,
    t: int,
    traffic: Traffic,
    emptiness: Array,
    metadata: list[LevelMetadata | None],
    rank_counts: Array,
    removal: Removal,
    quirks: frozenset[str],
) -> list[Counts | None]:
    """Per level, outermost first. `emptiness` (S, B) is 1 - density of the tile where the tensor has metadata, else 0;
    `rank_counts` (S, B) the ranks that each level's metadata has."""
    output = t == layout.output
    batch = emptiness.shape[-1]
    found: list[Counts | None] = []
    share_above: Array | None = None  # of the nearest outer level with an action
    acting_above = np.zeros(batch, dtype=bool)
    one_rank_above = np.zeros(batch, dtype=bool)
    for s in range(layout.S):
        if not layout.stored[t, s]:
            found.append(None)
            continue
        # the uncompressed intermediate: what the actual counts start from (6.4)
        read = less(traffic.reads[t, s], emptiness[s])
        fill = less(traffic.fills[t, s], emptiness[s])
        update = less(traffic.updates[t, s], emptiness[s])
        reductions = traffic.reads[t, s].copy() if output else np.zeros(batch)
        kind = removal.kind.get((t, s))
        share = removal.share.get((t, s))
        packed = metadata[s]
        none = np.zeros(batch)
        counts = Counts(read, fill, update, none, none, reductions, kind, packed)
        if share_above is not None:
            counts.read, counts.fill, counts.update = (less(x, share_above) for x in (read, fill, update))
            if packed is not None:
                _reduce_metadata(packed, share_above, one_rank_above, acting_above, kind, quirks)
        if share is not None and kind is not None:
            acting = kind != NONE
            own = np.where(acting, share, 0.0)
            if share_above is not None:
                left = 1.0 - share_above
                nested = 1.0 - (1.0 - share) / np.where(left > 0.0, left, 1.0)
                if "Q11" not in quirks:
                    nested = np.maximum(nested, 0.0)
                nested = np.where(left > 0.0, nested, 0.0)
                own = np.where(acting, np.where(acting_above, nested, share), 0.0)
            gone = np.ceil(counts.read * own) if output else np.floor(counts.read * own)
            counts.read, counts.gone_read = counts.read - gone, gone
            gone = np.floor(counts.update * own)
            counts.update, counts.gone_update = counts.update - gone, gone
            if packed is not None:
                _split_metadata(layout, t, s, counts, packed, own, rank_counts)
            share_above = np.where(acting, share, share_above if share_above is not None else 0.0)
            acting_above = acting_above | acting
            one_rank_above = np.where(acting, rank_counts[s] == 1, one_rank_above)
        if output:
            dense = traffic.updates[t, s]
            scaled = np.ceil(reductions * counts.update / np.where(dense > 0.0, dense, 1.0))
            counts.temporal_reductions = np.where(dense > 0.0, scaled, reductions)
        found.append(counts)
    return found


def _reduce_metadata(
    packed: LevelMetadata, share: Array, one_rank: Array, acting: Array, kind: Array | None, quirks: frozenset[str]
) -> None:
    """What an outer level's action leaves of an inner level's metadata."""
    lost = share[packed.design]
    if "Q7" in quirks:
        # only the innermost rank, and only where the acting level has exactly one rank
        lost = np.where((packed.place == 0) & one_rank[packed.design], lost, 0.0)
        packed.read = [less(x, lost) for x in packed.read]
        packed.fill = [less(x, lost) for x in packed.fill]
    else:
        packed.read = [less(x, lost) for x in packed.read]
        packed.fill = [less(x, lost) for x in packed.fill]
        packed.update = [less(x, lost) for x in packed.update]
    if "Q8" in quirks and kind is not None:
        # an action below another one: the evaluator reports the updates in place of the reads
        replaced = ((kind != NONE) & acting)[packed.design]
        packed.read = [
            np.where(replaced, update, read) for read, update in zip(packed.read, packed.update, strict=True)
        ]


def _split_metadata(
    layout: Layout, t: int, s: int, counts: Counts, packed: LevelMetadata, own: Array, rank_counts: Array
) -> None:
    """The ranks that the child has (the innermost ones) are gated or skipped with the data."""
    child = layout.child(t, s)
    if child is None:
        share = own[packed.design]
    else:
        share = np.where(packed.place < rank_counts[child][packed.design], own[packed.design], 0.0)
    counts.metadata_gone_read = [np.floor(x * share) for x in packed.read]
    counts.metadata_gone_update = [np.floor(x * share) for x in packed.update]
    packed.read = [x - gone for x, gone in zip(packed.read, counts.metadata_gone_read, strict=True)]
    packed.update = [x - gone for x, gone in zip(packed.update, counts.metadata_gone_update, strict=True)]


def compute_counts(
    layout: Layout, total: Array, densities: list[float], packed: Array, removal: Removal, kind: Array, quirks: frozenset[str]
) -> Compute:  # fmt: skip
    """7.3 for two operands. `total` (B,) dense computes, `packed` (T, B) tensors with metadata, `kind` (B,) of the unit."""
    batch = total.shape[0]
    left = total
    caught: dict[int, Array] = {}
    for t in layout.operands:
        for s in range(layout.S - 1, -1, -1):
            if (t, s) in removal.kind:
                acting = removal.kind[t, s] != NONE
                share = np.where(acting, removal.share[t, s], 0.0)
                if t in caught:
                    fresh = (caught[t] < 0.0) & acting
                    share = np.where(fresh, share, 0.0)
                    caught[t] = np.where(fresh, share, caught[t])
                else:
                    caught[t] = np.where(acting, share, -1.0)
        if t in caught:
            left = less(left, np.maximum(caught[t], 0.0))
    nonzero, zero, absent = [], [], []
    for position, t in enumerate(layout.operands):
        density = np.floor(1e6 * densities[t] + 0.5) / 1e6
        others = [u for i, u in enumerate(layout.operands) if i != position]
        present = np.full(batch, density)
        for u in others:
            if u in caught:
                kept = 1.0 - np.floor(1e6 * np.maximum(caught[u], 0.0) + 0.5) / 1e6
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
