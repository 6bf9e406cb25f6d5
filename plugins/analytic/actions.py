"""Skipping and gating at storage: leader tiles and the share of accesses they remove (section 7.1)."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from sparsemap import Filter, Mechanism
from sparsemap.problem import Place

from .layout import Layout
from .nest import Nest
from .tables import TensorTables

Array = np.ndarray
NONE, GATE, SKIP = 0, 1, 2
KINDS = {"none": NONE, "gate": GATE, "skip": SKIP}


@attrs.frozen(eq=False)
class Action:
    """One filter that candidates of a place apply: `kind` and `mechanisms` are indexed by candidate."""

    place: Place
    gene: int
    target: int
    leaders: tuple[int, ...]
    kind: Array
    """(M,) int8: none, gate or skip."""
    filters: dict[int, Filter]


@attrs.frozen(eq=False)
class PlaceTables:
    """The filters of all places, and per place which leaders a candidate needs metadata of."""

    actions: tuple[Action, ...]
    mechanisms: tuple[Mechanism, ...]
    needs: tuple[tuple[int, int, Array], ...]
    """(gene, tensor, (M,) bool): the candidate needs metadata of the tensor there."""
    compute: tuple[int, Array] | None
    """(gene, (M,) kind) of the compute unit."""

    @classmethod
    def of(cls, problem: Any) -> PlaceTables:
        mechanisms = problem.candidates("mechanism")
        actions: dict[tuple[int, int, tuple[int, ...]], Action] = {}
        needs: dict[tuple[int, int], Array] = {}
        compute = None
        count = len(mechanisms)
        for gene, place in enumerate(problem.places):
            if place.storage is None:
                compute = (gene, np.zeros(count, dtype=np.int8))
            for m, mechanism in enumerate(mechanisms):
                for rule in mechanism.filters(place):
                    target = problem.role(rule.target)
                    leaders = tuple(problem.role(name) for name in rule.leaders)
                    kind = KINDS[rule.action]
                    if mechanism.needs_metadata(place):
                        for leader in leaders:
                            needs.setdefault((gene, leader), np.zeros(count, dtype=bool))[m] = True
                    if place.storage is None:
                        compute[1][m] = max(compute[1][m], kind)  # type: ignore[index]
                        continue
                    key = (gene, target, leaders)
                    if key not in actions:
                        actions[key] = Action(place, gene, target, leaders, np.zeros(count, dtype=np.int8), {})
                    actions[key].kind[m] = kind
                    actions[key].filters[m] = rule
        return cls(
            tuple(actions.values()), mechanisms, tuple((g, t, flags) for (g, t), flags in needs.items()), compute
        )

    def eliminated(self, action: Action, genes: Array, empty: Array) -> Array:
        """Lets mechanisms with limits of their own say how much of `empty` they remove."""
        for m, rule in action.filters.items():
            mechanism = self.mechanisms[m]
            if type(mechanism).eliminated is Mechanism.eliminated:
                continue
            rows = np.flatnonzero(genes == m)
            if rows.size:
                share = np.asarray(mechanism.eliminated(action.place, rule, empty[rows]), dtype=np.float64)
                empty = empty.copy()
                empty[rows] = np.clip(share, 0.0, 1.0)
        return empty


@attrs.define(eq=False)
class Removal:
    """What actions remove of the accesses of every tensor at every level."""

    kind: Array
    """(T, S, B) int8: none, gate or skip."""
    share: Array
    """(T, S, B) probability that an access is removed."""


def removals(nest: Nest, genes: Array, places: PlaceTables, tables: list[TensorTables]) -> Removal:
    """All actions of a batch; `genes` is (A, B). Gating is processed before skipping; the larger share wins."""
    lay = nest.layout
    shape = (lay.T, lay.S, nest.batch)
    found = Removal(np.zeros(shape, dtype=np.int8), np.zeros(shape))
    wanted: list[tuple[int, int, Array, Array, Array]] = []
    for position, action in enumerate(sorted(places.actions, key=lambda a: -(a.place.storage or 0))):
        kind = action.kind[genes[action.gene]]
        rows = np.flatnonzero(kind)
        level = action.place.storage
        if not rows.size or level is None:
            continue
        while not lay.stored[action.target, level]:
            level -= 1
        share = 1.0 - _leaders_full(nest, rows, level, action.target, action.leaders, tables)
        share = places.eliminated(action, genes[action.gene][rows], share)
        for which in (GATE, SKIP):
            mine = kind[rows] == which
            if mine.any():
                cell = np.full(int(mine.sum()), action.target * lay.S + level)
                wanted.append((which, position, cell, rows[mine], share[mine]))
    kinds, shares = found.kind.reshape(-1, nest.batch), found.share.reshape(-1, nest.batch)
    for which, _, cell, rows, share in sorted(wanted, key=lambda entry: entry[:2]):
        better = (kinds[cell, rows] == NONE) | (share > shares[cell, rows])
        kinds[cell[better], rows[better]] = which
        shares[cell[better], rows[better]] = share[better]
    return found


def _leaders_full(
    nest: Nest, rows: Array, level: int, t: int, leaders: tuple[int, ...], tables: list[TensorTables]
) -> Array:
    """(n,) probability that no leader tile is empty, for the designs `rows` acting on tensor t at `level`.

    Loops are (P, n) arrays by position, innermost first. The *target loop* is the innermost loop that moves the target;
    the *region* is everything inside it and, outside, the spatial loops and (if the target loop is spatial) the temporal
    loops over which the target stays. A leader tile is the leader's part of the region, less the loops that move both.
    """
    lay = nest.layout
    child = lay.child(t, level)
    at_compute = child is None
    inner = lay.S if child is None else child
    groups: list[tuple[int, bool]] = []
    for s in range(inner - 1, level - 1, -1):
        spatial = lay.spatial[s]
        if spatial is not None:
            groups.append((spatial, True))
        if not at_compute:
            groups.append((lay.temporal[s], False))
    inside = nest.extents[inner][:, rows]
    if groups:
        which = [g for g, _ in groups]
        dims = nest.order[which][:, ::-1].reshape(len(which) * lay.D, -1)[:, rows]
        bounds = nest.loop_bounds[which][:, ::-1].reshape(len(which) * lay.D, -1)[:, rows]
        is_spatial = np.repeat([flag for _, flag in groups], lay.D)[:, None]
        # at the compute unit only the spatial loops of the innermost level are searched for a target
        searched = np.repeat([not at_compute or lay.block[g] == lay.S - 1 for g in which], lay.D)[:, None]
    else:
        dims, bounds = np.zeros((1, len(rows)), dtype=np.int8), np.ones((1, len(rows)))
        is_spatial, searched = np.zeros((1, 1), dtype=bool), np.ones((1, 1), dtype=bool)
    busy = bounds > 1.0
    moved = lay.relevant[t][dims]
    hits = busy & moved & searched
    hit = hits.any(axis=0)
    place = np.arange(len(bounds))[:, None]
    target = np.where(hit, hits.argmax(axis=0), int(searched.sum()) - 1)
    columns = np.arange(len(rows))
    target_spatial = hit & np.broadcast_to(is_spatial, bounds.shape)[target, columns]
    outside = (place > target) & busy
    temporal_moves = outside & ~is_spatial & moved
    stays = ~np.logical_or.accumulate(temporal_moves, axis=0) & ~moved & ~is_spatial & target_spatial
    grows = outside & (is_spatial | stays)
    joined = grows | ((place == target) & hit)
    factor = np.where(place <= target, bounds, 1.0)
    region_factor = np.where(grows, bounds, factor)
    base, region = inside.copy(), inside.copy()
    for d in range(lay.D):
        mine = dims == d
        base[d] *= np.multiply.reduce(np.where(mine, factor, 1.0), axis=0)
        region[d] *= np.multiply.reduce(np.where(mine, region_factor, 1.0), axis=0)
    words = nest.volume(t, base)
    full = np.ones(len(rows))
    for c in leaders:
        moves = lay.relevant[c][dims]
        shared = joined & moves & moved
        seen = np.logical_or.accumulate(shared, axis=0)
        before = np.concatenate([np.zeros((1, len(rows)), dtype=bool), seen[:-1]])
        again = joined & moves & before & target_spatial  # a second such loop: the tiles no longer match
        useless = again.any(axis=0)
        shared &= ~again
        extent = _leader_tile(lay, t, c, region, words, np.where(shared, bounds, 1.0), dims, dims[target, columns])
        widths = nest.box(c, extent)
        volume = widths[0]
        for w in widths[1:]:
            volume = volume * w
        empty = tables[c].empty(tables[c].key(widths, volume))
        full = np.where(useless, full, full * (1.0 - empty))
    return full


def _leader_tile(
    lay: Layout, t: int, c: int, region: Array, words: Array, shared: Array, dims: Array, target_dim: Array
) -> Array:
    """(D, n) extents of the leader's tile: the region less the loops that move target and leader together (7.1)."""
    both = [d for d in range(lay.D) if lay.relevant[t, d] and lay.relevant[c, d]]
    together = np.multiply.reduce(shared, axis=0)
    ratio = words / together
    need = np.where(ratio >= 1.0, 1.0, np.ceil(1.0 / ratio))
    extent = region.copy()
    for d in both:
        factor = np.multiply.reduce(np.where(dims == d, shared, 1.0), axis=0)
        on = factor > 1.0
        extent[d] = np.where(on, np.ceil(extent[d] / (factor / need)), extent[d])
        need = np.where(on, need / factor, need)
    extra = np.flatnonzero(need > 1.0)
    if extra.size:
        extent[target_dim[extra], extra] = np.trunc(extent[target_dim[extra], extra] * need[extra])
    return extent
