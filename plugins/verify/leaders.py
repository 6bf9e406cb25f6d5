"""Skipping and gating on real zeros: which leader words decide over an access, and where they are (section 7.1)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap import Filter, Mechanism
from sparsemap.pieces.boundary import eliminated_of
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.designs import Loop
from sparsemap.problem.levels import Place

from .nest import Boxes, Nest
from .stored import Contents, store_zeros

NONE, GATE, SKIP = 0, 1, 2
KINDS = {"none": NONE, "gate": GATE, "skip": SKIP}


class Leader:
    """The words of one leader that a tile of the target meets while it stays."""

    def __init__(self, nest: Nest, tensor: int, child: int, region: tuple[Loop, ...]) -> None:
        self.tensor = tensor
        move = nest.access[tensor].T
        extents = nest.extents(child)
        shifts = np.zeros((1, len(nest.sizes)), dtype=np.int64)
        for loop in reversed(region):
            if not nest.relevant(tensor, loop.axis):
                continue
            if loop.stride == extents[loop.axis]:
                extents[loop.axis] *= loop.bound
            else:  # other loops of the dimension lie between: several boxes
                steps = np.zeros((loop.bound, len(nest.sizes)), dtype=np.int64)
                steps[:, loop.axis] = np.arange(loop.bound) * loop.stride
                shifts = (shifts[:, None, :] + steps).reshape(-1, len(nest.sizes))
        self.widths = nest.widths(tensor, extents)
        self.shifts = shifts @ move
        fixed = frozenset(region)
        self.steps = nest.offsets(child, spatial=False, fixed=fixed) @ move
        self.places = nest.offsets(child, spatial=True, fixed=fixed) @ move

    def present(self, boxes: Boxes, rows: slice) -> Array:
        """(n, children) bool: a word of the leader is nonzero."""
        steps = self.steps[rows]
        found = boxes.count(self.widths, steps + self.shifts[0], self.places) > 0
        for shift in self.shifts[1:]:
            found |= boxes.count(self.widths, steps + shift, self.places) > 0
        return found


@attrs.frozen(eq=False)
class Guard:
    """What holds back accesses of one tensor at one level; the child is the next level inside that stores it."""

    level: int
    kind: int
    leaders: tuple[Leader, ...]
    caught: float
    """Share of the empty cases that the mechanism catches; below one, the others are drawn at random, without lookahead."""
    lookahead: int | None
    place: int
    """The level that acts; it may lie inside `level`, if it lacks the tensor."""
    blind: bool
    """Whether it looks at the leaders' metadata alone, which tell of whole blocks."""

    def required(self, contents: Sequence[Contents], rows: slice, rng: np.random.Generator) -> Array:
        """(n, children) bool: the access takes place."""
        boxes = [part.seen if self.blind else part.nonzero for part in contents]
        found = np.logical_and.reduce([leader.present(boxes[leader.tensor], rows) for leader in self.leaders])
        if self.lookahead is not None:
            found |= out_of_sight(~found, np.ones_like(found), self.lookahead)
        elif self.caught < 1.0:
            found |= rng.random(found.shape) >= self.caught
        return found


def guards(nest: Nest, timed: bool = False) -> dict[tuple[int, int], Guard]:
    """By (tensor, level). Where several filters hit the same accesses the one that removes more counts.

    `timed`: those alone that save the time of what they remove.
    """
    problem = nest.problem
    found: dict[tuple[int, int], tuple[float, Guard]] = {}
    occupancies = [tensor.density.occupancy(nest.shape(t)) for t, tensor in enumerate(problem.tensors)]
    for wanted in (GATE, SKIP):
        for place in sorted(problem.places, key=lambda place: -(place.storage or 0)):
            if place.storage is None:
                continue
            mechanism = nest.mechanism(place)
            blind = mechanism.needs_metadata(place)
            for rule, target, followed in problem.filters(mechanism, place):
                if KINDS[rule.action] != wanted or (timed and rule.passes):
                    continue
                stored = nest.stored(target)
                level = max(s for s in stored if s <= place.storage)
                child = min((s for s in stored if s > level), default=nest.levels)
                region = stationary(nest, target, level, child)
                leaders, full = [], 1.0
                for tensor in followed:
                    if decides(nest, target, tensor, level, child):
                        leaders.append(Leader(nest, tensor, child, region))
                        extents = nest.extents(child)
                        for loop in region:
                            extents[loop.axis] *= loop.bound
                        if blind:
                            extents = np.maximum(extents, granule(nest, tensor))
                        full *= 1.0 - occupancies[tensor].empty(nest.widths(tensor, extents))
                if not leaders:
                    continue
                empty = 1.0 - full
                removed = float(eliminated_of(mechanism, place, rule, np.array([empty]))[0])
                caught = min(1.0, removed / empty) if empty > 0 else 1.0
                guard = Guard(level, wanted, tuple(leaders), caught, rule.lookahead, place.storage, blind)
                if (target, level) not in found or removed > found[target, level][0]:
                    found[target, level] = (removed, guard)
    return {key: guard for key, (_, guard) in found.items()}


def looked_at(nest: Nest, actions: tuple[str, ...] = ("gate", "skip")) -> frozenset[tuple[int, int]]:
    """(tensor, level): the tensor leads a filter there that acts so."""
    problem = nest.problem
    found = set()
    for place in problem.places:
        if place.storage is not None:
            for rule, _, followed in problem.filters(nest.mechanism(place), place):
                if rule.action in actions:
                    found |= {(t, max(s for s in nest.stored(t) if s <= place.storage)) for t in followed}
    return frozenset(found)


def time_passes(nest: Nest) -> bool:
    """Whether a filter at storage lets the time of what it holds back pass."""
    problem = nest.problem
    return any(
        rule.passes
        for place in problem.places
        if place.storage is not None
        for rule, _, _ in problem.filters(nest.mechanism(place), place)
    )


@attrs.frozen(eq=False)
class Unit:
    """What the compute unit does with empty operands, by the first filter that has the strongest action."""

    kind: int = NONE
    place: Place | None = None
    rule: Filter | None = None
    mechanism: Mechanism | None = None

    @classmethod
    def of(cls, nest: Nest) -> Unit:
        for place in nest.problem.places:
            mechanism = nest.mechanism(place)
            rules = mechanism.filters(place)
            if place.storage is None and rules:
                rule = max(rules, key=lambda rule: KINDS[rule.action])
                return cls(KINDS[rule.action], place, rule, mechanism)
        return cls()

    def left_out(self, idle: Array, among: Array, rng: np.random.Generator) -> Array:
        """Those of the `idle` computes, `among` those that come to the unit, that it catches, all masks (steps, units);
        where not all, as far as it looks ahead, or by chance."""
        empty = idle.sum() / max(1, int(among.sum()))
        if self.kind == NONE or not empty:
            return np.zeros_like(idle)
        assert self.mechanism is not None and self.place is not None and self.rule is not None
        if self.rule.lookahead is not None:
            return idle & ~out_of_sight(idle, among, self.rule.lookahead)
        caught = float(eliminated_of(self.mechanism, self.place, self.rule, np.array([empty]))[0])
        return idle if caught >= empty else idle & (rng.random(idle.shape) < caught / empty)


def out_of_sight(empty: Array, among: Array, lookahead: int) -> Array:
    """(steps, n) bool: of every run of `empty` positions `among` those of a column, each that ends `lookahead` of them."""
    before = np.cumsum(empty, axis=0)
    run = before - np.maximum.accumulate(np.where(among & ~empty, before, 0), axis=0)
    found: Array = empty & (run % lookahead == 0)
    return found


def granule(nest: Nest, tensor: int) -> Array:
    """(D,) extents of the words that the metadata of a tensor cannot tell apart."""
    extents = np.ones(len(nest.sizes), dtype=np.int64)
    ranks = nest.ranks(tensor)
    if store_zeros([rank.format for rank in ranks]):
        for rank in reversed(ranks):
            if rank.format.compressed:
                extents[rank.loop.axis] *= min(rank.format.block, rank.loop.bound)
                break
            extents[rank.loop.axis] *= rank.loop.bound
    return extents


def stationary(nest: Nest, target: int, level: int, child: int) -> tuple[Loop, ...]:
    """The loops between a level and its child, outer to inner, over which a tile of the target stays or is shared."""
    region = []
    moved = False
    for loop in reversed(nest.block(level, child)):
        relevant = nest.relevant(target, loop.axis)
        if loop.spatial:
            if not relevant:
                region.append(loop)
        elif child < nest.levels:
            moved |= relevant
            if not moved:
                region.append(loop)
    return tuple(region[::-1])


def decides(nest: Nest, target: int, leader: int, level: int, child: int) -> bool:
    """Whether the leader has an effect at all.

    It has none, for the model too, if a spatial loop moves both, and another loop of the region the leader. Where the
    words go to the compute units, only loops over these are looked at for the first of the two.
    """
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
