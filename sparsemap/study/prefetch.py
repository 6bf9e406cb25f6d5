"""Weights fetched ahead: while the off-chip level idles during a step, weights of later steps come into free room.

Energies stay, since the same words move. A prefetched word saves its transfer during its own step, until something
other than the off-chip level limits this step. Words stay in free room until the end of their step. The next weights
come first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

LEAST = 1e-9
"""Share of the cycles below which nothing is saved."""


@attrs.frozen(kw_only=True)
class Turn:
    """A step of a plan."""

    name: str
    cycles: float
    floor: float = math.inf
    """Cycles of the step with its weights on chip; `cycles` or more: nothing to save."""
    busy: float
    """Cycles in which the off-chip level moves words."""
    fetched: float = 0.0
    """Cycles of one transfer of the step's weights."""
    words: float = 0.0
    """Room of the step's weights."""
    free: float
    """Free room during the step."""


@attrs.frozen
class Ahead:
    """Weights that come before their steps."""

    cycles: float
    """Cycles of the whole plan."""
    words: Mapping[str, float]
    """Room of the prefetched weights by step."""


def prefetched(turns: Sequence[Turn]) -> Ahead:
    """The plan's cycles with weights fetched ahead."""
    saved, free = [0.0] * len(turns), [turn.free for turn in turns]
    for i, turn in enumerate(turns):
        idle = turn.cycles - turn.busy  # saved cycles are busy ones
        for j in range(i + 1, len(turns)):
            later = turns[j]
            most = min(later.cycles - later.floor, later.fetched) - saved[j]
            room = min(free[i : j + 1])
            if idle <= 0.0 or room <= 0.0:
                break
            if most <= LEAST * later.cycles:
                continue
            come = min(idle, most, room * later.fetched / later.words)
            saved[j], idle = saved[j] + come, idle - come
            for k in range(i, j + 1):
                free[k] -= come * later.words / later.fetched
    words = {
        turn.name: x * turn.words / turn.fetched
        for turn, x in zip(turns, saved, strict=True) if x > LEAST * turn.cycles
    }  # fmt: skip
    return Ahead(math.fsum(turn.cycles for turn in turns) - math.fsum(saved), words)
