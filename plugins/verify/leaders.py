"""Skipping and gating on real zeros: leader words that decide over an access, and their places (section 7.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs
import numpy as np

from sparsemap import Filter, Mechanism
from sparsemap.pieces.boundary import eliminated_of, filters_of
from sparsemap.pieces.contracts import DEALING, Array
from sparsemap.problem.designs import Loop
from sparsemap.problem.levels import Place

from .nest import Boxes, ExecutedNest
from .stored import Contents, store_zeros

GATE, SKIP = "gate", "skip"
STAY = "stay"
"""The charge for tiles shared by children and steps."""
HELD_BACK = {GATE: "gated_", SKIP: "skipped_"}
"""Prefix of the names of removed actions, by kind of filter."""


class Leader:
    """The words of a leader met by a tile of the target during its stay."""

    def __init__(self, nest: ExecutedNest, tensor: int, child: int, region: Mapping[Loop, int]) -> None:
        self.tensor = tensor
        move = nest.access[tensor].T
        extents = nest.extents(child)
        apart = []  # loops with others of their dimension between: several boxes
        for loop, count in region.items():
            if not nest.relevant(tensor, loop.axis):
                continue
            if loop.stride == extents[loop.axis]:
                extents[loop.axis] *= count
            else:
                apart.append(attrs.evolve(loop, bound=count))
        self.widths = nest.widths(tensor, extents)
        self.shifts = nest.origins(apart) @ move
        self.steps = nest.offsets(child, spatial=False, fixed=region) @ move
        self.places = nest.offsets(child, spatial=True, fixed=region) @ move

    def present(self, boxes: Boxes, rows: slice) -> Array:
        """(n, children) bool: a word of the leader is nonzero."""
        steps = self.steps[rows]
        return np.logical_or.reduce([boxes.count(self.widths, steps + at, self.places) > 0 for at in self.shifts])


@attrs.frozen(eq=False)
class Guard:
    """Filter on the accesses of a tensor at a level; the child is the next storing level inwards."""

    kind: str
    leaders: tuple[Leader, ...]
    caught: float
    """Share of empty cases caught by the mechanism; below 1, and without lookahead, misses are drawn at random."""
    lookahead: int | None
    place: int
    """The acting level; it may lie inside the level of the accesses, if it does not store the tensor."""
    blind: bool
    """Whether the guard reads only the leaders' metadata, with the resolution of whole blocks."""
    width: int | None
    """Most positions that a skip passes per cycle; None: any number."""
    entries: bool
    """Whether `width` counts entries of the leaders instead of positions."""

    def leave(self, want: Array | None, contents: Sequence[Contents], rows: slice, rng: np.random.Generator) -> Array:
        """(n, children) bool: the accesses in `want` (None: all) that take place."""
        boxes = [part.seen if self.blind else part.nonzero for part in contents]
        found = np.logical_and.reduce([leader.present(boxes[leader.tensor], rows) for leader in self.leaders])
        found |= missed(~found, np.ones_like(found), self.lookahead, self.caught, rng)
        return found if want is None else found & want


class Filtering(NamedTuple):
    """A filter of the design at storage."""

    place: Place
    level: int
    """Storage level of the place."""
    mechanism: Mechanism
    rule: Filter
    target: int
    leaders: tuple[int, ...]


def filters(nest: ExecutedNest) -> Iterator[Filtering]:
    """All filters at storage that remove accesses, outermost level first."""
    return (one for one in _at_storage(nest) if one.rule.action not in DEALING)


def dealing(nest: ExecutedNest) -> Iterator[Filtering]:
    """All filters at storage that deal out lanes."""
    return (one for one in _at_storage(nest) if one.rule.action in DEALING)


def _at_storage(nest: ExecutedNest) -> Iterator[Filtering]:
    for place in nest.problem.places:
        if place.storage is not None:
            mechanism = nest.mechanism(place)
            for rule, target, leaders in nest.problem.filters(mechanism, place):
                yield Filtering(place, place.storage, mechanism, rule, target, leaders)


def guards(nest: ExecutedNest, timed: bool = False) -> dict[tuple[int, int], Guard]:
    """Guards by (tensor, level). Of several filters on the same accesses, the filter with the largest share counts.

    `timed`: only filters that save the time of the removed accesses."""
    found: dict[tuple[int, int], tuple[float, Guard]] = {}
    in_turn = sorted(filters(nest), key=lambda one: (one.rule.action == SKIP, -one.level))
    for place, acting, mechanism, rule, target, followed in in_turn:
        if timed and rule.passes:
            continue
        blind = mechanism.needs_metadata(place)
        level = max(s for s in nest.stored(target) if s <= acting)
        child = nest.child(target, level)
        region = stationary(nest, target, level, child)
        leaders, full = [], 1.0
        for tensor in followed:
            if decides(nest, target, tensor, level, child):
                leaders.append(Leader(nest, tensor, child, region))
                extents = nest.extents(child)
                for loop, count in region.items():
                    extents[loop.axis] *= count
                if blind:
                    extents = np.maximum(extents, granule(nest, tensor))
                full *= 1.0 - nest.occupancies[tensor].empty(nest.widths(tensor, extents))
        if leaders:
            empty = 1.0 - full
            removed = float(eliminated_of(mechanism, place, rule, np.array([empty]))[0])
            caught = min(1.0, removed / empty) if empty > 0 else 1.0
            width = narrower(rule.width, nest.problem.levels[acting].memory.lookahead)
            guard = Guard(rule.action, tuple(leaders), caught, rule.lookahead, acting, blind, width, rule.entries)
            if (target, level) not in found or removed > found[target, level][0]:
                found[target, level] = (removed, guard)
    return {key: guard for key, (_, guard) in found.items()}


def narrower(*widths: int | None) -> int | None:
    """The smallest width that is not None, or None."""
    return min((width for width in widths if width is not None), default=None)


def looked_at(nest: ExecutedNest, *actions: str) -> frozenset[tuple[int, int]]:
    """(tensor, level) of all leaders of filters with one of these actions."""
    leading = ((one.level, t) for one in filters(nest) if one.rule.action in actions for t in one.leaders)
    return frozenset((t, max(s for s in nest.stored(t) if s <= level)) for level, t in leading)


@attrs.frozen(eq=False)
class Unit:
    """Filter of the compute unit on empty operands: the first skipping filter, else the first filter."""

    place: Place
    mechanism: Mechanism
    rule: Filter

    @classmethod
    def of(cls, nest: ExecutedNest) -> Unit | None:
        for place in nest.problem.places:
            mechanism = nest.mechanism(place)
            rules = filters_of(mechanism, place)
            if place.storage is None and rules:
                return cls(place, mechanism, max(rules, key=lambda rule: rule.action == SKIP))
        return None

    def left_out(self, idle: Array, among: Array, rng: np.random.Generator) -> Array:
        """(steps, units) bool: the `idle` computes that the unit removes, within its lookahead or by chance.

        `among`: (steps, units) bool, the computes that reach the unit."""
        empty = idle.sum() / max(1, int(among.sum()))
        if not empty:
            return np.zeros_like(idle)
        removed = float(eliminated_of(self.mechanism, self.place, self.rule, np.array([empty]))[0])
        return idle & ~missed(idle, among, self.rule.lookahead, removed / empty, rng)


def missed(empty: Array, among: Array, lookahead: int | None, caught: float, rng: np.random.Generator) -> Array:
    """(steps, n) bool: `empty` positions missed by the mechanism, beyond its lookahead or by chance.

    `among`: (steps, n) bool, the positions of each column."""
    if lookahead is not None:
        return out_of_sight(empty, among, lookahead)
    if caught < 1.0:
        return empty & (rng.random(empty.shape) >= caught)
    return np.zeros_like(empty)


def out_of_sight(empty: Array, among: Array, lookahead: int) -> Array:
    """(steps, n) bool: every `lookahead`-th position in each run of `empty` positions of a column.

    `among`: (steps, n) bool, the positions of each column."""
    before = np.cumsum(empty, axis=0)
    run = before - np.maximum.accumulate(np.where(among & ~empty, before, 0), axis=0)
    found: Array = empty & (run % lookahead == 0)
    return found


def comparisons(present: Sequence[Array], fiber: tuple[int, int], width: int) -> Array:
    """(steps, n) bool at the last step of a position: the unit spends a cycle on comparisons without a match.

    `fiber`: positions of a list of entries, and steps of a position. The unit passes `width` entries of a list per
    cycle, until a list ends."""
    lists = np.array(present).reshape(len(present), -1, *fiber, present[0].shape[1])
    each: Array = np.logical_or.reduce(lists, axis=3)
    met: Array = np.logical_or.reduce(np.logical_and.reduce(lists), axis=2)
    goes_on = np.logical_or.accumulate(each[:, :, ::-1], axis=2)[:, :, ::-1].all(axis=0)
    which = np.tensordot(1 << np.arange(len(present)), each, axes=1) * (goes_on & ~met)
    found = np.zeros((*which.shape[:2], fiber[1], which.shape[2]), dtype=bool)
    last, run = np.zeros((2, *which[:, 0].shape), dtype=np.int64)
    for at in range(fiber[0]):
        now = which[:, at]
        run = np.where(now == 0, run, np.where(now == last, run + 1, 0))
        found[:, at, -1] = (now > 0) & (run % width == 0)
        last = np.where(now > 0, now, np.where(met[:, at], 0, last))
    return found.reshape(present[0].shape)


def fiber(nest: ExecutedNest, level: int, tensors: Sequence[int]) -> tuple[int, int]:
    """(positions, steps) of a list of entries at a level. Positions: the innermost loops that move all `tensors`; steps
    of a position: the loops further in."""
    length, inside = 1, 1
    for loop in reversed([loop for loop in nest.block(0, level + 1) if not loop.spatial and loop.bound > 1]):
        if all(nest.relevant(t, loop.axis) for t in tensors):
            length *= loop.bound
        elif length == 1:
            inside *= loop.bound
        else:
            break
    return length, inside


def granule(nest: ExecutedNest, tensor: int) -> Array:
    """(D,) extents of the smallest block of words distinguished by the metadata of a tensor."""
    extents = np.ones(len(nest.sizes), dtype=np.int64)
    ranks = nest.ranks(tensor)
    if store_zeros([rank.format for rank in ranks]):
        for rank in reversed(ranks):
            if rank.format.compressed:
                extents[rank.loop.axis] *= min(rank.format.block, rank.loop.bound)
                break
            extents[rank.loop.axis] *= rank.loop.bound
    return extents


def stationary(nest: ExecutedNest, target: int, level: int, child: int) -> dict[Loop, int]:
    """Loops between a level and its child, inner to outer, that extend a leader tile, with the number of their
    iterations: a single access takes the words of several iterations.

    With `stay`, each child and step has a leader tile of its own, and the link sends what any of them needs. Without,
    the leader tile of all children and steps of an access decides for each."""
    words = nest.problem.levels[level].memory.access_words
    more = math.ceil(words / math.prod(nest.widths(target, nest.extents(child))))
    region: dict[Loop, int] = {}
    moved = False
    for loop in reversed(nest.block(level, child)):
        relevant = nest.relevant(target, loop.axis)
        if relevant and loop.bound > 1 and more > 1:
            region[loop], more = min(more, loop.bound), 1
        if STAY in nest.charges:
            continue
        if loop.spatial:
            if not (relevant or nest.separate(target, child)):
                region[loop] = loop.bound
        elif child < nest.levels:
            moved |= relevant
            if not moved:
                region[loop] = loop.bound
    return region


def decides(nest: ExecutedNest, target: int, leader: int, level: int, child: int) -> bool:
    """Whether the leader has an effect at all.

    Without `stay`, a leader has none, also in the model, if a spatial loop moves target and leader, and another loop
    of the region moves the leader. For words sent to the compute units, the first of the two loops must lie directly
    over the units."""
    if STAY in nest.charges or nest.separate(target, child):
        return True
    walked = [loop for loop in reversed(nest.block(level, child)) if loop.spatial or child < nest.levels]
    searched = [loop for loop in walked if child < nest.levels or loop.storage == nest.levels - 1]
    first = next((i for i, loop in enumerate(searched) if nest.relevant(target, loop.axis)), None)
    if first is None or not walked[first].spatial:
        return True
    shared, moved = False, False
    for loop in walked[first:]:
        relevant = nest.relevant(target, loop.axis)
        if not loop.spatial:
            moved |= relevant
            if moved or relevant:
                continue
        if shared and nest.relevant(leader, loop.axis):
            return False
        shared |= relevant and nest.relevant(leader, loop.axis)
    return True
