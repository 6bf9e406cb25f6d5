"""Why a peer counts other words than SparseMap: rules with figures, each checked on the count itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
from sparsemap_plugins.exchange.nest import Nest

from sparsemap.problem.designs import Design

NEAR = 0.01
"""Share of a count below which whole accesses of a wide port explain a difference."""
REASONS = {
    "equal": "the same count",
    "drain": "reads of leaving sums",
    "first": "reads of leaving sums, and reads or writes of sums before the first product",
    "pins": "an operand stays at the pins of the innermost memory while the word stays the same",
    "port": "whole accesses of a wide port",
    "windows": "overlapping windows are fetched as a whole",
    "shared": "units share words of overlapping windows",
    "place": "accelforge refuses the place of a tensor, which goes back more often",
    "again": "accelforge fetches an unchanged tile again",
    "none": "not explained",
}


@attrs.frozen
class Facts:
    """Words of the whole chip by memory and tensor, for the rules."""

    updates: Mapping[str, float]
    drains: Mapping[str, float]
    """Words of the output leaving a memory outwards."""
    still: Mapping[str, float]
    """Steps in time with the same word of an operand at the compute units."""
    windows: frozenset[str]
    output: str


def facts_of(design: Design) -> Facts:
    """Facts of a dense design."""
    problem, nest = design.problem, Nest.of(design)
    found: Any = problem.cost_model.evaluate(design.batch, problem, detail=True).detail
    (out,) = (t for t, tensor in enumerate(problem.tensors) if tensor.output)
    updates: dict[str, float] = {}
    drains: dict[str, float] = {}
    stored = [level.index for level in problem.levels if problem.stores(out, level.index)]
    for outer, inner in zip([None, *stored], [*stored, None], strict=False):
        if inner is None:
            break
        memory = problem.levels[inner].name.partition("/")[0]
        used = float(found.instances_active[out, inner, 0])
        updates[memory] = updates.get(memory, 0.0) + float(found.dense_updates[out, inner, 0]) * used
        if outer is None:
            continue
        across = [loop.bound for loop in design.loops if loop.spatial and outer <= loop.storage < inner
                  and loop.dim not in problem.tensors[out].dims]  # fmt: skip
        sums = float(found.dense_updates[out, outer, 0]) * float(found.instances_active[out, outer, 0])
        drains[memory] = drains.get(memory, 0.0) + sums * math.prod(across)
    still: dict[str, float] = {}
    for tensor in problem.tensors:
        run = 1
        for dim, bound in reversed(nest.temporal):
            if dim in tensor.dims:
                break
            run *= bound
        still[tensor.name] = run
    windows = frozenset(one.name for one in problem.tensors if any(len(rank) > 1 for rank in one.ranks))
    return Facts(updates, drains, still, windows, problem.tensors[out].name)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(one, other, 1.0)


def reason_for(tool: str, key: str, ours: float, theirs: float, facts: Facts, losses: tuple[str, ...]) -> str:
    """A key of `REASONS`, the first whose figures give the peer's count."""
    memory, tensor, action = key.split("/")
    if math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-6):
        return "equal"
    updates, drain = facts.updates.get(memory, 0.0), facts.drains.get(memory, 0.0)
    if tensor == facts.output:
        if action == "read" and _near(theirs, ours + drain):
            return "drain"
        if tool == "ZigZag" and any(_near(theirs, words) for words in (updates + drain, updates)):
            return "first"
    elif tool == "ZigZag" and action == "read" and _near(theirs * facts.still[tensor], ours):
        return "pins"
    if _near(ours, theirs):
        return "port"
    if any("goes back" in text for text in losses):
        return "place"
    if any(text.startswith(f"{tensor} stays") for text in losses):
        return "again"
    if tensor in facts.windows:
        return "windows" if theirs > ours else "shared"
    return "none"
