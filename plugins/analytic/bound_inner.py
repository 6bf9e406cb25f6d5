"""What the tiles cost that the children of a level hold together: a part of the lower bound (`bound_links`).

They hold a tile that is one of theirs times the way to share the fan-out. If it is not all of the level's own tile, some loop
inside that is the innermost around it. What this loop moves is delivered in each of its steps. Any other tensor either stays,
as no loop inside moves it, or comes again with every tile of the level. A filter looks at what the tile of a child meets: the
finer the tiles, the more it removes, and the more of them come. A word that R children use crosses the tree to all of them
and is written R times: the R of tensors that share a fan-out cannot all be small. Filters read the metadata of what they look
at, held back or not (`filter-metadata`): by tiny tiles they hold back nearly all words, and read all metadata with every one.
Without the charge `network` the last three are not counted: so searches under `timeloop` stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .bound_tiles import OuterTiles, TileGrid, delivered, possible

if TYPE_CHECKING:
    from .bound_links import Handed, LeastLinks

SLOWER = 1.15, 1.6, 2.5, 5.0
"""Few children save energy and take longer: times, over those of the outermost level, that are told apart."""
WORTH = 1e-3
"""Of the least energy: where what filters look at adds less, it is left out."""
Share = tuple[Array, Array, Array, float]
"""`TileGrid.shares`"""


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
        self.filtered = [t for t in finer if self.accesses.filters(t, s)]
        """Tensors of which filters hold back what the tiles need."""
        self.choices = self.accesses.choices(s) if self.filtered else []

    def costs(
        self, own: list[Handed], work: float, least: float, copies: list[float]
    ) -> tuple[Array, Array, Array] | None:
        """pJ (K, N), cycles (N,) and (K,) tiers: of cycles, those of `SLOWER` times `least`, and of the most children that
        share a word of the output, by the place in `copies`, which changes first. None: none fits. `own`: what the tiles of
        the level need; `work`: cycles of computing for one child."""
        lay, s, words, grid, limit = self.layout, self.s, self.words, self.grid, self.limit
        alone, inner, tiers = ~lay.relevant[lay.output], s == lay.S - 2 == 1 and words.network, dict[int, int]()
        shares = [(np.ones(lay.D), np.full(lay.D, limit), np.ones(len(self.tiles), dtype=bool), limit)]
        if words.network:
            shares = list(grid.shares(self.fits, limit, self.tiles))
        ends = least * np.array(SLOWER) if inner else np.zeros(0)
        ways: dict[tuple[float, ...], Share] = {}
        for same, most, some, children in shares:
            summed = np.searchsorted(copies, most[alone].prod()) if inner else len(copies) - 1
            tier = int((children * ends <= work).sum()) * len(copies) + int(summed)
            k = tiers.setdefault(tier, len(tiers))
            times = [same[~lay.relevant[t]].prod() for t in self.known]
            key = k, *times, *(size for t in self.filtered for size in most[self.accesses.judged(t, s)])
            ways[key] = same, most, some | ways[key][2] if key in ways else some, k
        energy, busy = np.full((len(tiers), lay.D, len(self.fits)), np.inf), np.full((lay.D, len(self.fits)), np.inf)
        still: Array = np.zeros((lay.D, lay.T))
        """pJ of tensors that a loop does not move, as `energy` has them."""
        loops, shared = [one for one in possible(self.loops) if one[1].size], list(ways.values())
        for d, rows in loops:
            parts = [self._part(t, d, rows) for t in range(lay.T)]
            still[d] = [part.pj.max() for part in parts]
            energy[:, d, self.tiles[rows]] = self._least(d, rows, parts, shared)
            busy[d, self.tiles[rows]] = self.links.busy(s, parts)
        if np.isinf(energy).all():
            return None
        cycles = grid.least_inside(busy.min(axis=0))[self.outer.tile]
        if s > 1 or not words.network:
            return grid.least_inside(energy[0].min(axis=0))[None, self.outer.tile], cycles, np.array([*tiers])
        pj = self._in_classes(energy, still, own)
        if self.choices and self._matters(energy.min(axis=0), shared):
            from .bound_looks import told_of_classes

            told = told_of_classes(self)
            for d, rows in loops:
                parts = [self._part(t, d, rows) for t in range(lay.T)]
                energy[:, d, self.tiles[rows]] = self._least(d, rows, parts, shared, looks=True)
            more = self._in_classes(energy, still, own)
            pj = np.where(np.isinf(pj), pj, (1.0 - told) * pj + told * more)
        return pj, cycles, np.array([*tiers])

    def _matters(self, energy: Array, ways: list[Share]) -> bool:
        """Whether what filters look at adds to the least of `energy` (D, n)."""
        d, tile = (int(i) for i in np.unravel_index(energy.argmin(), energy.shape))
        row = np.flatnonzero(self.tiles == tile)
        parts = [self._part(t, d, row) for t in range(self.layout.T)]
        if all(parts[t].pj >= (1.0 - WORTH) * self._part(t, d, row, every=True).pj for t in self.filtered):
            return False  # filters hold back nothing
        return bool(self._least(d, row, parts, ways, looks=True).min() > energy.min() * (1.0 + WORTH))

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

    def _least(self, d: int, rows: Array, parts: list[Handed], ways: list[Share], looks: bool = False) -> Array:
        """pJ (K, n) of the tiles `rows` with this innermost loop, over all ways to share the fan-out among the children.
        `looks`: with what filters look at, in tiles of the largest size."""
        log_extents = np.log2(self.extents[:, rows])
        moved = [t for t in self.filtered if self.layout.relevant[t, d]]
        every = {t: self._part(t, d, rows, every=True) for t in (self.filtered if looks else moved)}
        share = {t: np.minimum(1.0, parts[t].pj / np.maximum(part.pj, 1e-300)) for t, part in every.items()}
        if looks:
            from .bound_looks import looked_at, looking

            looked = {t: looked_at(self, t, self._words(t, d, rows)) for t in every}
        log_words = {t: np.log2(self._words(t, d, rows)) for t in moved}
        alone: Array = sum((part.pj for t, part in enumerate(parts) if t not in moved), start=np.zeros(len(rows)))
        found = np.full((int(max(k for *_, k in ways)) + 1, len(rows)), np.inf)
        kept_by, more_by = dict[tuple[float, ...], Array](), dict[tuple[int, float], Array | float]()
        for copies, most, some, k in ways:
            if not some[rows].any():
                continue
            pj, whole, left = alone, dict[int, Array](), dict(share)
            for t in self.known:
                times = float(copies[~self.layout.relevant[t]].prod())
                if (t, times) not in more_by:
                    more_by[t, times] = self._more(every[t] if t in moved else parts[t], times)
                if looks and t in every:
                    whole[t] = every[t].pj + (more_by[t, times] if t in moved else self._more(every[t], times))
                if t not in moved:
                    pj = pj + more_by[t, times]
                    continue
                key = t, *most[self.accesses.judged(t, self.s)]
                if key not in kept_by:
                    child = np.maximum(0.0, log_extents - np.log2(most)[:, None])
                    kept = self.accesses.kept_in_tiles(t, self.s, log_words[t], child)
                    kept_by[key] = np.minimum(1.0, np.maximum(kept, share[t]))
                left[t] = kept_by[key]
                pj = pj + left[t] * (every[t].pj + more_by[t, times])
            if looks:
                pj = pj + looking(self.choices, left, whole, looked)
            np.minimum(found[int(k)], pj, out=found[int(k)], where=some[rows])
        return found

    def _more(self, part: Handed, times: float) -> Array | float:
        """(n,) pJ of so many children for each word in place of one."""
        if times <= 1.0:
            return 0.0
        wires = self.words.wires_pj(self.s, np.full(1, times)) - self.words.wires_pj(self.s, np.ones(1))
        wire = max(0.0, float(wires[0])) / float(self.links.chip.word_bits[self.s])
        return part.bits * wire + (times - 1.0) * part.child_pj
