"""Similarity of workloads, and transfer of designs between problems: dimensions match by name, tensors by role, mapping
levels by name."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import DesignError, SearchError, unknown
from ..inner.arrays import log2
from ..pieces.boundary import guarded, numbers
from ..pieces.contracts import Array, Loops
from .designs import Designs
from .problem import Problem
from .space import Space


def distance(one: Loops, other: Loops, metric: str = "edit") -> float:
    """Distance of two workloads by a metric of `METRICS`; DesignError if the tensors cannot be paired."""
    if metric not in METRICS:
        raise SearchError(unknown("metric", metric, METRICS))
    return METRICS[metric](one, other)


def nearness(one: Loops, other: Loops, metric: str) -> tuple[float, ...]:
    """Distances for ranking designs: by the metric, then by the other metrics to break ties."""
    return tuple(distance(one, other, name) for name in (metric, *(name for name in METRICS if name != metric)))


def edits(one: Loops, other: Loops) -> float:
    """Number of dimensions with different sizes (an absent dimension has size 1), plus tensors with different index
    projections."""
    sizes = sum(one.sizes.get(dim, 1) != other.sizes.get(dim, 1) for dim in {**one.sizes, **other.sizes})
    return float(sizes + sum(one.tensors[a].ranks != other.tensors[b].ranks for a, b in pairs(one, other)))


def logarithms(one: Loops, other: Loops) -> float:
    """Sum over the dimensions of |log2| of the ratio of their sizes."""
    pairs(one, other)
    ratios = [one.sizes.get(dim, 1) / other.sizes.get(dim, 1) for dim in sorted({**one.sizes, **other.sizes})]
    return math.fsum(abs(log2(ratio)) for ratio in ratios)


METRICS: dict[str, Callable[[Loops, Loops], float]] = {"edit": edits, "log": logarithms}
"""`edit` counts differences (Kao et al. 2022, Section VI), `log` measures the size of differences."""


def pairs(one: Loops, other: Loops) -> list[tuple[int, int]]:
    """Index pairs of tensors in the same role: operands in order, and the output."""
    a, b = ([[i for i, t in enumerate(x.tensors) if t.output is out] for out in (False, True)] for x in (one, other))
    if [len(x) for x in a] != [len(x) for x in b]:
        raise DesignError(f"the tensors of {_einsum(one)} and of {_einsum(other)} cannot be paired")
    return [pair for x, y in zip(a, b, strict=True) for pair in zip(x, y, strict=True)]


def check_levels(source: Problem, target: Problem) -> None:
    """DesignError unless both problems have the same mapping levels."""
    there, here = ([level.name for level in problem.mapping_levels] for problem in (source, target))
    if there != here:
        odd = [name for name in there if name not in here] or [name for name in here if name not in there]
        who = "the design has" if odd[:1] and odd[0] in there else "the design does not have"
        name = f"hardware '{target.hardware.name}'"
        raise DesignError(f"{who} {', '.join(odd)}; {name} has the mapping levels {' '.join(here)}")


def _einsum(loops: Loops) -> str:
    texts = [(t.output, f"{t.name}[{', '.join(t.dims)}]") for t in loops.tensors]
    return f"{' '.join(x for out, x in texts if out)} = {' * '.join(x for out, x in texts if not out)}"


def transferred(space: Space, designs: Designs, source: Problem, rng: np.random.Generator, fill: bool) -> Array:
    """`Space.transfer`."""
    check_levels(source, space.problem)
    pairs(source.loops, space.problem.loops)
    genomes = space.guess(len(designs), rng)
    for name, segment in space.segments.items():
        with guarded(segment, "transfer"):
            genes = segment.transfer(designs, source, space.problem, rng, fill)
        if genes is not None:
            shape = (len(space.segment_genes[name].names), len(designs))
            genomes[:, space.slices[name]] = numbers(segment, "transfer", "genes", genes, shape, "iu").T
    return genomes
