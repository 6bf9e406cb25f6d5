"""Sliding tensors: matching loops of a producer and a consumer, and the live part of the tensor between them.

Two layers, or operations between layers, are interleaved if the outermost loops of both walk along the same rank of the
tensor between them. The producer runs whenever the consumer's next step lacks words; words without further use are
given up. Nothing is computed twice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import attrs
import numpy as np

from ..errors import DesignError
from ..pieces.contracts import Operation
from ..pieces.contracts.base import Array
from ..primes import divisors
from ..problem.designs import Designs
from ..problem.network import Node
from ..problem.problem import Problem

Outermost = tuple[str, int] | None
"""The outermost loop of a design, as dimension and bound; None: the level on chip holds all of the layer at once."""


FROM_THE_END = ("columns", "rows", "slices")
"""Names of the last ranks of a tensor, the last first."""


@attrs.frozen
class Slide:
    """A rank of a tensor between a producer and a consumer."""

    made: str
    """The producer's dimension along the rank."""
    taken: str
    """The consumer's dimension along the rank."""
    rows: int
    """Positions of the rank, without padding."""
    steps: int
    """Size of the consumer's dimension."""
    stride: int
    reach: int
    """Positions covered by one step of the consumer."""
    across: int
    """Words of the tensor per position."""
    rank: int = 0
    name: str = ""
    """The rank for people, such as `rows`; empty: the producer's dimension."""

    def whole(self, extent: int, made: int, taken: int) -> bool:
        """Whether packets of `extent` positions are made whole (`made` at once) and taken whole (`taken` steps)."""
        cut = self.reach > self.stride or self.rows != self.stride * (self.steps - 1) + self.reach  # a halo, or padding
        return extent == 1 or not (cut or made % extent or self.stride * taken % extent)

    def live(self, made: int, taken: int) -> int:
        """Most live positions if `made` positions are made at once, and `taken` steps are taken at once."""
        return _live(self.rows, self.steps, self.stride, self.reach, made, taken)


@cache
def _live(rows: int, steps: int, stride: int, reach: int, made: int, taken: int) -> int:
    padding = max(0, stride * (steps - 1) + reach - rows) // 2
    most = there = 0
    # steps after which the same comes again, padding at the begin aside
    again = math.lcm(made, stride * taken) // stride
    for first in range(0, min(steps, again * (2 + padding)), taken):
        needed = min(rows, max(1, stride * (first + taken - 1) + reach - padding))
        there = max(there, min(rows, -(-needed // made) * made))
        most = max(most, there - min(max(0, stride * first - padding), there - made))
    return most


@attrs.frozen
class RankWalk:
    """Walk of a node along a rank of a tensor."""

    dim: str
    """The node's dimension along the rank; empty for none or several."""
    size: int
    """Positions of the rank, including padding."""
    steps: int = 1
    """Size of the dimension."""
    stride: int = 1
    reach: int = 1
    """Positions covered by one step."""


def made(node: Node) -> tuple[RankWalk, ...]:
    """Walks of a node along the ranks of its output; dimensions of operations are rank numbers."""
    if node.loops is None:
        steps = _steps(node) or ((1, 1),) * len(node.shape)
        walked = zip(steps, node.shape, strict=False)
        return tuple(RankWalk(str(rank) if step else "", size, size) for rank, ((step, _), size) in enumerate(walked))
    output = next(t for t in node.loops.tensors if t.output)
    ranks = zip(output.ranks, output.shape(node.loops.sizes), strict=True)
    return tuple(RankWalk(rank[0][0] if len(rank) == 1 else "", size, size) for rank, size in ranks)


def taken(node: Node, operand: str, sums: bool = True) -> tuple[RankWalk, ...]:
    """Walks of a node along the ranks of an input tensor, `operand` of a layer; `sums`: include ranks summed over."""
    if node.loops is None:
        return tuple(
            RankWalk(str(rank), stride * (size - 1) + reach, size, stride, reach) if stride else RankWalk("", size)
            for rank, ((stride, reach), size) in enumerate(zip(_steps(node), node.shape, strict=False))
        )
    tensor = next(t for t in node.loops.tensors if t.name == operand)
    output, sizes = next(t for t in node.loops.tensors if t.output), node.loops.sizes
    found = []
    for rank, width in zip(tensor.ranks, tensor.shape(sizes), strict=True):
        moving = [(dim, stride) for dim, stride in rank if dim in output.dims]
        if sums and len(rank) == 1:
            moving = list(rank)
        reach = 1 + sum((sizes[dim] - 1) * c for dim, c in rank if (dim, c) not in moving)
        (dim, stride) = moving[0] if len(moving) == 1 else ("", 1)
        found.append(RankWalk(dim, width, sizes.get(dim, 1), stride, reach))
    return tuple(found)


def _steps(node: Node) -> tuple[tuple[int, int], ...]:
    """`Operation.windows` of an operation."""
    return node.piece.windows(len(node.shape)) if isinstance(node.piece, Operation) else ()


def slides(maker: Node, taker: Node, operand: str = "", sums: bool = True) -> tuple[Slide, ...]:
    """Ranks for a node's output to slide along into another node, as `operand` of a layer; empty if ranks split.

    `sums`: include ranks the consumer sums over, with its partial sums staying."""
    ours, theirs = made(maker), taken(taker, operand, sums)
    if len(ours) != len(theirs):
        return ()
    found = []
    for rank, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        padding = other.size - one.size
        if not -other.stride < padding < other.reach if other.dim else padding:
            return ()
        if one.dim and other.dim:
            across = math.prod(walk.size for walk in ours) // one.size
            walked = one.dim, other.dim, one.size, other.steps, other.stride, other.reach
            name = dict(enumerate(FROM_THE_END, 1)).get(len(ours) - rank, "")
            found.append(Slide(*walked, across, rank, name))
    return tuple(found)


def outermost(problem: Problem, designs: Designs) -> list[Outermost]:
    """Per design, the first loop outside the outermost level on chip."""
    bounds, order = designs.columns["bounds"][0], designs.columns["order"][0].astype(np.int64)
    ordered = np.take_along_axis(bounds, order, axis=0)
    first = (ordered > 1.0).argmax(axis=0)
    columns = np.arange(bounds.shape[1])
    axes, found = order[first, columns], ordered[first, columns]
    loops = zip(axes.tolist(), found.tolist(), strict=True)
    return [(problem.dims[axis], int(bound)) if bound > 1.0 else None for axis, bound in loops]


def sliced(problem: Problem, genomes: Sequence[tuple[int, ...]], dims: Sequence[str]) -> list[tuple[int, ...]]:
    """Variants of designs with an outermost loop along one of some dimensions, in steps of every size.

    Other dimensions are whole on chip, or unchanged; they fill fan-outs that become free."""
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
    """Variants of loop bounds (L, D) of a design with an outermost level of `steps` steps of one dimension."""
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
    """The order (L, D) with the dimension outermost, and loops moved inwards first in the inner level."""
    found = order.copy()
    found[0] = sorted(order[0], key=lambda d: d != axis)
    came = (before[0] > 1.0) & (bounds[0] == 1.0)
    found[inner] = sorted(order[inner], key=lambda d: not came[d])
    return found
