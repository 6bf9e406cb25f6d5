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

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemap.pieces.contracts.base import Array

from . import native
from .bound_tiles import OuterTiles, TileGrid, delivered, possible

if TYPE_CHECKING:
    from .bound_links import Handed, LeastLinks
    from .bound_looks import Looks

SLOWER = 1.15, 1.6, 2.5, 5.0
"""Few children save energy and take longer: times, over those of the outermost level, that are told apart."""
Costs = tuple[Array, Array, Array]
Ways = dict[tuple[Any, ...], Array]
"""By tier, children along every dimension and parts of operands that they hold, and of each tensor how many children have the
same words, and the ways along dimensions of its filters: for which tiles (n,) bool there is one of these."""


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
        self.stays = [self.extents[~lay.relevant[t]].prod(axis=0) for t in range(lay.T)]
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
        self.judged = [self.accesses.judged(t, s) if t in self.filtered else [] for t in self.known]
        self.units = links.units if s == lay.S - 2 == 1 and self.words.network else None
        self.whole_logs = np.log2(self.extents * (1.0 + 1e-12)).astype(np.int64)
        self.log_volumes = [np.log2(words) for words in self.volumes]
        if units := self.units:
            wide = cache(lambda d, log_n: units.wide(d, self.whole_logs[d] - log_n))
            places = cache(lambda i, n: units.place(i, self.log_volumes[units.operands[i]] - np.log2(n)))
            self.of_units = cache(lambda each, cut: units.of_tiles(
                [wide(d, n) for d, n in enumerate(each)], [places(i, n) for i, n in enumerate(cut)]
            ))  # fmt: skip
            """(n,) pJ of `LeastUnits`, where there are 2 ** `each` children along every dimension, or more, who hold `cut` parts
            of each operand at most."""
        self.wires: dict[float, float] = {}
        """pJ of a bit to so many children more than to one."""
        self.promise: tuple[Array, Array] | None = None
        """Of the whole grid (K, n): pJ, infinity where none fits, with the loop that is cheapest around it, and this loop."""

    def costs(self, own: list[Handed], work: float, least: float, copies: list[float]) -> Costs | None:
        """pJ (K, N), cycles (N,) and (K,) tiers: of cycles, those of `SLOWER` times `least`, and of the most children that
        share a word of the output, by the place in `copies`, which changes first. None: none fits. `own`: what the tiles of
        the level need; `work`: cycles of computing for one child."""
        lay, s, words, grid, limit = self.layout, self.s, self.words, self.grid, self.limit
        inner, tiers = s == lay.S - 2 == 1 and words.network, dict[int, int]()
        same, most, children = np.ones((lay.D, 1)), np.full((lay.D, 1), limit), np.full(1, limit)
        some: Array = np.ones((1, len(self.tiles)), dtype=bool)
        if words.network:
            same, most, some, children = grid.shares(self.fits, limit, self.tiles)
        ends = least * np.array(SLOWER) if inner else np.zeros(0)
        alone = [~lay.relevant[t] for t in self.known]
        summed = np.searchsorted(copies, most[~lay.relevant[lay.output]].prod(axis=0)) if inner else len(copies) - 1
        tier = (children[:, None] * ends <= work).sum(axis=1) * len(copies) + summed
        cut = [self._parts(t, same, most, children).tolist() for t in self.units.operands] if self.units else []
        each = np.log2(same).astype(int).T.tolist() if self.units else [[]] * len(children)
        pairs = [np.vstack([same[a].prod(axis=0), most[j]]).T.tolist() for a, j in zip(alone, self.judged, strict=True)]
        ways: Ways = {}
        for i, k in enumerate(tier.tolist()):
            units = tuple(each[i]), tuple([parts[i] for parts in cut])
            way = tiers.setdefault(k, len(tiers)), units, *[tuple(pair[i]) for pair in pairs]
            ways[way] = some[i] | ways[way] if way in ways else some[i]
        energy, busy = np.full((len(tiers), lay.D, len(self.fits)), np.inf), np.full((lay.D, len(self.fits)), np.inf)
        still: Array = np.zeros((lay.D, lay.T))
        """pJ of tensors that a loop does not move, as `energy` has them."""
        for d, rows in (one for one in possible(self.loops) if one[1].size):
            parts = [self.part(t, d, rows) for t in range(lay.T)]
            still[d] = [part.pj.max() for part in parts]
            energy[:, d, self.tiles[rows]] = self.least(d, rows, parts, ways)
            busy[d, self.tiles[rows]] = self.links.busy(s, parts)
        if np.isinf(energy).all():
            return None
        self.promise = energy.min(axis=1).astype(np.float32), energy.argmin(axis=1).astype(np.int8)
        cycles = grid.least_inside(busy.min(axis=0))[self.outer.tile]
        if s > 1 or not words.network:
            return grid.least_inside(energy[0].min(axis=0))[None, self.outer.tile], cycles, np.array([*tiers])
        pj = self.in_classes(energy, still, own)
        if self.filtered and words.known.options.filter_metadata and self._held_back(energy.min(axis=0)):
            from .bound_looks import Looks

            pj = Looks.of(self).added(pj, energy, still, own, ways)
            self.promise = energy.min(axis=1).astype(np.float32), energy.argmin(axis=1).astype(np.int8)
        return pj, cycles, np.array([*tiers])

    def _parts(self, t: int, same: Array, most: Array, children: Array) -> Array:
        """(n,) how many parts of a tensor so many children (n,) hold at most, `same` (D, n) or more along every dimension."""
        moves = self.layout.relevant[t]
        return np.asarray(np.minimum(most[moves].prod(axis=0), children / same[~moves].prod(axis=0)))

    def _held_back(self, energy: Array) -> bool:
        """Whether filters hold back anything that the cheapest tile with its loop, of `energy` (D, n), moves."""
        d, tile = (int(i) for i in np.unravel_index(energy.argmin(), energy.shape))
        at = d, np.flatnonzero(self.tiles == tile)
        return any(self.part(t, *at).pj < 0.999 * self.part(t, *at, every=True).pj for t in self.filtered)

    def _words(self, t: int, d: int, rows: Array) -> Array:
        return np.maximum(self.sent[t][d][rows] if t in self.sent else np.zeros(len(rows)), self.accesses.touched[t])

    def part(self, t: int, d: int, rows: Array, every: bool = False) -> Handed:
        words, stays = self._words(t, d, rows), self.stays[t][rows]
        return self.links.handed(t, self.s, words, stays, self.volumes[t][rows], every)

    def in_classes(self, energy: Array, still: Array, own: list[Handed]) -> Array:
        """(K, N) the least by class: what no loop inside moves stays, or comes again with every tile of the level."""
        lay, grid, outer = self.layout, self.grid, self.outer
        again, loops, turns = {}, lay.sizes[:, None] / grid.extents, lay.turns(grid.extents)
        for t in (t for t in self.known if not lay.windowed[t]):
            whole, stays = grid.words(grid.extents)[t], grid.extents[~lay.relevant[t]].prod(axis=0)
            steps = np.where(lay.relevant[t][:, None], loops, turns).prod(axis=0)
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

    def least(self, d: int, rows: Array, parts: list[Handed], ways: Ways, looks: Looks | None = None) -> Array:
        """pJ (K, n) of the tiles `rows` with this innermost loop, over all ways to share the fan-out among the children;
        `looks`: with what filters look at."""
        log_extents = np.log2(self.extents[:, rows])
        moved = [t for t in self.filtered if self.layout.relevant[t, d]]
        every = {t: self.part(t, d, rows, every=True) for t in (self.filtered if looks else moved)}
        log_words = {t: np.log2(self._words(t, d, rows)) for t in moved}
        alone: Array = sum((part.pj for t, part in enumerate(parts) if t not in moved), start=np.zeros(len(rows)))
        found = np.full((max(k for k, *_ in ways) + 1, len(rows)), np.inf)

        inside = cache(lambda d, most: np.maximum(0.0, log_extents[d] - np.log2(most)))

        @cache
        def kept(t: int, dims: tuple[int, ...], most: tuple[float, ...]) -> Array:
            least, ways = (
                np.minimum(1.0, parts[t].pj / np.maximum(every[t].pj, 1e-300)),
                dict(zip(dims, most, strict=True)),
            )
            if t not in moved:
                return least
            child = [inside(d, ways.get(d, 1.0)) for d in range(len(log_extents))]
            return np.minimum(1.0, np.maximum(self.accesses.kept_in_tiles(t, self.s, log_words[t], child), least))

        whole = cache(lambda t, times: every[t].pj + self._more(every[t], times))

        @cache
        def added(i: int, times: float, *most: float) -> Array | float:
            t = self.known[i]
            if t not in moved:
                return self._more(parts[t], times)
            return kept(t, (*self.judged[i],), most) * whole(t, times)

        looked = {t: looks.metadata(t, self._words(t, d, rows)) for t in every} if looks else {}
        terms = list[tuple[Any, ...]]()
        for (k, units, *way), some in ways.items():
            whole_tiles = self.of_units(*units) if self.units else None
            each = [more for i, one in enumerate(way) if not isinstance(more := added(i, *one), float)]
            if looks:
                some_of = zip(self.known, self.judged, way, strict=True)
                through = {t: (kept(t, (*j,), (*most,)), whole(t, n)) for t, j, (n, *most) in some_of if t in every}
                each.append(looks.looking(through, looked))
            terms.append((k, some, whole_tiles, *each))
        if native.fast is None or native.fast.ways(found, alone, rows, terms) is None:
            from .bound_uncompiled import ways as fallback

            fallback(found, alone, rows, terms)
        return found

    def _more(self, part: Handed, times: float) -> Array | float:
        """(n,) pJ of so many children for each word in place of one."""
        if times <= 1.0:
            return 0.0
        if times not in self.wires:
            wires = self.words.wires_pj(self.s, np.array([1.0, times]))
            self.wires[times] = max(0.0, float(wires[-1] - wires[0])) / float(self.links.chip.word_bits[self.s])
        return part.bits * self.wires[times] + (times - 1.0) * part.child_pj
