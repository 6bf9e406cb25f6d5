"""What the tiles cost that the children of a level hold together: a part of the lower bound (`bound_links`).

They hold a tile that is one of theirs times the way to share the fan-out. If it is not all of the level's own tile, some loop
inside that is the innermost around it. What this loop moves is delivered in each of its steps. Any other tensor either stays,
as no loop inside moves it, or comes again with every tile of the level. A filter looks at what the tile of a child meets: the
finer the tiles, the more it removes, and the more of them come. A word that R children use crosses the tree to all of them
and is written R times: the R of tensors that share a fan-out cannot all be small. Without the charge `network` the last two
are not counted: so searches under `timeloop` stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemap.pieces.contracts.base import Array

from . import native
from .bound_tiles import FanoutShares, OuterTiles, TileGrid, delivered, possible

if TYPE_CHECKING:
    from .bound_links import Handed, LeastLinks

SLOWER = 1.15, 1.6, 2.5, 5.0
"""Few children save energy and take longer: times, over those of the outermost level, that are told apart."""
Costs = tuple[Array, Array, Array]


class InnerTiles:
    """Costs of the link between a level and the next one inside, over all that the children hold together: n tiles."""

    def __init__(self, links: LeastLinks, s: int, outer: OuterTiles, grid: TileGrid, splits: Array) -> None:
        self.links, self.s, self.outer, self.grid = links, s, outer, grid
        self.words, self.layout, self.accesses = links.words, links.layout, links.accesses
        self.fits = grid.fits(self.words, s + 1)
        self.tiles = np.flatnonzero(grid.spread(self.fits, splits))
        self.extents = grid.extents.take(self.tiles, axis=1)
        self.volumes, loops = grid.words(self.extents), self.layout.sizes[:, None] / self.extents
        self.possible = possible(loops)
        lay = self.layout
        self.stays = [self.extents[~lay.relevant[t]].prod(axis=0) for t in range(lay.T)]
        self.known = [t for t in range(lay.T) if not lay.holes[t] and lay.stored[t, s] and lay.child(t, s) == s + 1]
        self.sent = {
            t: delivered(lay, t, self.volumes[t] * links.inside[t], grid.widths(t, self.extents), self.extents, loops)
            for t in self.known
        }
        self.limit = float(splits.prod(axis=0).max())
        finer = self.known if self.words.network and s == 1 else []
        self.filtered = [t for t in finer if self.accesses.filters(t, s)]
        """Tensors of which filters hold back what the tiles need."""
        self.parts = [self.part(t) for t in range(lay.T)]
        self.every = {t: self.part(t, every=True) for t in self.filtered}
        """Without filters."""
        self.units = links.units if s == lay.S - 2 == 1 and self.words.network else None
        self.promise: tuple[Array, Array] | None = None
        """Of the whole grid (K, N): pJ, infinity where none fits, with the loop that is cheapest around it, and this loop."""

    def costs(self, own: list[Handed], work: float, least: float, copies: list[float]) -> Costs | None:
        """pJ (K, N), cycles (N,) and (K,) tiers: of cycles, those of `SLOWER` times `least`, and of the most children that
        share a word of the output, by the place in `copies`, which changes first. None: none fits. `own`: what the tiles of
        the level need; `work`: cycles of computing for one child."""
        lay, s, words, grid, limit = self.layout, self.s, self.words, self.grid, self.limit
        inner, tiers = s == lay.S - 2 == 1 and words.network, dict[int, int]()
        shares = FanoutShares.unknown(lay.D, limit, len(self.tiles))
        if words.network:
            shares = grid.shares(self.fits, limit, self.tiles)
        ends = least * np.array(SLOWER) if inner else np.zeros(0)
        summed = (
            np.searchsorted(copies, shares.most[~lay.relevant[lay.output]].prod(axis=0)) if inner else len(copies) - 1
        )
        tier = (shares.children[:, None] * ends <= work).sum(axis=1) * len(copies) + summed
        rows = np.array([tiers.setdefault(k, len(tiers)) for k in tier.tolist()])
        given = rows, shares, self._units(shares), [self._ways(t, shares) for t in self.known]
        energy = self.least(len(tiers), given)
        if np.isinf(energy).all():
            return None
        self.promise = energy.min(axis=1).astype(np.float32), energy.argmin(axis=1).astype(np.int8)
        busy = np.full(len(self.fits), np.inf)
        busy[self.tiles] = np.where(self.possible, self.links.busy(s, self.parts), np.inf).min(axis=0)
        cycles = grid.least_inside(busy)[self.outer.tile]
        if s > 1 or not words.network:
            return grid.least_inside(energy[0].min(axis=0))[None, self.outer.tile], cycles, np.array([*tiers])
        return self.in_classes(energy, own), cycles, np.array([*tiers])

    def moved(self, t: int) -> Array:
        """(D, n) words that children get with each loop innermost around their tiles."""
        sent = self.sent[t] if t in self.sent else np.zeros(self.possible.shape)
        return np.maximum(sent, self.accesses.touched[t])

    def part(self, t: int, every: bool = False) -> Handed:
        """(D, n) of each; `every`: without filters."""
        return self.links.handed(t, self.s, self.moved(t), self.stays[t], self.volumes[t], every)

    def in_classes(self, energy: Array, own: list[Handed]) -> Array:
        """(K, N) the least by class: what no loop inside moves stays, or comes again with every tile of the level."""
        lay, grid, outer = self.layout, self.grid, self.outer
        loops, turns = lay.sizes[:, None] / grid.extents, lay.turns(grid.extents)
        some, words = [t for t in self.known if not lay.windowed[t]], grid.words(grid.extents)
        again, mine = np.zeros((len(some), len(words[0]))), np.zeros((len(some), len(outer.tile)))
        still: Array = np.zeros((lay.D, len(some)))
        """pJ of tensors that a loop does not move, as `energy` has them."""
        for i, t in enumerate(some):
            stays = grid.extents[~lay.relevant[t]].prod(axis=0)
            steps = np.where(lay.relevant[t][:, None], loops, turns).prod(axis=0)
            come = np.maximum(steps * words[t] * self.links.inside[t], self.accesses.touched[t])
            again[i] = self.links.handed(t, self.s, come, stays, words[t]).pj
            mine[i] = own[t].pj
            still[:, i] = np.where(self.possible, self.parts[t].pj, 0.0).max(axis=1)
        found = np.empty((len(energy), len(outer.tile)))
        moves = lay.relevant[some]
        native.step("in_classes", found, energy, outer.tile, outer.loop, again, mine, still, moves, *grid.within)
        return found

    def least(self, count: int, given: tuple[Any, ...]) -> Array:
        """pJ (count, D, N) of the tiles with each loop innermost around them, over all ways to share the fan-out among the
        children, `given` by `costs`."""
        tier, shares, units, tensors = given
        lay, whole = self.layout, np.ascontiguousarray
        base, plain = np.zeros(self.possible.shape), list[tuple[Any, ...]]()
        for t, part in enumerate(self.parts):
            moves = lay.relevant[t] & (t in self.filtered)
            base = base + np.where(moves[:, None], 0.0, part.pj)
        for t, ways in zip(self.known, tensors, strict=True):
            columns: list[Any] = [*map(whole, (self.parts[t].pj, self.parts[t].bits, self.parts[t].child_pj))]
            if t in self.filtered:
                every = self.every[t]
                columns += map(whole, (every.pj, every.bits, every.child_pj, np.log2(self.moved(t))))
                columns += [lay.relevant[t], *self.accesses.plan(t, self.s)]
            plain.append((ways, *columns))
        energy = np.full((count, lay.D, len(self.fits)), np.inf)
        inside = self.tiles, self.possible, whole(base), tier, shares.rows, whole(shares.places), shares.fits
        native.step("shared", energy, *inside, whole(np.log2(self.extents)), units, tuple(plain))
        return energy

    def _ways(self, t: int, shares: FanoutShares) -> Array:
        """(W, 2 + J) of a tensor: pJ of a bit to as many children as have the same words more than to one, how many others
        these are, and log2 of the most children along the dimensions of its filters."""
        times, dims = (2.0**shares.steps)[~self.layout.relevant[t]].prod(axis=0), self.accesses.judged(t, self.s)
        wires = self.words.wires_pj(self.s, np.array([1.0, *times]))
        more = (
            np.maximum(0.0, wires[1:] - wires[0]) / float(self.links.chip.word_bits[self.s]) if len(wires) > 1 else 0.0
        )
        logs = np.log2(shares.most[dims if t in self.filtered else []])
        return np.vstack([np.broadcast_to(more, times.shape), times - 1.0, logs]).T.copy()

    def _units(self, shares: FanoutShares) -> tuple[Array, ...] | None:
        """Accesses next to the compute units: the tables of `LeastUnits`, of tiles log2 of their extents, rounded down, and of
        words of operands, of ways log2 of the children along every dimension and of the most parts of operands they hold."""
        if not (units := self.units):
            return None
        found = (
            units.widths.ravel(),
            units.shape,
            np.log2(self.extents * (1.0 + 1e-12)).astype(np.int64),
            shares.steps.T.copy(),
        )
        if not units.operands:
            return found
        parts, same = [], 2.0**shares.steps
        for t in units.operands:
            moves = self.layout.relevant[t]
            most = np.minimum(shares.most[moves].prod(axis=0), shares.children / same[~moves].prod(axis=0))
            parts.append(np.log2(most))
        words = np.log2([self.volumes[t] for t in units.operands])
        return *found, units.told_alone.ravel(), units.told.ravel(), words, np.array(parts).T.copy()
