"""`imbalance`: compute units wait for the slowest of those with which they share tiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign

from ..actions import SKIP
from ..layout import Layout
from ..nest import DesignChoices, Nest
from ..prepared import ModelTables
from ..removal import Removal
from .maxima import limits_of, maxima_of, rank_of
from .ratios import WorkBoxes, normal_maximum, ratios_of


@attrs.frozen(eq=False)
class Thinned:
    """What thins the work of a batch, and where work stays with one tile."""

    looks: Array
    """(operands, B) as of `finest_looks`."""
    held: Array
    """(S-1, T, D, B) and .."""
    grows: Array
    """.. (S-1, T, B) as of `_stays`."""

    @classmethod
    def of(cls, known: ModelTables, nest: Nest, choices: DesignChoices, removal: Removal) -> Thinned:
        """`removal`: the filters that save time."""
        return cls(finest_looks(known, choices, removal), *_stays(known.layout, nest.bounds, nest.order))


def waiting_ratio(known: ModelTables, nest: Nest, choices: DesignChoices, thinned: Thinned) -> PerDesign | None:
    """(B,) the largest ratio of the fullest unit's work to the mean, of all points at which units wait; None: nothing thins
    the work of any design."""
    lay, looks = known.layout, thinned.looks
    skips = np.isfinite(looks).any(axis=0) & (nest.instances_used[lay.S] > 1.0)
    rows = np.flatnonzero(skips)
    if not rows.size:
        return None
    work, loops = points(known, nest, thinned, rows)
    count = len(work.units) // len(rows)
    units = float(choices.chip.instances[-1].max())
    found = ratios_of(maxima_of(known, units), work, np.tile(np.take(looks, rows, axis=1), count)).reshape(count, -1)
    turns, units_of = work.turns.reshape(count, -1), work.units.reshape(count, -1)
    ratio = np.ones(nest.batch)
    ratio[rows] = together(found, turns, units_of, loops.reshape(len(loops), count, len(rows))).max(axis=0)
    return ratio


def together(ratios: Array, turns: Array, units: Array, loops: Array) -> Array:
    """(J, n) ratios of points at which some of the units wait for each other already at another one, as often or more often:
    a group of these takes `ratios` of that point, and groups vary less than units do. `ratios`, `turns`, `units` (J, n);
    `loops` (K, J, n) bounds of the coupled loops."""
    found = ratios.copy()
    mean, deviation = normal_maximum(units)
    for outer in range(len(ratios)):
        for inner in range(len(ratios)):
            within = ((loops[:, inner] == 1.0) | (loops[:, inner] == loops[:, outer])).all(axis=0)
            rows = np.flatnonzero(
                within & (units[outer] > units[inner]) & (units[inner] > 1.0) & (turns[inner] >= turns[outer])
                & (ratios[outer] > 1.0) & (ratios[inner] > 1.0)
            )  # fmt: skip
            if rows.size:
                groups, _ = normal_maximum(units[outer, rows] / units[inner, rows])
                less = deviation[inner, rows] * groups / mean[outer, rows]
                all_of_them = ratios[inner, rows] + (ratios[outer, rows] - 1.0) * less
                found[outer, rows] = np.maximum(found[outer, rows], all_of_them)
    return found


def finest_looks(known: ModelTables, choices: DesignChoices, removal: Removal) -> Array:
    """(operands, B) words of the smallest tile of each operand at which a skip looks that leaves out computes; infinity:
    none does."""
    lay = known.layout
    found = np.full((len(lay.operands), choices.genes.shape[-1]), np.inf)
    for some in removal.effects:
        if some.action.target == lay.output:
            continue
        for leader, words, empty in zip(some.action.leaders, some.words, some.empty, strict=True):
            if leader != lay.output:
                if leader in lay.alike:
                    words = told_apart(words, empty, lay.occupancies[leader].density)
                row = found[lay.operands.index(leader)]
                row[some.rows] = np.minimum(row[some.rows], np.where(some.share > 0.0, words, np.inf))
    unit = known.places.compute
    if unit is not None:
        skips = unit.kind[choices.genes[unit.gene]] == SKIP
        for i, t in enumerate(lay.operands):
            found[i] = np.where(skips & choices.inside(lay)[t], 1.0, found[i])
    return found


def told_apart(words: Array, empty: Array, density: float) -> Array:
    """(n,) of the words of tiles, so many as are empty together as often as these tiles are, were each empty by itself: in one
    block all words are empty or none is."""
    from .alike import rarity

    there = (empty > 0.0) & (empty < 1.0) & np.isfinite(words)
    found = np.rint(np.log(np.where(there, empty, 0.5)) / rarity(density))
    return np.where(there, np.clip(found, 1.0, words), words)


def points(known: ModelTables, nest: Nest, thinned: Thinned, rows: Array) -> tuple[WorkBoxes, Array]:
    """The points at which compute units wait: J of them one after the other, each for all n designs `rows`; and (K, J n)
    bounds of the spatial loops along which they do."""
    lay, depth = known.layout, known.layout.problem.buffers
    columns = (nest.bounds, nest.steps, thinned.held, thinned.grows)
    bounds, steps, held, grows = (np.take(column, rows, axis=-1) for column in columns)
    groups = [(s, group) for s, group in enumerate(lay.spatial) if group is not None]
    stealing = [(s, group) for s, group in groups if lay.problem.levels[s].memory.shares_work]
    coupling = [(s, group) for s, group in groups if not lay.problem.levels[s].memory.shares_work]
    block, dim = np.repeat([s for s, _ in coupling], lay.D), np.tile(np.arange(lay.D), len(coupling))
    strides = np.zeros((0, len(rows)))
    spatial = np.concatenate([np.ones((0, len(rows))), *(bounds[group] for _, group in coupling)])
    temporal = np.cumprod(bounds[lay.temporal[::-1]], axis=0)[::-1]  # of block s and all inside
    extents, coupled, depths, next_dim, turns, pitches = [], [], [], [], [], []
    reach: dict[int, list[Array]] = {}
    if lay.alike:
        from .alike import piece_of, reach_of, strides_of

        reach, strides = reach_of(lay, bounds), strides_of(lay, bounds, [s for s, _ in coupling])
    wide: dict[int, list[Array]] = {t: [] for t in reach}

    def add(
        level: int,
        stays: Array | float,
        couples: Array,
        outermost: int,
        buffers: int,
        grown: Array,
        replaced: PerDesign,
    ) -> None:
        extent, apart = temporal[level] * stays, temporal[level]
        for s, group in groups:
            if s >= outermost:
                apart = apart * bounds[group]
                extent = extent * bounds[group] if (s, group) in stealing else extent
        for t, own in reach.items():
            wide[t].append(piece_of(lay, t, own[level], stays, apart) if not stealing else extent)
        apart = apart * stays
        pitches.append(np.where(grown < 0, 1.0, np.take_along_axis(apart, np.maximum(grown, 0)[None], axis=0)[0]))
        extents.append(extent)
        coupled.append(np.where(couples, spatial, 1.0))
        depths.append(buffers)
        next_dim.append(grown)
        turns.append(replaced)

    for h in range(1, lay.S):
        parents = {t: lay.parent(t, h) for t in range(lay.T) if lay.stored[t, h]}
        here = {t: parent for t, parent in parents.items() if parent is not None}  # what resides is never replaced
        pace = steps[h - 1] / held[h - 1].prod(axis=1)
        for t, parent in here.items():
            apart = {u: (block >= parent) & ~lay.relevant[u, dim] for u in here}
            shared = (spatial[apart[t]] > 1.0).any(axis=0)  # design by design: others in the batch must not matter
            if not shared.any():
                continue
            couples = np.zeros(spatial.shape, dtype=bool)
            for u in here:
                couples[apart[u]] |= shared & (pace[u] >= pace[t])
            add(h, held[h - 1, t], couples, parent, int(depth[h, t]), grows[h - 1, t], pace[t])
    add(0, 1.0, np.ones(spatial.shape, dtype=bool), 0, 1, np.full(len(rows), -1), np.ones(len(rows)))
    extent, loops = np.concatenate(extents, axis=-1), np.concatenate(coupled, axis=-1)
    copies, further = np.repeat(depths, len(rows)), np.tile(strides, len(extents))
    boxes = _boxes(
        known, nest, extent, loops, further, dim, copies, np.concatenate(next_dim), np.concatenate(turns),
        np.concatenate(pitches), {t: np.concatenate(own, axis=-1) for t, own in wide.items()},
    )  # fmt: skip
    return boxes, loops


def tile_work(known: ModelTables, nest: Nest, thinned: Thinned, t: int, h: int, rows: Array) -> WorkBoxes:
    """What the lanes that use one tile of t at level h do with it."""
    lay = known.layout
    parent = lay.parent(t, h)
    assert parent is not None
    bounds = np.take(nest.bounds, rows, axis=-1)
    groups = [(s, group) for s, group in enumerate(lay.spatial) if group is not None and s >= parent]
    dim = np.tile(np.arange(lay.D), len(groups))
    here = [np.where((s >= h) | ~lay.relevant[t][:, None], bounds[group], 1.0) for s, group in groups]
    loops = np.concatenate([np.ones((0, len(rows))), *here])
    inside = np.prod([bounds[group] for group in lay.temporal[h:]], axis=0)
    stays = np.take(thinned.held[h - 1, t], rows, axis=1)
    apart = math.prod((bounds[group] for _, group in groups), start=inside)
    wide, strides = dict[int, Array](), np.zeros((0, len(rows)))
    if lay.alike:
        from .alike import piece_of, reach_of, strides_of

        strides = strides_of(lay, bounds, [s for s, _ in groups])
        wide = {u: piece_of(lay, u, own[h], stays, apart) for u, own in reach_of(lay, bounds).items()}
    one, none = np.ones(len(rows)), np.full(len(rows), -1)
    return _boxes(known, nest, inside * stays, loops, strides, dim, one.astype(np.int64), none, one, one, wide)


def _stays(lay: Layout, bounds: Array, order: Array) -> tuple[Array, Array]:
    """Per block but the innermost and per tensor: bounds (S-1, T, D, n) of the loops that leave the tile inside in its
    place, and the dimension (S-1, T, n) of the next one, which replaces it; -1: none."""
    count = bounds.shape[-1]
    found, dims = [], []
    stay, grows = np.ones((lay.T, lay.D, count)), np.full((lay.T, count), -1)
    for s in range(lay.S - 1):
        here, inwards = bounds[lay.temporal[s]], order[lay.temporal[s]].astype(np.int64)
        position = np.empty(inwards.shape, dtype=np.int8)
        np.put_along_axis(position, inwards, np.arange(lay.D, dtype=np.int8)[:, None], axis=0)
        moves = (here > 1.0) & lay.relevant[:, :, None]
        last = np.where(moves, position, np.int8(-1)).max(axis=1)
        inner = np.where(position > last[:, None], here, 1.0)
        none = last < 0
        stay = np.where(none[:, None], inner * stay, inner)
        grows = np.where(none, grows, np.take_along_axis(inwards, np.maximum(last, 0).astype(np.int64), axis=0))
        found.append(stay)
        dims.append(grows)
    return np.array(found), np.array(dims)


def _boxes(
    known: ModelTables,
    nest: Nest,
    extent: Array,
    loops: Array,
    strides: Array,
    dim: Array,
    depth: Array,
    grows: Array,
    turns: PerDesign,
    pitch: Array,
    wide: Mapping[int, Array],
) -> WorkBoxes:
    """Of boxes of work with these extents (D, N), done by units along `loops` (K, N), `strides` (K, N) apart, over the
    dimensions `dim` (K,). The next part is `pitch` (N,) further in the dimension `grows` (N,);
    `wide`: other extents by operand (see `alike.piece_of`)."""
    lay = known.layout

    def lanes(*tensors: int) -> PerDesign:
        found = np.ones(loops.shape[1])
        for k in np.flatnonzero(lay.relevant[list(tensors)][:, dim].all(axis=0)):
            found *= loops[k]
        return found

    boxes, limits, growth, least = [], [], [], []
    for t in lay.operands:
        widths = nest.box(t, wide.get(t, extent))
        boxes.append(widths if known.tables[t].by_shape else [np.prod(widths, axis=0)])
        limits.append(limits_of(known, t))
        moved = lay.relevant[t][grows] & (grows >= 0)
        rank = rank_of(lay, t)[grows]
        growth.append(np.where(moved, 1 + rank, 0))
        alike = lay.alike.get(t, (1,) * len(lay.ranks[t]))
        least.append(np.minimum(pitch, np.array([*alike, 1])[rank]))  # a tensor may have no rank
    own = [lanes(t) for t in lay.operands]
    for i, t in enumerate(lay.operands):
        if t in lay.alike and (own[i] > 1.0).any():
            from .alike import independent

            own[i] = independent(lay, t, own[i], loops, strides, dim)
    pairs = {}
    for (i, t), (j, u) in combinations(enumerate(lay.operands), 2):
        pairs[i, j] = np.minimum(lanes(t, u), np.minimum(own[i], own[j]))
    return WorkBoxes(boxes, limits, growth, least, own, pairs, loops.prod(axis=0), extent.prod(axis=0), depth, turns)
