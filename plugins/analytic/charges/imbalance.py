"""`imbalance`: compute units wait for the slowest of those with which they share tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Charge
from sparsemap.pieces.contracts.base import Array, PerDesign

from ..actions import SKIP
from ..layout import Layout
from ..run import Run
from .maxima import Maxima, Part


@attrs.frozen(kw_only=True)
class Imbalance(Charge):
    """Cycles of the compute units grow by the largest ratio of the fullest unit's work to the mean, of all points at which
    units wait."""

    type_name: ClassVar[str] = "imbalance"

    def worked(self, run: Run) -> None:
        lay = run.layout
        maxima: Maxima = run.problem.remember(
            (Imbalance, "maxima"), lambda: Maxima([lay.occupancies[t] for t in lay.operands])
        )
        looks = finest_looks(run)
        skips = np.isfinite(looks).any(axis=0) & (run.nest.instances_used[lay.S] > 1.0)
        rows = np.flatnonzero(skips)
        if not rows.size:
            return
        ratio = np.ones(run.nest.batch)
        points = list(Points(run, rows).all())
        found = maxima.ratios(Part.join(points), np.tile(looks[:, rows], len(points)))
        ratio[rows] = found.reshape(len(points), len(rows)).max(axis=0)
        run.parts["imbalance"] = ratio
        run.compute_cycles = np.ceil(run.compute_cycles * ratio)


def finest_looks(run: Run) -> Array:
    """(operands, B) words of the smallest tile of each operand at which a skip looks that leaves out computes; infinity:
    none does."""
    lay = run.layout
    found = np.full((len(lay.operands), run.nest.batch), np.inf)
    for some in run.time_removal.wanted:
        if some.action.target == lay.output:
            continue
        for leader, words in zip(some.action.leaders, some.words, strict=True):
            if leader != lay.output:
                row = found[lay.operands.index(leader)]
                row[some.rows] = np.minimum(row[some.rows], np.where(some.share > 0.0, words, np.inf))
    unit = run.places.compute
    if unit is not None:
        skips = unit.kind[run.genes[unit.gene]] == SKIP
        for i, t in enumerate(lay.operands):
            found[i] = np.where(skips & run.packed[t], 1.0, found[i])
    return found


class Points:
    """The points at which compute units wait, of the designs `rows`."""

    def __init__(self, run: Run, rows: Array) -> None:
        self.run, self.layout = run, run.layout
        lay, nest = self.layout, run.nest
        self.bounds, self.order = nest.bounds[..., rows], nest.order[..., rows].astype(np.int64)
        self.steps = nest.steps[:, rows]
        self.steals = [level.memory.work_stealing for level in lay.levels]
        inside = np.ones(self.bounds.shape[1:])
        self.temporal = [inside] * (lay.S + 1)
        for s in range(lay.S - 1, -1, -1):
            inside = inside * self.bounds[lay.temporal[s]]
            self.temporal[s] = inside
        position = np.empty(self.order.shape, dtype=np.int64)
        places = np.broadcast_to(np.arange(lay.D)[None, :, None], self.order.shape)
        np.put_along_axis(position, self.order, places, axis=1)
        self.position = position

    def all(self) -> Iterator[Part]:
        lay, depth = self.layout, self.run.problem.buffers
        stays = {t: self._stays(t) for t in range(lay.T)}
        for h in range(1, lay.S):
            here = [t for t in range(lay.T) if lay.stored[t, h]]
            turns = {t: self.steps[h - 1] / stays[t][h - 1][0].prod(axis=0) for t in here}
            for t in here:
                parent = lay.parent(t, h)
                assert parent is not None
                if not self._shared(t, parent).any():
                    continue
                held, grows = stays[t][h - 1]
                coupled = [
                    (s, d, self._any(turns, t, d))
                    for s, d in self._spatial(parent)
                    if self._any(turns, t, d) is not None
                ]
                extent = self.temporal[h] * held
                yield self._part(extent, coupled, parent, int(depth[h, t]), grows, turns[t])
        none = np.full(self.bounds.shape[2], -1)
        everywhere = [(s, d, None) for s, d in self._spatial(0)]
        yield self._part(self.temporal[0], everywhere, 0, 1, none, np.ones(len(none)))

    def _spatial(self, outermost: int) -> list[tuple[int, int]]:
        """Spatial loops from a level inwards that no level shares out: level, dimension."""
        lay = self.layout
        levels = [s for s in range(outermost, lay.S) if lay.spatial[s] is not None and not self.steals[s]]
        return [(s, d) for s in levels for d in range(lay.D)]

    def _shared(self, t: int, parent: int) -> Array:
        """Whether compute units share tiles of tensor t."""
        found = np.zeros(self.bounds.shape[2], dtype=bool)
        for s, d in self._spatial(parent):
            if not self.layout.relevant[t, d]:
                found |= self.bounds[self.layout.spatial[s], d] > 1.0
        return found

    def _any(self, turns: dict[int, PerDesign], t: int, d: int) -> Array | None:
        """Where loops of a dimension couple units at the pace of tensor t; None: nowhere."""
        found = [turns[u] >= turns[t] for u in turns if not self.layout.relevant[u, d]]
        return np.any(found, axis=0) if found else None

    def _stays(self, t: int) -> list[tuple[Array, Array]]:
        """Per block: (D, n) bounds of the loops that leave the tile inside in its place, and (n,) the dimension of the
        next one, which replaces it; -1: none."""
        lay, found = self.layout, []
        stay, grows = np.ones(self.bounds.shape[1:]), np.full(self.bounds.shape[2], -1)
        for s in range(lay.S):
            bounds, position = self.bounds[lay.temporal[s]], self.position[lay.temporal[s]]
            moves = (bounds > 1.0) & lay.relevant[t][:, None]
            last = np.where(moves, position, -1).max(axis=0)
            run = np.where(position > last, bounds, 1.0)
            stay = np.where(last < 0, run * stay, run)
            at = np.take_along_axis(self.order[lay.temporal[s]], np.maximum(last, 0)[None], axis=0)[0]
            grows = np.where(last < 0, grows, at)
            found.append((stay, grows))
        return found

    def _part(
        self, extent: Array, coupled: list[tuple[int, int, Array | None]], outermost: int, depth: int, grows: Array,
        turns: PerDesign,
    ) -> Part:  # fmt: skip
        lay = self.layout
        for s in range(outermost, lay.S):
            group = lay.spatial[s]
            if group is not None and self.steals[s]:
                extent = extent * self.bounds[group]
        loops = []
        for s, d, where in coupled:
            bound = self.bounds[lay.spatial[s], d]
            loops.append((d, bound if where is None else np.where(where, bound, 1.0)))

        def lanes(*tensors: int) -> PerDesign:
            found = np.ones(extent.shape[1])
            for d, bound in loops:
                if all(lay.relevant[t, d] for t in tensors):
                    found = found * bound
            return found

        boxes, limits, growth = [], [], []
        for t in lay.operands:
            widths = self.run.nest.box(t, extent)
            boxes.append(widths if self.run.tables[t].by_shape else [np.prod(widths, axis=0)])
            whole = np.array(self.run.nest.box(t, lay.sizes[:, None])).reshape(-1)
            limits.append(whole if self.run.tables[t].by_shape else whole.prod(keepdims=True))
            moved = lay.relevant[t][np.maximum(grows, 0)] & (grows >= 0)
            growth.append(np.where(moved, 1 + _rank_of(lay, t)[np.maximum(grows, 0)], 0))
        pairs = {(i, j): lanes(t, u) for i, t in enumerate(lay.operands) for j, u in enumerate(lay.operands) if i < j}
        own = [lanes(t) for t in lay.operands]
        return Part(
            boxes, limits, growth, own, pairs, lanes(), extent.prod(axis=0), np.full(extent.shape[1], depth), turns
        )


def _rank_of(lay: Layout, t: int) -> Array:
    """(D,) the tensor rank that a dimension moves; 0 if none, or where shapes do not matter."""
    found = np.zeros(lay.D, dtype=np.int64)
    if lay.occupancies[t].by_shape:
        for r, rank in enumerate(lay.ranks[t]):
            for d, _ in rank:
                found[d] = r
    return found
