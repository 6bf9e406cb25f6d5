"""Padding of sizes with few factors: by rule, or by the cost model's forecast for their tiles."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache, partial
from itertools import combinations
from threading import RLock
from typing import Any

import attrs
import numpy as np

from sparsemap import Evaluation, Problem
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Outlook
from sparsemap.primes import divisors, is_prime, largest_product
from sparsemap.problem.tables import content_of

FULLER = 0.8
"""Relative time below which sizes are padded to fill the fan-outs."""
MOST_OPEN = 6
"""Number of dimensions considered, largest first."""
BETTER = 0.95
"""Relative score below which better tiles justify other sizes."""
TOLD = 0.95
"""Smallest forecast, relative to the bound, to be trusted; below, effects outside the forecast would decide."""
ALIKE = 1.005
"""Relative difference of scores counted as equal; then the size with the most divisors is chosen."""
LARGER, PADDED_LARGER = 8, 16
"""Largest growth of sizes, as one part in this number: for better tiles, and for sizes padded anyway."""
MOST_LARGER = 512
"""Largest absolute growth of a size."""
LARGEST = 1 << 24
"""Largest size considered; larger sizes would have to be factored."""
RICHER = 1.5
"""Ratio of divisors above which a size larger than necessary is worthwhile."""
KEPT = 256
"""Number of problems with cached sizes in a process."""


@attrs.frozen
class Padding:
    """Padded sizes of the dimensions."""

    sizes: Mapping[str, int]
    why: str = ""
    """Reason in a few words; "" for the paper's rule."""


def next_composite(size: int, threshold: int) -> int:
    """The paper's padding (Section IV-B): a prime above the threshold becomes the next composite number."""
    if size <= threshold or not is_prime(size):
        return size
    return size + 1 if size > 2 else 4


def next_smooth(size: int, largest: int) -> int:
    """Smallest number from `size` on without a prime factor above `largest`."""
    return _next_smooth(size, tuple(p for p in range(2, largest + 1) if is_prime(p)))


@cache
def _next_smooth(size: int, primes: tuple[int, ...]) -> int:
    """`next_smooth` for a set of primes: the largest prime divides the result once more, or not at all."""
    if size <= 1:
        return 1
    if len(primes) == 1:
        power = 1
        while power < size:
            power *= primes[0]
        return power
    return min(_next_smooth(size, primes[:-1]), primes[-1] * _next_smooth(-(-size // primes[-1]), primes))


@cache
def richer(size: int) -> tuple[int, ...]:
    """Sizes, up to an eighth larger, with more divisors than all smaller ones from `size` on: 730 -> 732, 744, 756, 792."""
    if len(sizes := np.array(near_sizes(size, LARGER))) == 1:
        return ()
    small = np.arange(1, math.isqrt(int(sizes[-1])) + 1)[:, None]
    counts = ((sizes % small == 0) * (1 + (small * small < sizes)) * (small * small <= sizes)).sum(axis=0)
    most = np.maximum.accumulate(counts)
    return tuple(sizes[1:][most[1:] > most[:-1]].tolist())


def most_divisors(size: int, part: int) -> int:
    """The size with the most divisors among near sizes."""
    return max(near_sizes(size, part), key=lambda near: (len(divisors(near)), -near))


def near_sizes(size: int, part: int) -> range:
    """Sizes from a size on, up to one `part` larger."""
    return range(size, size + (min(size // part, MOST_LARGER) if size <= LARGEST else 0) + 1)


def chosen(problem: Problem, plain: Mapping[str, int], largest: int) -> Padding:
    """Padding for a problem, cached by contents; `plain`: sizes by the paper's rule, `largest`: factor of smooth sizes."""
    own = problem.loops, problem.mapping_levels, problem.workload, plain, largest
    alike = problem.chip, problem.hardware, problem.space_spec, problem.cost_model, problem.objective
    with _LOCK:
        key = content_of(own), *map(_content, alike)
        if key not in _KNOWN:
            if len(_KNOWN) == KEPT:
                _KNOWN.pop(next(iter(_KNOWN)))
            full = _fuller(problem, plain, largest)
            full = full if taken(problem, full.sizes) else Padding(plain)
            _KNOWN[key] = _with_better_tiles(problem, full) or full
        return _KNOWN[key]


_KNOWN: dict[Hashable, Padding] = {}
_CONTENTS: dict[int, tuple[Any, Hashable]] = {}
"""By identity of a frozen part, the part and its contents; problems of a network share these parts."""
_LOCK = RLock()


def _content(part: Any) -> Hashable:
    if id(part) not in _CONTENTS:
        if len(_CONTENTS) >= KEPT:
            _CONTENTS.clear()
        _CONTENTS[id(part)] = part, content_of(part)
    return _CONTENTS[id(part)][1]


def taken(problem: Problem, sizes: Mapping[str, int]) -> bool:
    """Whether the densities accept tensors of these sizes: a band has to be square, data have fixed sizes."""
    try:
        for tensor in problem.loops.tensors:
            tensor.density.occupancy(tensor.shape(sizes))
    except SpecError:
        return False
    return True


def _fuller(problem: Problem, plain: Mapping[str, int], largest: int) -> Padding:
    """Smooth sizes if they fill the fan-outs sufficiently better, or nearby sizes with many more divisors."""
    smooth = {dim: next_smooth(size, largest) for dim, size in problem.loops.sizes.items()}
    unlike = sorted((dim for dim in plain if smooth[dim] != plain[dim]), key=lambda dim: -problem.loops.sizes[dim])
    open_dims = unlike[:MOST_OPEN]
    limits = [level.limit for level in problem.mapping_levels if level.spatial]
    subsets = [some for count in range(len(open_dims)) for some in combinations(open_dims, count + 1)]
    steps = [_steps({**plain, **{dim: smooth[dim] for dim in some}}, limits) for some in subsets]
    given = _steps(plain, limits)
    if min(steps, default=given) >= FULLER * given:
        return Padding(plain)
    best = subsets[-1] if steps[-1] < given else subsets[steps.index(min(steps))]
    sizes = {**plain, **{dim: smooth[dim] for dim in best}}
    why = f"to fill the fan-outs: {_steps(sizes, limits) / given:.2g}x the steps"
    return Padding(_many_divisors(problem, sizes), why)


def _many_divisors(problem: Problem, sizes: Mapping[str, int]) -> dict[str, int]:
    """For padded dimensions, the size with the most divisors, if sufficiently many more."""
    found = dict(sizes)
    for dim, given in problem.loops.sizes.items():
        if sizes[dim] > given:
            best = most_divisors(given, PADDED_LARGER)
            found[dim] = best if len(divisors(best)) >= RICHER * len(divisors(sizes[dim])) else sizes[dim]
    if found == sizes:
        return found
    return found if outlook(problem.laid_out(found)) else dict(sizes)


def outlook(larger: Problem) -> Outlook | None:
    """Forecast of the cost model; None if a density, such as actual data, rejects so large a tensor."""
    try:
        return larger.cost_model.outlook(larger)
    except SpecError:
        return None


def _steps(sizes: Mapping[str, int], limits: Sequence[int]) -> float:
    """Steps of all computes with fan-outs as full as the factors of the sizes allow."""
    return math.prod(sizes.values()) / largest_product(limits, sizes.values())


def foreseen(problem: Problem) -> bool:
    """Whether a forecast of one score for all designs makes sense."""
    judge = problem.judge
    return len(judge.names) == 1 and judge.monotone and not problem.scenarios and not problem.has_layouts


def worth(problem: Problem, found: Evaluation) -> float:
    """Best score of rows of costs."""
    return float(problem.evaluator.score(found.on(problem.chip)).min())


def _with_better_tiles(problem: Problem, base: Padding) -> Padding | None:
    """Sizes with a better expected score of tiles, dimension by dimension, largest first; None: not much better."""
    options = {dim: larger for dim, size in problem.loops.sizes.items() if (larger := richer(size))}
    largest = problem.laid_out({dim: max(size, *options.get(dim, (size,))) for dim, size in base.sizes.items()})
    if not foreseen(largest):
        return None
    score_of, judge = partial(worth, largest), largest.judge
    forecast, sizes = outlook(largest), dict(base.sizes)
    given = forecast.of([sizes]) if forecast else None
    if forecast is None or given is None:
        return None
    first = best = score_of(given[0])
    if score_of(forecast.least) >= BETTER * first:
        return None
    for dim in sorted(options, key=lambda dim: -options[dim][0]):
        tried = options[dim]
        while tried and not (found := forecast.of([{**sizes, dim: size} for size in tried])):
            tried = tried[:-1]  # there were too many tiles
        scores = [score_of(one) for one in found or ()] if tried else []
        if min(scores, default=best) < best:
            best = min(scores)
            alike = [size for size, score in zip(tried, scores, strict=True) if score <= ALIKE * best]
            sizes[dim] = max(alike, key=lambda size: (len(divisors(size)), -size))
    if not best < BETTER * first or not taken(problem, sizes):
        return None
    # also for a search without a bound: its designs may be those of a longer search
    least = attrs.evolve(problem, bounded=True).laid_out(base.sizes).lower_bound
    if least is None or first < TOLD * score_of(least):
        return None
    return Padding(sizes, f"for tiles that fit: {best / first:.2g}x of {judge.name or judge.type_name} expected")
