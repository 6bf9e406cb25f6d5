"""What the tiles cost that the children of a level hold together: a part of the lower bound (`bound_links`).

A filter looks at what the whole tile of a child meets: the finer the tiles, the more it removes, and the more of them come.
A skip passes the tiles that it leaves out no faster than `intersection` allows, so that it cannot leave out many of very many;
a gate holds inputs still, which costs a part of the access (`gated`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .actions import GATE, SKIP
from .bound_tiles import OuterTiles, TileGrid, delivered, possible

if TYPE_CHECKING:
    from .bound_links import Handed, LeastLinks

SLOWER = 1.15, 2.5
"""Few children save energy and take longer: times, over those of the outermost level, that are told apart."""
KEPT = 2.0 ** -np.arange(0.0, 40.0, 0.125)
"""Shares that a skip leaves, descending."""


class Filtered(NamedTuple):
    """A tensor that the innermost loop moves and filters hold back; (n,) by tile."""

    log_words: Array
    """Of all that comes, the logarithm to base 2."""
    every: Handed
    """Without filters."""
    least: Array
    """The share of this that remains whatever the tiles of the children are."""
    gated_pj: Array | None
    """Of a gate that leaves out all; None: no gate is a choice."""
    passing: Array
    """(K, n) the least share that a skip leaves in the time of each tier."""
    judged: list[int]
    """The dimensions along which children may have so small tiles that filters leave less."""


class InnerTiles:
    """Costs of the link between a level and the next one inside, over all that the children hold together."""

    def __init__(self, links: LeastLinks, s: int, outer: OuterTiles, grid: TileGrid, splits: Array) -> None:
        self.links, self.s, self.outer, self.grid = links, s, outer, grid
        self.words, self.layout, self.accesses = links.words, links.layout, links.accesses
        self.fits = grid.fits(self.words, s + 1)
        self.tiles = np.flatnonzero(grid.spread(self.fits, splits))
        self.extents = grid.extents[:, self.tiles]
        self.volumes, self.loops = grid.words(self.extents), self.layout.sizes[:, None] / self.extents
        lay = self.layout
        self.known = [t for t in range(lay.T) if not lay.holes[t] and lay.stored[t, s] and lay.child(t, s) == s + 1]
        self.sent = {
            t: delivered(
                lay, t, self.volumes[t] * links.inside[t], grid.widths(t, self.extents), self.extents, self.loops
            )
            for t in self.known
        }
        self.limit = float(splits.prod(axis=0).max())

    def costs(self, own: list[Handed], work: float, least: float) -> tuple[Array, Array] | None:
        """pJ (K, N), by tiers of cycles, those of `SLOWER` times `least`, and cycles (N,); None: none fits. `own`: what the
        tiles of the level need; `work`: cycles of computing for one child."""
        lay, s, words, grid, limit = self.layout, self.s, self.words, self.grid, self.limit
        shares = [(np.ones(lay.D), np.full(lay.D, limit), np.ones(len(self.tiles), dtype=bool), limit)]
        if words.network:
            shares = list(grid.shares(self.fits, limit, self.tiles))
        ends = least * np.array(SLOWER) if words.network and s == lay.S - 2 == 1 else np.zeros(0)
        tier = [int((most * ends <= work).sum()) for *_, most in shares]
        count = len(ends) + 1 if self._filtered() else max(tier) + 1
        ends = np.append(ends[: count - 1], np.inf)
        energy, busy = np.full((count, lay.D, len(self.fits)), np.inf), np.full((lay.D, len(self.fits)), np.inf)
        still: Array = np.zeros((lay.D, lay.T))
        """pJ of tensors that a loop does not move, as `energy` has them."""
        for d, rows in possible(self.loops):
            if not rows.size:
                continue
            parts = [self._part(t, d, rows) for t in range(lay.T)]
            still[d] = [part.pj.max() for part in parts]
            energy[:, d, self.tiles[rows]] = self._least(d, rows, parts, shares, tier, ends)
            busy[d, self.tiles[rows]] = self.links.busy(s, parts)
        if np.isinf(energy).all():
            return None
        cycles = grid.least_inside(busy.min(axis=0))[self.outer.tile]
        if s > 1 or not words.network:
            return grid.least_inside(energy[0].min(axis=0))[None, self.outer.tile], cycles
        return self._in_classes(energy, still, own), cycles

    def _words(self, t: int, d: int, rows: Array) -> Array:
        touched = self.accesses.touched[t]
        return np.maximum(self.sent[t][d][rows], touched) if t in self.sent else np.full(len(rows), touched)

    def _part(self, t: int, d: int, rows: Array, every: bool = False) -> Handed:
        stays = self.extents[~self.layout.relevant[t]][:, rows].prod(axis=0)
        return self.links.handed(t, self.s, self._words(t, d, rows), stays, self.volumes[t][rows], every)

    def _in_classes(self, energy: Array, still: Array, own: list[Handed]) -> Array:
        """(K, N) the least by class: what no loop inside moves stays, or comes again with every tile of the level."""
        lay, grid, outer = self.layout, self.grid, self.outer
        again, steps = {}, (lay.sizes[:, None] / grid.extents).prod(axis=0)
        for t in (t for t in self.known if not lay.windowed[t]):
            whole, stays = grid.words(grid.extents)[t], grid.extents[~lay.relevant[t]].prod(axis=0)
            come = np.maximum(steps * whole * self.links.inside[t], self.accesses.touched[t])
            again[t] = self.links.handed(t, self.s, come, stays, whole).pj[outer.tile]
        found = energy[:, outer.loop, outer.tile]
        for d in range(lay.D):
            stay = [t for t in again if not lay.relevant[t, d]]
            more: Array = sum((np.maximum(0.0, again[t] - still[d, t]) for t in stay), start=np.zeros(1))
            for k, here in enumerate(energy[:, d]):
                found[k] = np.minimum(found[k], grid.least_inside(here, d)[outer.tile] + more)
                for t in stay:
                    least = grid.least_inside(here, d, ~lay.relevant[t])[outer.tile]
                    found[k] = np.minimum(found[k], least + np.maximum(0.0, own[t].pj - still[d, t]))
        return found

    def _filtered(self) -> list[int]:
        """Tensors of which filters hold back what the tiles need."""
        if not self.words.network or self.s > 1:
            return []
        return [t for t in self.known if self.accesses.filters(t, self.s)]

    def _least(
        self, d: int, rows: Array, parts: list[Handed], shares: list[tuple[Array, Array, Array, float]], tier: list[int],
        ends: Array,
    ) -> Array:  # fmt: skip
        """pJ (K, n) of the tiles `rows` with this innermost loop, over all ways to share the fan-out among the children."""
        log_extents = np.log2(self.extents[:, rows])
        held = {
            t: self._held_back(t, d, rows, parts[t], log_extents, ends)
            for t in self._filtered() if self.layout.relevant[t, d]
        }  # fmt: skip
        alone: Array = sum((part.pj for t, part in enumerate(parts) if t not in held), start=np.zeros(len(rows)))
        row, level = [np.arange(len(rows))], [np.zeros(len(rows), dtype=np.intp)]
        for k in range(1, len(ends)):
            sooner = [one.passing[k - 1] > np.maximum(one.passing[k], one.least) for one in held.values()]
            row.append(np.flatnonzero(np.any(sooner, axis=0)) if sooner else row[0][:0])
            level.append(np.full(len(row[-1]), k, dtype=np.intp))
        at, tiers = np.concatenate(row), np.concatenate(level)
        found, kept_by = np.full((len(ends), len(rows)), np.inf), dict[tuple[float, ...], Array]()
        for (copies, most, some, _), k in zip(shares, tier, strict=True):
            there = np.flatnonzero(some[rows][at])
            mine, here = at[there], np.maximum(tiers[there], k)
            pj = alone[mine]
            for t in self.known:
                one, times = held.get(t), float(copies[~self.layout.relevant[t]].prod())
                if one is None:
                    pj = pj + self._more(parts[t], times, mine)
                    continue
                each = one.every.pj[mine] + self._more(one.every, times, mine)
                key = t, *most[one.judged]
                if key not in kept_by:
                    child = np.maximum(0.0, log_extents - np.log2(most)[:, None])
                    kept_by[key] = np.maximum(self.accesses.kept_in_tiles(t, self.s, one.log_words, child), one.least)
                kept = kept_by[key][mine]
                waits = np.maximum(one.passing[here, mine] - kept, 0.0) * each
                if one.gated_pj is not None:
                    waits = np.minimum(waits, (1.0 - kept) * one.gated_pj[mine])
                pj = pj + kept * each + waits
            best = found[here, mine]
            found[here, mine] = np.minimum(best, pj)  # of a tile in several tiers the last one counts, the least
        return found

    def _more(self, part: Handed, times: float, rows: Array) -> Array | float:
        """(n,) pJ of so many children for each word in place of one."""
        if times <= 1.0:
            return 0.0
        wires = self.words.wires_pj(self.s, np.full(1, times)) - self.words.wires_pj(self.s, np.ones(1))
        wire = max(0.0, float(wires[0])) / float(self.links.chip.word_bits[self.s])
        return part.bits[rows] * wire + (times - 1.0) * part.child_pj[rows]

    def _held_back(self, t: int, d: int, rows: Array, part: Handed, log_extents: Array, ends: Array) -> Filtered:
        s, accesses, chip = self.s, self.accesses, self.links.chip
        come, every = self._words(t, d, rows), self._part(t, d, rows, every=True)
        log_words, passing, gated = np.log2(come), np.zeros((len(ends), len(rows))), None
        child = np.maximum(0.0, log_extents - np.log2(self.limit))
        least = np.maximum(accesses.kept_in_tiles(t, s, log_words, child), part.pj / np.maximum(every.pj, 1e-300))
        actions = [action for action in accesses.filters(t, s) if action.place.storage == s]
        skips = [np.minimum(a.width[a.kind == SKIP], chip.lookahead[s]) for a in actions if t != self.layout.output]
        width = max((float(own.max()) for own in skips if own.size), default=np.inf)
        limited = np.isfinite(width) and not accesses.places.lists and len(actions) == len(accesses.filters(t, s))
        if self.words.known.options.intersection and limited:
            chance = np.where(KEPT < 1.0, (1.0 - KEPT) ** width, 0.0)
            waits = KEPT * chance / (1.0 - chance)  # for each tile, ascending
            tiles = come / np.maximum(self.volumes[t][rows], 1.0)
            for k, end in enumerate(ends[:-1]):
                at = np.searchsorted(waits, end / tiles, side="left")
                passing[k] = np.where(at < len(KEPT), KEPT[np.minimum(at, len(KEPT) - 1)], 0.0)
        if any((action.passes & (action.kind > 0)).any() for action in actions):
            only = all((action.kind[action.passes] == GATE).all() for action in actions)
            residual = float(chip.gated_residual) if self.words.known.options.gated and only else 0.0
            gated = residual * every.access_pj
        return Filtered(log_words, every, np.minimum(least, 1.0), gated, passing, accesses.judged(t, s))
