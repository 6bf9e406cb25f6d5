"""Skipping and gating at storage: leader tiles and the share of accesses they remove (section 7.1)."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from sparsemap import Filter, Mechanism
from sparsemap.backend import Backend
from sparsemap.pieces.boundary import eliminated_of
from sparsemap.problem.problem import Place

from .nest import Nest
from .occupancy import TensorTables

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
    compute: Action | None
    """What the compute unit does: the strongest action of a candidate, by the first filter that has it."""

    @classmethod
    def of(cls, problem: Any) -> PlaceTables:
        mechanisms = problem.candidates("mechanism")
        actions: dict[tuple[int, int, tuple[int, ...]], Action] = {}
        needs: dict[tuple[int, int], Array] = {}
        compute: Action | None = None
        count = len(mechanisms)
        for gene, place in enumerate(problem.places):
            if place.storage is None:
                compute = Action(place, gene, -1, (), np.zeros(count, dtype=np.int8), {})
            for m, mechanism in enumerate(mechanisms):
                for rule in mechanism.filters(place):
                    target, leaders = problem.filter_tensors(mechanism, rule)
                    kind = KINDS[rule.action]
                    if mechanism.needs_metadata(place):
                        for leader in leaders:
                            needs.setdefault((gene, leader), np.zeros(count, dtype=bool))[m] = True
                    if compute is not None and place.storage is None:
                        if kind > compute.kind[m]:
                            compute.kind[m], compute.filters[m] = kind, rule
                        continue
                    key = (gene, target, leaders)
                    if key not in actions:
                        actions[key] = Action(place, gene, target, leaders, np.zeros(count, dtype=np.int8), {})
                    actions[key].kind[m] = kind
                    actions[key].filters[m] = rule
        return cls(
            tuple(actions.values()), mechanisms, tuple((g, t, flags) for (g, t), flags in needs.items()), compute
        )

    def eliminated(self, action: Action, genes: Array, empty: Array, xp: Backend) -> Array:
        """Lets mechanisms with limits of their own say how much of `empty` they remove."""
        for m, rule in action.filters.items():
            mechanism = self.mechanisms[m]
            if type(mechanism).eliminated is Mechanism.eliminated:
                continue
            rows = xp.flatnonzero(genes == m)
            if len(rows):
                share = eliminated_of(mechanism, action.place, rule, xp.to_host(empty[rows]))
                empty = xp.put(xp.copy(empty), rows, xp.asarray(share))
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
    lay, xp = nest.layout, nest.xp
    shape = (lay.T, lay.S, nest.batch)
    kinds, shares = xp.zeros(shape, dtype=xp.int8), xp.zeros(shape)
    wanted: list[tuple[int, int, tuple[int, int], Array, Array]] = []
    for position, action in enumerate(sorted(places.actions, key=lambda a: -(a.place.storage or 0))):
        kind = xp.take(xp.constant(action.kind), genes[action.gene])
        rows = xp.flatnonzero(kind)
        level = action.place.storage
        if not len(rows) or level is None:
            continue
        level = lay.holder(action.target, level)
        share = 1.0 - _leaders_full(nest, rows, level, action.target, action.leaders, tables)
        share = places.eliminated(action, genes[action.gene][rows], share, xp)
        for which in (GATE, SKIP):
            mine = kind[rows] == which
            if mine.any():
                wanted.append((which, position, (action.target, level), rows[mine], share[mine]))
    for which, _, (t, s), rows, share in sorted(wanted, key=lambda entry: entry[:2]):
        better = (kinds[t, s][rows] == NONE) | (share > shares[t, s][rows])
        kinds = xp.put(kinds, (t, s, rows[better]), which)
        shares = xp.put(shares, (t, s, rows[better]), share[better])
    return Removal(kinds, shares)


def _leaders_full(
    nest: Nest, rows: Array, level: int, t: int, leaders: tuple[int, ...], tables: list[TensorTables]
) -> Array:
    """(n,) probability that no leader tile is empty, for the designs `rows` acting on tensor t at `level`.

    Loops are (P, n) arrays by position, innermost first. The *target loop* is the innermost loop that moves the target;
    the *region* is everything inside it and, outside, the spatial loops and (if the target loop is spatial) the temporal
    loops over which the target stays. A leader tile is the leader's part of the region, less the loops that move both.
    """
    lay, xp = nest.layout, nest.xp
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
        dims, bounds = nest.loops(which, rows)
        is_spatial = np.repeat([flag for _, flag in groups], lay.D)[:, None]
        # at the compute unit only the spatial loops of the innermost level are searched for a target
        searched = np.repeat([not at_compute or lay.block[g] == lay.S - 1 for g in which], lay.D)[:, None]
    else:
        dims, bounds = xp.zeros((1, len(rows)), dtype=xp.int8), xp.ones((1, len(rows)))
        is_spatial, searched = np.zeros((1, 1), dtype=bool), np.ones((1, 1), dtype=bool)
    last_searched = int(searched.sum()) - 1
    is_spatial, searched = xp.constant(is_spatial), xp.constant(searched)
    busy = bounds > 1.0
    moved = xp.take(xp.constant(lay.relevant[t]), dims)
    hits = busy & moved & searched
    hit = hits.any(axis=0)
    place = xp.arange(len(bounds))[:, None]
    target = xp.where(hit, xp.first(hits), last_searched)
    columns = xp.arange(len(rows))
    target_spatial = hit & is_spatial[:, 0][target]
    outside = (place > target) & busy
    temporal_moves = outside & ~is_spatial & moved
    stays = ~xp.seen(temporal_moves) & ~moved & ~is_spatial & target_spatial
    grows = outside & (is_spatial | stays)
    joined = grows | ((place == target) & hit)
    factor = xp.where(place <= target, bounds, 1.0)
    region_factor = xp.where(grows, bounds, factor)
    base, region = [], []
    for d in range(lay.D):
        mine = dims == d
        base.append(inside[d] * xp.product(xp.where(mine, factor, 1.0)))
        region.append(inside[d] * xp.product(xp.where(mine, region_factor, 1.0)))
    words = nest.volume(t, base)
    full = xp.ones(len(rows))
    for c in leaders:
        moves = xp.take(xp.constant(lay.relevant[c]), dims)
        shared = joined & moves & moved
        before = xp.concatenate([xp.zeros((1, len(rows)), dtype=bool), xp.seen(shared)[:-1]])
        again = joined & moves & before & target_spatial  # a second such loop: the tiles no longer match
        useless = again.any(axis=0)
        shared = shared & ~again
        shared_bounds = xp.where(shared, bounds, 1.0)
        extent = _leader_tile(nest, t, c, region, words, shared_bounds, dims, dims[target, columns])
        empty = tables[c].empty(nest.box(c, extent) if tables[c].by_shape else [nest.volume(c, extent)])
        full = xp.where(useless, full, full * (1.0 - empty))
    return full


def _leader_tile(
    nest: Nest, t: int, c: int, region: list[Array], words: Array, shared: Array, dims: Array, target_dim: Array
) -> list[Array]:
    """Per dimension, (n,) extents of the leader's tile: the region less the loops that move both tensors (7.1)."""
    lay, xp = nest.layout, nest.xp
    both = [d for d in range(lay.D) if lay.relevant[t, d] and lay.relevant[c, d]]
    together = xp.product(shared)
    ratio = words / together
    need = xp.where(ratio >= 1.0, 1.0, xp.ceil(xp.divide(1.0, ratio)))
    extent = list(region)
    for d in both:
        factor = xp.product(xp.where(dims == d, shared, 1.0))
        on = factor > 1.0
        extent[d] = xp.where(on, xp.ceil(extent[d] / (factor / need)), extent[d])
        need = xp.where(on, need / factor, need)
    extra = xp.flatnonzero(need > 1.0)
    if len(extra):
        which = target_dim[extra]
        for d in range(lay.D):
            rows = extra[which == d]
            extent[d] = xp.put(xp.copy(extent[d]), rows, xp.trunc(extent[d][rows] * need[rows]))
    return extent
