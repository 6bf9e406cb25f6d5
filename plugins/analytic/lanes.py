"""Work that is dealt out to lanes: only parts of a leader that hold something get one (7.4).

`condense` leaves out instances below a level, and saves none of the time; `pack` fills the lanes with the nonzeros of a
tile, and takes as many passes as these need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel, PerTensor, PerTile, Rows

from .actions import Deal
from .nest import Nest
from .prepared import ModelTables
from .stored import parts


@attrs.frozen(eq=False)
class DealtLanes:
    """What dealing changes for a batch."""

    most: PerTile
    """Share of the instances of a level that a tensor takes at most .."""
    mean: PerTile
    """.. and on average, but for the instances whose own tile is empty (5.6)."""
    units: PerDesign
    """Share of the compute units that work on average while any of them does."""
    empty: Mapping[int, PerDesign]
    """By leader, the share of the computes that get no lane since it is empty there."""
    passes: Mapping[int, PerDesign]
    """By packed tensor, the passes over its tile for every one without packing."""


def lanes_of(known: ModelTables, nest: Nest, genes: Array) -> DealtLanes | None:
    """None: no design deals anything."""
    chosen = list(_chosen(known, genes))
    if not chosen:
        return None
    lay, batch = known.layout, nest.batch
    most, mean, units = np.ones((lay.T, lay.S, batch)), np.ones((lay.T, lay.S, batch)), np.ones(batch)
    empty, passes = dict[int, PerDesign](), dict[int, PerDesign]()
    narrow, kept = _narrowed(known, nest, genes), np.ones(batch)
    for level, share in narrow.items():
        most[:, level + 1 :] *= share[:, None]

    def emptied(c: int, rows: Rows, share: Array) -> None:
        found = empty.setdefault(c, np.zeros(batch))
        found[rows] = np.maximum(found[rows], share)

    for deal, rows in chosen:
        if deal.packs:
            c = deal.target
            tile, lanes = _tile(nest, c, lay.holder(c, deal.level), rows)
            filled, needed = known.tables[c].packed(_parts(nest, known, c, tile), lanes)
            passes.setdefault(c, np.ones(batch))[rows] = needed / (nest.volume(c, tile) / lanes)
            units[rows] *= filled
            word = [np.ones(len(rows))] * lay.D
            emptied(c, rows, known.tables[c].empty(_parts(nest, known, c, word)))
            continue
        there = np.ones(len(rows))
        for c in deal.leaders:
            _, _, held = _condensed(known, nest, rows, deal, c)
            there = there * held
            if deal.target in lay.operands:
                emptied(c, rows, 1.0 - held)
        mean[deal.target, deal.level + 1 :, rows] = there[:, None]  # that of the innermost such level
        if deal.target in lay.operands:
            kept[rows] = np.minimum(kept[rows], there)
    return DealtLanes(most, mean, units * kept, empty, passes)


def fewest(known: ModelTables, nest: Nest, genes: Array) -> PerLevel:
    """(L, B) instances that each mapping group needs below one of its level, at most: the product of its bounds, or what
    `condense` leaves of it for the tensor that needs most."""
    found = nest.group_products.copy()
    for level, share in _narrowed(known, nest, genes).items():
        group = known.layout.spatial[level]
        assert group is not None
        found[group] = np.round(found[group] * share.max(axis=0))
    return found


def unmatched(known: ModelTables, nest: Nest, genes: Array) -> Iterator[tuple[str, PerDesign]]:
    """By place, (B,) bool: the tile that is packed has positions that another operand shares, whose words would no longer
    meet it in the lanes."""
    lay = known.layout
    for deal, rows in _chosen(known, genes):
        if deal.packs:
            others = lay.relevant[[t for t in lay.operands if t != deal.target]].any(axis=0)
            tile = nest.extents[lay.holder(deal.target, deal.level)][lay.relevant[deal.target] & others]
            wrong = np.zeros(nest.batch, dtype=bool)
            wrong[rows] = (tile[:, rows] > 1.0).any(axis=0)
            yield lay.problem.places[deal.gene].name, wrong


def _chosen(known: ModelTables, genes: Array) -> Iterator[tuple[Deal, Rows]]:
    """Outermost level first, with the designs that do so."""
    for deal in sorted(known.places.deals, key=lambda one: one.level):
        rows = np.flatnonzero(deal.chosen[genes[deal.gene]])
        if rows.size and (deal.packs or known.layout.spatial[deal.level] is not None):
            yield deal, rows


def _narrowed(known: ModelTables, nest: Nest, genes: Array) -> dict[int, PerTensor]:
    """By level, (T, B) share of the instances below that each tensor takes at most: targets and leaders fewer."""
    found, led = dict[int, PerTensor](), dict[tuple[int, int], PerDesign]()
    for deal, rows in _chosen(known, genes):
        if deal.packs:
            continue
        share = found.setdefault(deal.level, np.ones((known.layout.T, nest.batch)))
        for c in deal.leaders:
            all_of, most, _ = _condensed(known, nest, rows, deal, c)
            share[deal.target, rows] *= most / all_of
            before = led.setdefault((deal.level, c), np.ones(nest.batch))
            least = np.minimum(before[rows], most / all_of)  # once, whatever else it leads
            share[c, rows] *= least / before[rows]
            before[rows] = least
    return found


def _parts(nest: Nest, known: ModelTables, c: int, extent: list[Array]) -> list[Array]:
    """What the tables of c want to know of extents (D; n,)."""
    return parts(nest, c, extent, known.tables[c])


def _condensed(known: ModelTables, nest: Nest, rows: Rows, deal: Deal, c: int) -> tuple[Array, Array, Array]:
    """(n,) iterations of the spatial loops that move leader c, those of them at most that hold something of it, and the
    chance that one of the innermost such loop does.

    A tile of the target that stays in the level below is there for all that it meets: over temporal loops that do not
    move it, the leader counts together.
    """
    lay, table = known.layout, known.tables[c]
    spatial, level, t = lay.spatial[deal.level], deal.level, deal.target
    assert spatial is not None
    dim, bound = nest.loops([spatial], rows)
    holder, stays = lay.holder(t, level), [np.ones(len(rows))] * lay.D
    if lay.child(t, holder) is not None:
        outer_dim, outer = nest.loops([lay.temporal[level]], rows)
        for s in range(level - 1, holder - 1, -1):
            more_dim, more = nest.loops([lay.temporal[s]], rows)
            outer_dim, outer = np.concatenate([outer_dim, more_dim]), np.concatenate([outer, more])
        moved = np.logical_or.accumulate((outer > 1.0) & lay.relevant[t][outer_dim])
        kept = np.where(moved, 1.0, outer)
        stays = [np.where(outer_dim == d, kept, 1.0).prod(axis=0) for d in range(lay.D)]
    extent = [nest.extents[level + 1][d][rows] for d in range(lay.D)]
    every, most, held = np.ones(len(rows)), np.ones(len(rows)), np.ones(len(rows))
    first = np.ones(len(rows), dtype=bool)
    for own, n in zip(dim, bound, strict=True):
        moves = lay.relevant[c][own] & (n > 1.0)
        if moves.any():
            met = [np.where(lay.relevant[t][own], e * more, e) for e, more in zip(extent, stays, strict=True)]
            fiber = [np.where(own == d, e * n, e) for d, e in enumerate(met)]
            empty = table.empty(_parts(nest, known, c, met))
            held = np.where(first & moves, 1.0 - empty, held)
            first &= ~moves
            largest = table.tile(_parts(nest, known, c, fiber)).largest
            every = np.where(moves, every * n, every)
            most = np.where(moves, most * np.minimum(n, largest), most)
        extent = [np.where(own == d, e * n, e) for d, e in enumerate(extent)]
    return every, most, held


def _tile(nest: Nest, c: int, holder: int, rows: Rows) -> tuple[list[Array], Array]:
    """Extents (D; n,) of the tile that is packed, and (n,) lanes that its positions are dealt to."""
    lay = nest.layout
    lanes = np.ones(len(rows))
    for s in range(holder, lay.S):
        bounds = nest.spatial_bounds(s)
        if bounds is not None:
            lanes = lanes * bounds[lay.relevant[c]][:, rows].prod(axis=0)
    return [part[rows] for part in nest.extents[holder]], lanes
