"""Stationary tensors: loops by which every word of a tensor comes to a memory level once (key `stationary` of a space).

Relevant loops move the tensor, irrelevant loops do not. A tensor stays if, among the temporal loops outside its level,
no irrelevant loop is outside a relevant loop. Loops of other genomes move outwards until that holds:

1. The outermost level with an irrelevant loop takes the relevant loops of all levels further in.
2. Within a level, relevant loops come first, in their own order.

Every stationary mapping is its own result, so no mapping is lost."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, SpecError, listed, unknown
from sparsemap.pieces.contracts import Array
from sparsemap.problem.layouts import unplaced

KEY = "stationary"


@attrs.frozen(eq=False)
class Stationary:
    """The tensor and the level of one problem."""

    text: str
    outside: Array
    """(n,) indices of the temporal mapping levels outside the level, outermost first."""
    relevant: Array
    """(D,) bool: dimensions of the tensor."""

    def bounds(self, bounds: Array) -> Array:
        """Rule 1, (L, D, B) -> (L, D, B); the input is not changed."""
        moved = bounds.copy()
        if len(self.outside) < 2 or not self.relevant.any() or self.relevant.all():
            return moved
        busy = (bounds[np.ix_(self.outside, np.flatnonzero(~self.relevant))] > 1.0).any(axis=1)
        begun = np.logical_or.accumulate(busy, axis=0)
        inside = np.zeros_like(begun)
        inside[1:] = begun[:-1]
        cells = np.ix_(self.outside, np.flatnonzero(self.relevant))
        part, inside = moved[cells], inside[:, None]
        outwards = np.where(inside, part, 1.0).prod(axis=0)
        turn = begun[:, None] & ~inside
        moved[cells] = np.where(inside, 1.0, part) * np.where(turn, outwards, 1.0)
        return moved

    def orders(self, order: Array) -> Array:
        """Rule 2, (L, D, B) -> (L, D, B) int8; the input is not changed."""
        sorted_orders = order.copy()
        some = order[self.outside].astype(np.intp)
        first = np.argsort(~self.relevant[some], axis=1, kind="stable")
        sorted_orders[self.outside] = np.take_along_axis(order[self.outside], first, axis=1)
        return sorted_orders

    def check(self, bounds: Array, order: Array | None = None) -> None:
        """Raise `DesignError` for bounds (L, D, B), and orders (L, D, B), of designs that move the tensor."""
        wrong = (self.bounds(bounds) != bounds).any(axis=(0, 1))
        if order is not None:
            busy = np.take_along_axis(bounds, order.astype(np.intp), axis=1)[self.outside] > 1.0
            moves = self.relevant[order[self.outside].astype(np.intp)]
            before = np.logical_or.accumulate(busy & ~moves, axis=1)
            wrong |= (before & busy & moves).any(axis=(0, 1))
        if wrong.any():
            raise DesignError(
                f"design {int(wrong.argmax())}: the space has {self.text}, and a loop moves the tensor twice"
            )


def read(problem: Problem, text: str) -> Stationary:
    """The stationary tensor of a space's key, "Q" or "Q at GLB"."""
    file, problem = problem.files.get("space", ""), unplaced(problem)
    named, _, at = (part.strip() for part in text.partition(" at "))
    tensor, names = problem.tensor(named, file, KEY), [level.name for level in problem.levels]
    name, inner = problem.tensors[tensor].name, [s for s in range(1, len(names)) if problem.stores(tensor, s)]
    if at and at not in names:
        raise SpecError.at(file, KEY, unknown("level", at, names))
    level = names.index(at) if at else max(inner, default=0)
    if level not in inner:
        known = listed([names[s] for s in inner]) or "none"
        raise SpecError.at(file, KEY, f"is {text!r}, expected a level inside {names[0]} with {name}: {known}")
    groups = problem.mapping_levels
    outside = [i for i, group in enumerate(groups) if not group.spatial and group.storage < level]
    relevant = np.array([dim in problem.tensors[tensor].dims for dim in problem.dims])
    return Stationary(f"stationary = '{name} at {names[level]}'", np.array(outside), relevant)
