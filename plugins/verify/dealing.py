"""Work dealt out to lanes, on real zeros: idle lanes, and the time of the lanes (7.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts.base import Array

from .leaders import Filtering, Leader, dealing
from .nest import ExecutedNest
from .stored import Contents


@attrs.frozen(eq=False)
class Condensed:
    """Removal, below a level, of lanes with an empty part of a leader."""

    nest: ExecutedNest
    level: int
    computes: bool
    """Whether the target is an operand: a lane without it has no work."""
    leaders: tuple[Leader, ...]

    @classmethod
    def of(cls, nest: ExecutedNest, one: Filtering) -> Condensed:
        inside = [level for level in nest.stored(one.target) if level > one.level]
        if inside:
            names = nest.problem.tensors[one.target].name, nest.problem.levels[inside[0]].name
            raise DesignError(f"verify does not condense {names[0]} above {names[1]}, which stores it")
        leaders = tuple(Leader(nest, c, one.level + 1, {}) for c in one.leaders)
        return cls(nest, one.level, one.target in nest.operands, leaders)

    def deal(self, contents: Sequence[Contents], rows: slice, words: Sequence[Array]) -> tuple[Array, Array]:
        """(n, units) bool, twice: units with work, and units that work or wait for a unit with work."""
        steps, units = self.nest.steps(self.nest.levels), self.nest.instances(self.nest.levels)
        if not self.computes:
            return np.ones((1, units), dtype=bool), np.ones((1, units), dtype=bool)
        own = np.arange(rows.start, rows.stop) // (steps // self.nest.steps(self.level + 1))
        first = int(own[0])
        every = slice(first, int(own[-1]) + 1)
        found = np.logical_and.reduce([one.present(contents[one.tensor].nonzero, every) for one in self.leaders])
        alive = np.repeat(found[own - first], units // found.shape[1], axis=1)
        groups = alive.reshape(len(alive), self.nest.instances(self.level), -1).any(axis=2)
        return alive, np.repeat(groups, units // groups.shape[1], axis=1)


@attrs.frozen(eq=False)
class Packed:
    """Packing of a tile's nonzeros into the lanes, in as many passes as necessary."""

    nest: ExecutedNest
    tensor: int
    level: int
    lanes: int
    turn: Array
    """(steps,) number of the pass over the tile, by the loops that move the tensor."""

    @classmethod
    def of(cls, nest: ExecutedNest, one: Filtering) -> Packed:
        t = one.target
        level = max(s for s in nest.stored(t) if s <= one.level)
        inner = [loop for loop in nest.block(level, nest.levels) if nest.relevant(t, loop.axis)]
        loops = [loop for loop in nest.block(0, nest.levels) if not loop.spatial]
        digits = np.unravel_index(np.arange(nest.steps(nest.levels)), [loop.bound for loop in loops] or [1])
        turn = np.zeros(nest.steps(nest.levels), dtype=np.int64)
        for loop, digit in zip(loops, digits, strict=False):
            turn = turn * loop.bound + digit if loop in inner else turn
        return cls(nest, t, level, math.prod(loop.bound for loop in inner if loop.spatial), turn)

    def deal(self, contents: Sequence[Contents], rows: slice, words: Sequence[Array]) -> tuple[Array, Array]:
        """(n, units) bool, twice: units with a nonzero, and units busy in a pass."""
        nest, t = self.nest, self.tensor
        units = nest.instances(nest.levels)
        own = np.arange(rows.start, rows.stop) // (nest.steps(nest.levels) // nest.steps(self.level))
        begins, places = (nest.offsets(self.level, spatial) @ nest.access[t].T for spatial in (False, True))
        held = contents[t].nonzero.count(nest.tile(t, self.level), begins[own[0] : own[-1] + 1], places)
        passes = np.repeat(-(-held // self.lanes)[own - own[0]], units // held.shape[1], axis=1)
        return contents[t].mask.reshape(-1)[words[t]], self.turn[rows, None] < passes


@attrs.frozen(eq=False)
class VectorSteps:
    """Joint steps of lanes that share the work below an instance of the innermost level."""

    temporal: tuple[int, ...]
    """Bounds of the temporal loops below the level."""
    lanes: tuple[int, ...]
    """Bounds of the spatial loops over the lanes."""
    own: tuple[tuple[int, ...], ...]
    """Per operand, the axes of (n, *temporal, instances, *lanes) for loops that move no other operand."""

    @classmethod
    def of(cls, nest: ExecutedNest) -> VectorSteps | None:
        if not nest.problem.levels[-1].memory.vectors:
            return None
        inner = nest.block(nest.levels - 1, nest.levels)
        parts = [[loop for loop in inner if loop.spatial == spatial] for spatial in (False, True)]
        temporal, lanes = (tuple(loop.bound for loop in part) for part in parts)
        axes = [*enumerate(parts[0], 1), *enumerate(parts[1], 2 + len(temporal))]
        movers = {at: [t for t in nest.operands if nest.relevant(t, loop.axis)] for at, loop in axes}
        return cls(temporal, lanes, tuple(tuple(at for at, by in movers.items() if by == [t]) for t in nest.operands))

    @property
    def block(self) -> int:
        """Steps of a tile of the innermost level."""
        return math.prod(self.temporal)

    def more(self, occupied: Array) -> Array:
        """(tiles, units) extra cycles over full lanes; `occupied` (steps, units) bool covers whole tiles."""
        work = occupied.reshape(len(occupied) // self.block, *self.temporal, -1, *self.lanes)
        first, steps = 2 + len(self.temporal), np.ones([1] * work.ndim)
        for axes in self.own:
            others = tuple(at for some in self.own if some is not axes for at in some)
            full = math.prod(work.shape[at] for at in axes if at >= first)
            there = work.any(axis=others, keepdims=True).sum(axis=axes, keepdims=True)
            steps = steps * -(-there // full)
        tiles, instances = work.shape[0], work.shape[first - 1]
        together = math.prod(steps.shape[first:])
        taken: Array = np.moveaxis(steps, first - 1, 1).reshape(tiles, instances, -1)
        if together > 1:  # lanes along loops that move several operands take positions with work, in turn
            order = np.argsort(taken == 0, axis=2, kind="stable")
            taken = np.take_along_axis(taken, order, axis=2).reshape(tiles, instances, -1, together).max(axis=3)
        inner = tuple(at for at in range(work.ndim) if at not in (0, first - 1))
        found = taken.sum(axis=2) - work.sum(axis=inner) / math.prod(self.lanes)
        return np.repeat(found, math.prod(self.lanes), axis=1)


def dealt(nest: ExecutedNest) -> tuple[Condensed | Packed, ...]:
    """All filters that deal out lanes."""
    return tuple((Packed if one.rule.action == "pack" else Condensed).of(nest, one) for one in dealing(nest))
