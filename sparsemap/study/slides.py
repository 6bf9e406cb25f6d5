"""How a tensor slides by: which loop of its producer makes what a loop of its consumer takes, and how much of it lives.

Two layers are interleaved if the outermost loop of both walks along one rank of the tensor between them. The producer
runs whenever the consumer's next step lacks words; what no later step needs is given up. Nothing is computed twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import attrs
import numpy as np

from ..errors import DesignError
from ..pieces.contracts import Loops, Tensor
from ..pieces.contracts.base import Array
from ..primes import divisors
from ..problem.designs import Designs
from ..problem.problem import Problem

Outermost = tuple[str, int] | None
"""The outermost loop of a design, as dimension and bound; None: the level on chip holds all of the layer at once."""


@attrs.frozen
class Slide:
    """One rank of a tensor that one layer makes and another takes."""

    made: str
    """The producer's dimension that walks along it .."""
    taken: str
    """.. and the consumer's."""
    rows: int
    """Positions of the rank, without padding."""
    steps: int
    """Size of the consumer's dimension."""
    stride: int
    reach: int
    """Positions that one step of the consumer covers."""
    across: int
    """Words of the tensor per position."""

    def live(self, made: int, taken: int) -> int:
        """The most positions that live at a time if the producer makes `made` at once and the consumer takes `taken` steps
        at once."""
        return _live(self.rows, self.steps, self.stride, self.reach, made, taken)


@cache
def _live(rows: int, steps: int, stride: int, reach: int, made: int, taken: int) -> int:
    padding = max(0, stride * (steps - 1) + reach - rows) // 2
    most = there = 0
    for first in range(0, steps, taken):
        needed = min(rows, max(1, stride * (first + taken - 1) + reach - padding))
        there = max(there, min(rows, -(-needed // made) * made))
        most = max(most, there - min(max(0, stride * first - padding), there - made))
    return most


def slides(maker: Loops, taker: Loops, operand: str) -> tuple[Slide, ...]:
    """Along which ranks the output of one layer can slide by as an operand of another. None where ranks are split or merged
    on the way."""
    output = next(t for t in maker.tensors if t.output)
    tensor = next(t for t in taker.tensors if t.name == operand)
    made, box = output.shape(maker.sizes), tensor.shape(taker.sizes)
    if len(made) != len(box):
        return ()
    found = []
    for r, (size, width) in enumerate(zip(made, box, strict=True)):
        moving = [(dim, stride) for dim, stride in tensor.ranks[r] if dim in _dims(taker)]
        reach = 1 + sum((taker.sizes[dim] - 1) * c for dim, c in tensor.ranks[r] if dim not in _dims(taker))
        stride = moving[0][1] if moving else 1
        if not (-stride < width - size < max(reach, 1)) and moving:
            return ()
        if not moving and width != size:
            return ()
        if len(moving) == 1 and len(output.ranks[r]) == 1:
            dim = moving[0][0]
            across = math.prod(made) // size
            found.append(Slide(output.ranks[r][0][0], dim, size, taker.sizes[dim], stride, reach, across))
    return tuple(found)


def _dims(loops: Loops) -> tuple[str, ...]:
    """The dimensions that the output has."""
    output: Tensor = next(t for t in loops.tensors if t.output)
    return output.dims


def outermost(problem: Problem, designs: Designs) -> list[Outermost]:
    """Per design, the first loop outside the outermost level on chip."""
    bounds, order = designs.columns["bounds"][0], designs.columns["order"][0].astype(np.int64)
    ordered = np.take_along_axis(bounds, order, axis=0)
    first = (ordered > 1.0).argmax(axis=0)
    columns = np.arange(bounds.shape[1])
    axes, found = order[first, columns], ordered[first, columns]
    return [
        (problem.dims[axis], int(bound)) if bound > 1.0 else None
        for axis, bound in zip(axes.tolist(), found.tolist(), strict=True)
    ]


def sliced(problem: Problem, genomes: Sequence[tuple[int, ...]], dims: Sequence[str]) -> list[tuple[int, ...]]:
    """Designs like these that walk along one of some dimensions first, in steps of every size: with the other dimensions
    whole on chip, or as they were. What is taken from a fan-out for it, other dimensions fill."""
    designs = problem.space.decode(np.array(genomes, dtype=np.int64))
    groups = problem.mapping_levels
    inner = next((g for g, level in enumerate(groups) if level.storage == 1 and not level.spatial), None)
    if inner is None:
        return []
    spatial = [g for g, level in enumerate(groups) if level.spatial]
    rows, bounds, orders = [], [], []
    for row in range(len(designs)):
        column, order = designs.columns["bounds"][..., row], designs.columns["order"][..., row]
        for axis in map(problem.dims.index, dims):
            for steps in divisors(int(column[:, axis].prod()))[1:]:
                for made in _walks(column, axis, steps, inner, spatial):
                    rows.append(row)
                    bounds.append(made)
                    orders.append(_ordered(order, column, made, axis, inner))
    if not rows:
        return []
    columns = {name: column[..., rows] for name, column in designs.columns.items()}
    columns |= {"bounds": np.stack(bounds, axis=-1), "order": np.stack(orders, axis=-1)}
    try:
        found = problem.space.encode(Designs({name: np.ascontiguousarray(c) for name, c in columns.items()}))
    except DesignError:  # a space that fixes some of it
        return []
    return list(dict.fromkeys(map(tuple, found.tolist())))


def _walks(bounds: Array, axis: int, steps: int, inner: int, spatial: Sequence[int]) -> Iterator[Array]:
    """Bounds (L, D) like those of one design whose outermost level has so many steps of one dimension."""
    others = [d for d in range(bounds.shape[1]) if d != axis]
    whole = bounds.copy()
    whole[inner] *= whole[0]
    whole[0], left = 1.0, steps
    whole[0, axis] = steps
    freed = {}
    for group in (inner, *(g for g in range(len(bounds)) if g not in (0, inner))):
        taken = math.gcd(left, int(whole[group, axis]))
        whole[group, axis] /= taken
        left //= taken
        if taken > 1 and group in spatial:
            freed[group] = taken
    if not freed:
        yield whole
        if (bounds[0, others] > 1.0).any():
            outside = whole.copy()
            outside[0, others] = bounds[0, others]
            outside[inner, others] = bounds[inner, others]
            yield outside
        return
    for first in others:
        made = whole.copy()
        for group, count in freed.items():
            for d in (first, *(d for d in others if d != first)):
                moved = math.gcd(count, int(made[inner, d]))
                made[inner, d] /= moved
                made[group, d] *= moved
                count //= moved
        if made[inner, first] < whole[inner, first]:
            yield made


def _ordered(order: Array, before: Array, bounds: Array, axis: int, inner: int) -> Array:
    """The order (L, D) with the dimension first outside, and what has come in from there first inside."""
    found = order.copy()
    found[0] = sorted(order[0], key=lambda d: d != axis)
    came = (before[0] > 1.0) & (bounds[0] == 1.0)
    found[inner] = sorted(order[inner], key=lambda d: not came[d])
    return found
