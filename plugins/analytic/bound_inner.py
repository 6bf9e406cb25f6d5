"""What the tiles cost that the children of a level hold together: a part of the lower bound (`bound_links`).

They hold a tile that is one of theirs times the way to share the fan-out. If it is not all of the level's own tile, some loop
inside that is the innermost around it. What this loop moves is delivered in each of its steps. Any other tensor either stays,
as no loop inside moves it, or comes again with every tile of the level. A filter looks at what the tile of a child meets: the
finer the tiles, the more it removes, and the more of them come. A word that R children use crosses the tree to all of them
and is written R times: the R of tensors that share a fan-out cannot all be small. Without the charge `network` the last two
are not counted: so searches under `timeloop` stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .bound_tiles import OuterTiles, TileGrid, delivered, possible

if TYPE_CHECKING:
    from .bound_links import Handed, LeastLinks

SLOWER = 1.15, 1.6, 2.5, 5.0
"""Few children save energy and take longer: times, over those of the outermost level, that are told apart."""


class Way(NamedTuple):
    """A way to share the fan-out among the children, or several that cost the same."""

    most: Array
    """(D,) children along every dimension, at most."""
    told: tuple[tuple[float, ...], ...]
    """By tensor how many children each word has at least, and `most` along the dimensions that matter to its filters."""
    some: Array
    """(n,) 0 for tiles that they might hold, else infinity."""
    tier: int


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
        finer = self.known if self.words.network and s == 1 else []
        self.filtered = {t: self.accesses.judged(t, s) for t in finer if self.accesses.filters(t, s)}
        """Tensors of which filters hold back what the tiles need, and the dimensions that matter to these."""
        self.wires: dict[float, float] = {}
        """By how many children a word goes to, pJ of a bit on the further wires."""

    def costs(self, own: list[Handed], work: float, least: float) -> tuple[Array, Array] | None:
        """pJ (K, N), by tiers of cycles, those of `SLOWER` times `least`, and cycles (N,); None: none fits. `own`: what the
        tiles of the level need; `work`: cycles of computing for one child."""
        lay, s, words, grid, limit = self.layout, self.s, self.words, self.grid, self.limit
        copies, most = np.ones((lay.D, 1)), np.full((lay.D, 1), limit)
        every = iter(np.ones((1, len(self.tiles)), dtype=bool))
        if words.network:
            copies, most, every = grid.shares(self.fits, limit, self.tiles)
        ends = least * np.array(SLOWER) if words.network and s == lay.S - 2 == 1 else np.zeros(0)
        tiers = (np.multiply.outer(np.minimum(limit, most.prod(axis=0)), ends) <= work).sum(axis=1).tolist()
        both = [(copies[~lay.relevant[t]].prod(axis=0)[None], most[self.filtered.get(t, [])]) for t in self.known]
        told = [np.concatenate(one).T.tolist() for one in both]
        ways: dict[tuple[object, ...], Way] = {}
        for i, (tier, some) in enumerate(zip(tiers, every, strict=True)):
            tells = tuple([tuple(one[i]) for one in told])
            known, some = ways.get((tier, tells)), np.where(some, 0.0, np.inf)
            ways[tier, tells] = Way(most[:, i], tells, some if known is None else np.minimum(some, known.some), tier)
        energy = np.full((max(tiers) + 1, lay.D, len(self.fits)), np.inf)
        busy = np.full(energy.shape[1:], np.inf)
        still: Array = np.zeros((lay.D, lay.T))
        """pJ of tensors that a loop does not move, as `energy` has them."""
        for d, rows in (one for one in possible(self.loops) if one[1].size):
            parts = [self._part(t, d, rows) for t in range(lay.T)]
            still[d] = [part.pj.max() for part in parts]
            energy[:, d, self.tiles[rows]] = self._least(d, rows, parts, [*ways.values()])
            busy[d, self.tiles[rows]] = self.links.busy(s, parts)
        if np.isinf(energy).all():
            return None
        cycles = grid.least_inside(busy.min(axis=0))[self.outer.tile]
        if s > 1 or not words.network:
            return grid.least_inside(energy[0].min(axis=0))[None, self.outer.tile], cycles
        return self._in_classes(energy, still, own), cycles

    def _words(self, t: int, d: int, rows: Array) -> Array:
        return np.maximum(self.sent[t][d][rows] if t in self.sent else np.zeros(len(rows)), self.accesses.touched[t])

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

    def _least(self, d: int, rows: Array, parts: list[Handed], ways: list[Way]) -> Array:
        """pJ (K, n) of the tiles `rows` with this innermost loop, over all ways to share the fan-out among the children."""
        log_extents = np.log2(self.extents[:, rows])
        every = {t: self._part(t, d, rows, every=True) for t in self.filtered if self.layout.relevant[t, d]}
        log_words = {t: np.log2(self._words(t, d, rows)) for t in every}
        alone: Array = sum((part.pj for t, part in enumerate(parts) if t not in every), start=np.zeros(len(rows)))
        found = np.full((max(way.tier for way in ways) + 1, len(rows)), np.inf)
        kept_by: dict[tuple[float, ...], Array] = {}
        more: dict[tuple[float, ...], Array | float] = {}
        pj = np.empty(len(rows))
        for way in ways:
            np.add(alone, way.some.take(rows, out=pj, mode="clip"), out=pj)
            for t, (times, *seen) in zip(self.known, way.told, strict=True):
                key = (t, times, *seen) if t in every else (t, times)
                if key not in more:
                    more[key] = self._more(every.get(t, parts[t]), times)
                    if t in every:
                        if (t, *seen) not in kept_by:
                            given = t, self.s, log_words[t], log_extents, np.log2(way.most)
                            kept = self.accesses.kept_in_tiles(*given)
                            kept = np.maximum(kept, parts[t].pj / np.maximum(every[t].pj, 1e-300))
                            kept_by[t, *seen] = np.minimum(1.0, kept)
                        more[key] = kept_by[t, *seen] * (every[t].pj + more[key])
                pj += more[key]
            np.minimum(found[way.tier], pj, out=found[way.tier])
        return found

    def _more(self, part: Handed, times: float) -> Array | float:
        """(n,) pJ of so many children for each word in place of one."""
        if times <= 1.0:
            return 0.0
        if times not in self.wires:
            wires = self.words.wires_pj(self.s, np.full(1, times)) - self.words.wires_pj(self.s, np.ones(1))
            self.wires[times] = max(0.0, float(wires[0])) / float(self.links.chip.word_bits[self.s])
        return part.bits * self.wires[times] + (times - 1.0) * part.child_pj
