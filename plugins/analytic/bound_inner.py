"""Costs of the tiles held by all children of a level together: a part of the lower bound (`bound_links`).

This tile is a child's tile times the way to share the fan-out. If smaller than the level's own tile, some inner loop is
the innermost around it. A tensor moved by this loop is delivered in each step. Any other tensor either stays, if no
inner loop moves it, or returns with every tile of the level. A filter looks at the data met by a child's tile: finer
tiles let the filter remove more, but come more often. A word used by R children crosses the tree to all of them and is
written R times; the factors R of tensors sharing a fan-out cannot all be small. Without the charge `network` the last
two effects are not counted, so searches under `timeloop` are unaffected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemap.inner.arrays import log2s
from sparsemap.pieces.contracts.base import Array, Rows

from .bound_tiles import AT_ONCE, FanoutShares, OuterTiles, TileGrid, delivered, possible
from .inner import functions

if TYPE_CHECKING:
    from .bound_links import Handed, LeastLinks

SLOWER = 1.15, 1.6, 2.5, 5.0
"""Thresholds of cycles, relative to the outermost level, for trading fewer children (less energy) against time."""
BLOCK = 64
"""Tiles processed together for all ways to share the fan-out, to stay in the cache."""
Costs = tuple[Array, Array, Array]


class InnerTiles:
    """Costs of the link between a level and the next inner level, over all n tiles held by the children together."""

    def __init__(self, links: LeastLinks, s: int, outer: OuterTiles, grid: TileGrid, splits: Array) -> None:
        self.links, self.s, self.outer, self.grid = links, s, outer, grid
        self.words, self.layout, self.accesses = links.words, links.layout, links.accesses
        self.fits = grid.fits(self.words, s + 1)
        self.every_tile = np.flatnonzero(grid.spread(self.fits, splits))
        lay = self.layout
        self.known = [t for t in range(lay.T) if not lay.holes[t] and lay.stored[t, s] and lay.child(t, s) == s + 1]
        self.limit = float(splits.prod(axis=0).max())
        finer = self.known if self.words.network and s == 1 else []
        self.filtered = [t for t in finer if self.accesses.filters(t, s)]
        """Tensors with filters holding back words for the tiles."""
        self.units = links.units if s == lay.S - 2 == 1 and self.words.network else None
        self.promise: tuple[Array, Array] | None = None
        """(K, N) over the whole grid: pJ with the cheapest innermost loop around a tile, infinity where none fits, and
        this loop."""

    def examine(self, tiles: Rows) -> None:
        """Set the costs of some tiles (n,)."""
        self.tiles, self.extents = tiles, self.grid.extents.take(tiles, axis=1)
        self.volumes, loops = self.grid.words(self.extents), self.layout.sizes[:, None] / self.extents
        self.possible, lay = possible(loops), self.layout
        self.stays = [self.extents[~lay.relevant[t]].prod(axis=0) for t in range(lay.T)]
        sent = {t: self.volumes[t] * self.links.inside[t] for t in self.known}
        self.sent = {
            t: delivered(lay, t, sent[t], self.grid.widths(t, self.extents), self.extents, loops) for t in self.known
        }
        self.parts = [self.part(t) for t in range(lay.T)]
        self.every = {t: self.part(t, every=True) for t in self.filtered}
        """The same parts without filters."""

    def costs(self, own: list[Array], work: float, least: float, copies: list[float]) -> Costs | None:
        """pJ (K, N), cycles (N,) and tiers (K,); None: no tile fits. A tier combines a threshold of cycles (`SLOWER`
        times `least`) with the largest number of children sharing a word of the output, as place in `copies`, changing
        first. `own`: pJ of the level's own tiles; `work`: compute cycles with a single child."""
        lay, s, words, grid, limit = self.layout, self.s, self.words, self.grid, self.limit
        inner, tiers = s == lay.S - 2 == 1 and words.network, dict[int, int]()
        shares = FanoutShares.unknown(lay.D, limit)
        if words.network:
            shares = grid.shares(self.fits, limit, len(self.every_tile))
        ends = least * np.array(SLOWER) if inner else np.zeros(0)
        summed = (
            np.searchsorted(copies, shares.most[~lay.relevant[lay.output]].prod(axis=0)) if inner else len(copies) - 1
        )
        tier = (shares.children[:, None] * ends <= work).sum(axis=1) * len(copies) + summed
        rows = np.array([tiers.setdefault(k, len(tiers)) for k in tier.tolist()])
        given = rows, shares, [self._ways(t, shares) for t in self.known]
        energy, busy = np.full((len(tiers), lay.D, len(self.fits)), np.inf), np.full(len(self.fits), np.inf)
        self.still = np.zeros((lay.D, lay.T))
        for start in range(0, len(self.every_tile), AT_ONCE):
            self.examine(self.every_tile[start : start + AT_ONCE])
            self.least(energy, given)
            busy[self.tiles] = np.where(self.possible, self.links.busy(s, self.parts), np.inf).min(axis=0)
            still = [np.where(self.possible, part.pj, 0.0).max(axis=1) for part in self.parts]
            self.still = np.maximum(self.still, np.transpose(still))
        if np.isinf(energy).all():
            return None
        self.promise = energy.min(axis=1).astype(np.float32), energy.argmin(axis=1).astype(np.int8)
        cycles = grid.least_inside(busy)[self.outer.tile]
        if s > 1 or not words.network:
            return grid.least_inside(energy[0].min(axis=0))[None, self.outer.tile], cycles, np.array([*tiers])
        return self.in_classes(energy, own), cycles, np.array([*tiers])

    def moved(self, t: int) -> Array:
        """(D, n) words received by the children, by innermost loop around their tiles."""
        sent = self.sent[t] if t in self.sent else np.zeros(self.possible.shape)
        return np.maximum(sent, self.accesses.touched[t])

    def part(self, t: int, every: bool = False) -> Handed:
        """Costs of a tensor, (D, n) each; `every`: without filters."""
        return self.links.handed(t, self.s, self.moved(t), self.stays[t], self.volumes[t], every)

    def in_classes(self, energy: Array, own: list[Array]) -> Array:
        """(K, N) minimum pJ by class: a tensor not moved by inner loops either stays or returns with every tile of the
        level."""
        lay, grid, outer = self.layout, self.grid, self.outer
        some = [t for t in self.known if not lay.windowed[t]]
        again, mine = np.zeros((len(some), len(self.fits))), np.zeros((len(some), len(outer.tile)))
        for i, t in enumerate(some):
            mine[i] = own[t]
            for rows in (slice(start, start + AT_ONCE) for start in range(0, len(self.fits), AT_ONCE)):
                extents = np.ascontiguousarray(grid.extents[:, rows])
                stays, words = extents[~lay.relevant[t]].prod(axis=0), grid.words(extents)[t]
                loops, turns = lay.sizes[:, None] / extents, lay.turns(extents)
                steps = np.where(lay.relevant[t][:, None], loops, turns).prod(axis=0)
                come = np.maximum(steps * words * self.links.inside[t], self.accesses.touched[t])
                again[i, rows] = self.links.handed(t, self.s, come, stays, words).pj
        found = np.empty((len(energy), len(outer.tile)))
        still = np.ascontiguousarray(self.still[:, some])
        given = energy, outer.tile, outer.loop, again, mine, still, lay.relevant[some].astype(np.uint8), *grid.within
        functions.least_in_classes(*given, np.empty(lay.D, np.uint8), *np.empty((3, again.shape[1])), found)
        return found

    def least(self, energy: Array, given: tuple[Any, ...]) -> None:
        """Enter pJ (K, D, N) of the examined tiles by innermost loop, minimised over all ways to share the fan-out among
        the children; `given` comes from `costs`."""
        tier, shares, ways = given
        lay, x = self.layout, functions.Shares()
        base = np.zeros(self.possible.shape)
        for t, part in enumerate(self.parts):
            moves = lay.relevant[t] & (t in self.filtered)
            base = base + np.where(moves[:, None], 0.0, part.pj)
        x.tiles, x.possible, x.base, x.tier = self.tiles, self.possible.view(np.uint8), base, tier
        x.log_extents = log2s(self.extents)
        x.rows, x.places, x.fits = shares.rows, shares.places_of(self.tiles), shares.fits.view(np.uint8)
        self._tell_units(x, shares)
        self._tell_tensors(x, ways, base.shape)
        x.some, x.unit = np.empty(len(tier), np.uint8), np.empty((len(tier), BLOCK))
        x.best = np.empty((len(energy), BLOCK))
        functions.least_shared(x, energy)

    def _tell_tensors(self, x: Any, ways: list[Array], shape: tuple[int, ...]) -> None:
        """Enter the costs of the tensors received by children, by their ways (W, 2 + J)."""
        known, rows = self.known, [_distinct(each) for each in ways]
        x.ends = np.cumsum([len(first) for first, _, _ in rows], dtype=np.int64)
        count = int(x.ends[-1]) if known else 0
        x.ways = np.zeros((count, max([2, *(each.shape[1] for each in ways)])))
        x.which, x.alike = np.full((len(x.tier), max(3, len(known))), count), np.zeros(count, dtype=np.int64)
        planes, plans, tables, start = list[Array](), [np.zeros(0, np.int64)], [np.zeros(0)], 0
        x.planes, x.plans = np.zeros(len(known), np.int64), np.zeros((len(known), 2), np.int64)
        x.log_computes = np.zeros(len(known))
        for i, (t, each, (first, which, alike)) in enumerate(zip(known, ways, rows, strict=True)):
            end = start + len(first)
            x.ways[start:end, : each.shape[1]], x.which[:, i], x.alike[start:end] = (
                each[first],
                start + which,
                start + alike,
            )
            x.planes[i], x.plans[i], start = len(planes), (sum(map(len, plans)), sum(map(len, tables))), end
            planes += [self.parts[t].bits, self.parts[t].child_pj]
            if t in self.filtered:
                every, (plan, table, x.log_computes[i]) = self.every[t], self.accesses.plan(t, self.s)
                planes += [self.parts[t].pj, every.pj, every.bits, every.child_pj, log2s(self.moved(t))]
                plans.append(plan)
                tables.append(table)
        x.columns = np.empty((len(planes), *shape))
        for own, plane in zip(x.columns, planes, strict=True):
            own[:] = plane
        x.plan, x.chances = np.concatenate(plans), np.concatenate(tables)
        x.filtered = np.array([t in self.filtered for t in known], np.uint8)
        x.moves = self.layout.relevant[known].astype(np.uint8)
        x.share, x.term, x.rank = np.empty((count, BLOCK)), np.zeros((count + 2, BLOCK)), np.empty((3, BLOCK))

    def _ways(self, t: int, shares: FanoutShares) -> Array:
        """(W, 2 + J) of a tensor: extra pJ per bit for all children receiving the same words, compared with one child;
        number of additional children; log2 of the largest number of children along the dimensions of the tensor's
        filters."""
        times, dims = (
            np.ldexp(1.0, shares.steps)[~self.layout.relevant[t]].prod(axis=0),
            self.accesses.judged(t, self.s),
        )
        wires = self.words.wire_pj(self.s, np.array([1.0, *times]))
        more = np.maximum(0.0, wires[1:] - wires[0]) if len(wires) > 1 else 0.0
        logs = log2s(shares.most[dims if t in self.filtered else []])
        return np.vstack([np.broadcast_to(more, times.shape), times - 1.0, logs]).T.copy()

    def _tell_units(self, x: Any, shares: FanoutShares) -> None:
        """Enter the accesses next to the compute units: the tables of `LeastUnits`. For tiles: log2 of extents, rounded
        down, and of operands' words. For ways: log2 of the children along every dimension, and of the largest number of
        operand parts."""
        units, none = self.units, np.zeros((0, 0))
        x.widths = x.sizes = x.told_alone = x.told = x.told_sizes = np.zeros(0)
        x.logs = x.each = x.log_words = x.cut = none
        if not units:
            return
        x.widths, x.sizes = units.widths.ravel(), np.array(units.widths.shape, dtype=np.float64)
        x.logs, x.each = np.floor(log2s(self.extents * (1.0 + 1e-12))), shares.steps.T.astype(np.float64)
        if not units.operands:
            return
        parts, same = [], np.ldexp(1.0, shares.steps)
        for t in units.operands:
            moves = self.layout.relevant[t]
            most = np.minimum(shares.most[moves].prod(axis=0), shares.children / same[~moves].prod(axis=0))
            parts.append(log2s(most))
        x.told_alone, x.told = units.told_alone.ravel(), units.told.ravel()
        x.told_sizes = np.array(units.told.shape, dtype=np.float64)
        x.log_words, x.cut = log2s(np.array([self.volumes[t] for t in units.operands])), np.array(parts).T.copy()


def _distinct(ways: Array) -> tuple[Array, Array, Array]:
    """First occurrence of each distinct row of ways (W, C), the distinct row of every way, and for each distinct row
    the first with equal filter columns (from the third on)."""
    _, first, which = np.unique(ways, axis=0, return_index=True, return_inverse=True)
    if ways.shape[1] == 2:
        return first, which.reshape(-1), np.zeros(len(first), dtype=np.int64)
    _, like, of = np.unique(ways[first, 2:], axis=0, return_index=True, return_inverse=True)
    return first, which.reshape(-1), like[of.reshape(-1)]
