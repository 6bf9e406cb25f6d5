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
    """Per tensor and level: kind (B,) and probability (B,) that an access is removed."""

    kind: dict[tuple[int, int], Array]
    share: dict[tuple[int, int], Array]


def removals(nest: Nest, genes: Array, places: PlaceTables, tables: list[TensorTables]) -> Removal:
    """All actions of a batch; `genes` is (A, B). Gating is processed before skipping; the larger share wins."""
    lay = nest.layout
    found = Removal({}, {})
    for wanted in (GATE, SKIP):
        for action in sorted(places.actions, key=lambda a: -(a.place.storage or 0)):
            kind = action.kind[genes[action.gene]]
            rows = np.flatnonzero(kind == wanted)
            if not rows.size:
                continue
            t = action.target
            level = action.place.storage
            assert level is not None
            while not lay.stored[t, level]:
                level -= 1
            share = 1.0 - _leaders_full(nest, rows, level, t, action.leaders, tables)
            share = places.eliminated(action, genes[action.gene][rows], share)
            key = (t, level)
            if key not in found.kind:
                found.kind[key] = np.zeros(nest.batch, dtype=np.int8)
                found.share[key] = np.zeros(nest.batch)
            better = (found.kind[key][rows] == NONE) | (share > found.share[key][rows])
            found.kind[key][rows[better]] = wanted
            found.share[key][rows[better]] = share[better]
    return found


def _leaders_full(
    nest: Nest, rows: Array, level: int, t: int, leaders: tuple[int, ...], tables: list[TensorTables]
) -> Array:
    """(n,) probability that no leader tile is empty, for the designs `rows` acting on tensor t at `level`."""
    lay = nest.layout
    child = lay.child(t, level)
    at_compute = child is None
    inner = lay.S if child is None else child
    base = nest.extents[inner][:, rows].copy()  # e: extents up to and including the target loop
    leader = base.copy()  # f: extents of the leader tile
    count = len(rows)
    here = np.arange(count)
    found = np.zeros(count, dtype=bool)
    target_spatial = np.zeros(count, dtype=bool)
    target_dim = np.zeros(count, dtype=np.intp)
    moving_temporal = np.zeros(count, dtype=bool)  # a temporal loop that moves the target has been passed
    seen = {c: np.zeros(count, dtype=bool) for c in leaders}
    useless = {c: np.zeros(count, dtype=bool) for c in leaders}
    divide = {c: np.ones((lay.D, count)) for c in leaders}
    shared = {c: np.ones(count) for c in leaders}
    moves = lay.relevant

    def join(on: Array, dim: Array, bound: Array, closing: Array | bool) -> None:
        """A loop of the region; loops over dimensions that move target and leader together are divided out again."""
        for c in leaders:
            again = on & closing & seen[c] & moves[c][dim]
            useless[c] |= again
            both = on & ~again & moves[c][dim] & moves[t][dim]
            some = np.flatnonzero(both)
            divide[c][dim[some], some] *= bound[some]
            shared[c][some] *= bound[some]
            seen[c] |= both

    groups: list[tuple[int, bool]] = []
    for s in range(inner - 1, level - 1, -1):
        spatial = lay.spatial[s]
        if spatial is not None:
            groups.append((spatial, True))
        if not at_compute:
            groups.append((lay.temporal[s], False))
    for group, spatial_group in groups:
        searching = not at_compute or lay.block[group] == lay.S - 1
        for position in range(lay.D - 1, -1, -1):
            dim = nest.order[group, position][rows].astype(np.intp)
            bound = nest.loop_bounds[group, position][rows]
            busy = bound > 1.0
            if not busy.any():
                continue
            looking = ~found if searching else np.zeros(count, dtype=bool)
            base[dim, here] *= np.where(looking, bound, 1.0)
            leader[dim, here] *= np.where(looking, bound, 1.0)
            hit = looking & busy & moves[t][dim]
            past = ~looking & busy
            if spatial_group:
                grow = past
            else:
                moving_temporal |= past & target_spatial & moves[t][dim]
                grow = past & target_spatial & ~moving_temporal & ~moves[t][dim]
            leader[dim, here] *= np.where(grow, bound, 1.0)
            found |= hit
            target_spatial |= hit & spatial_group
            target_dim = np.where(hit, dim, target_dim)
            if hit.any() or grow.any():
                join(hit | grow, dim, bound, target_spatial)
        if at_compute and searching:
            found[:] = True  # without a moving spatial loop the region is the words of one time step

    words = nest.volume(t, base)
    full = np.ones(count)
    for c in leaders:
        extent = leader.copy()
        ratio = words / shared[c]
        need = np.where(ratio >= 1.0, 1.0, np.ceil(1.0 / ratio))
        for d in range(lay.D):
            if not moves[c][d] or not moves[t][d]:
                continue
            factor = divide[c][d]
            on = factor > 1.0
            extent[d] = np.where(on, np.ceil(extent[d] / (factor / need)), extent[d])
            need = np.where(on, need / factor, need)
        extra = np.flatnonzero(need > 1.0)
        extent[target_dim[extra], extra] = np.trunc(extent[target_dim[extra], extra] * need[extra])
        widths = nest.box(c, extent)
        volume = widths[0].copy()
        for w in widths[1:]:
            volume *= w
        empty = tables[c].empty(tables[c].key(widths, volume))
        full = np.where(useless[c], full, full * (1.0 - empty))
    return full
