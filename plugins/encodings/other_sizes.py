"""Padded sizes beside the usual ones, each by one rule for all dimensions, for a race of searches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from sparsemap import Problem

from .padding import LARGER, PADDED_LARGER, foreseen, most_divisors, near_sizes, outlook, taken, worth


def others(problem: Problem) -> list[dict[str, int]]:
    """Sizes unlike the problem's, for all dimensions by one rule each: as given, multiples of powers of two, sizes with
    the most divisors, multiples of fan-outs; in the order of their forecast. Empty without a forecast."""
    usual, given = dict(problem.sizes), dict(problem.loops.sizes)
    fanouts = [int(level.limit) for level in problem.mapping_levels if level.spatial]
    multiples = dict.fromkeys([*fanouts, math.prod(fanouts)])
    rules: list[Callable[[int], int]] = [lambda size: size]
    for part in (PADDED_LARGER, LARGER):
        rules += [partial(_even, part=part), partial(most_divisors, part=part)]
    rules += [partial(_multiple, of=number) for number in multiples]
    layouts = [{dim: rule(size) for dim, size in given.items()} for rule in rules]
    some = [sizes for i, sizes in enumerate(layouts) if sizes not in (usual, *layouts[:i]) and taken(problem, sizes)]
    largest = problem.laid_out({dim: max(sizes[dim] for sizes in (usual, *some)) for dim in given})
    forecast = outlook(largest) if some and foreseen(largest) else None
    if forecast is None:
        return []
    found = [forecast.of([sizes]) for sizes in some]
    scores = [math.inf if one is None else worth(largest, one[0]) for one in found]
    return [some[i] for i in sorted(range(len(some)), key=lambda i: scores[i])]


def _even(size: int, part: int) -> int:
    """Multiple of the largest power of two among near sizes."""
    return max(near_sizes(size, part), key=lambda near: (near & -near, -near))


def _multiple(size: int, of: int) -> int:
    """The next multiple, if near."""
    found = -(-size // of) * of
    return found if of <= size and found in near_sizes(size, LARGER) else size
