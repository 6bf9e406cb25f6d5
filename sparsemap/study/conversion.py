"""Tensors that are rewritten between two layers, from the packets of one to those of the other, in a pass of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ..pieces.data_specs import Converter
from ..problem.chip import Chip
from .graph import converted
from .join import Step, TablePoint, Together
from .packets import Packet


@attrs.frozen
class Converted:
    """A point after which its output is rewritten: `point` without the pass, and what that costs."""

    point: TablePoint
    energy_pj: float
    cycles: float


def with_conversions(
    step: Step,
    targets: Mapping[Packet, float],
    stored: Callable[[Any], float],
    words: int,
    levels: Mapping[str, int],
    converter: Converter,
    chip: Chip,
) -> Step:
    """A step that may write its output of so many `words` in any packets, and rewrite it as one of the `targets`, each with
    its words and metadata; `stored`: those of what a design writes. Both copies have room on chip meanwhile."""
    tables: dict[Any, list[TablePoint]] = {key: list(points) for key, points in step.tables.items()}
    sizes = dict(step.words)
    for (inputs, place), points in step.tables.items():
        here: Any = place
        for packet, written in targets.items():
            if packet == here.packet:
                continue
            other = attrs.evolve(here, packet=packet)
            for point in points:
                costs = converted(converter, stored(_last(point).design), written, words, levels[here.level], chip)
                room = max(point.room, step.words.get(place, 0.0))
                tables.setdefault((inputs, other), []).append(_followed(point, *costs, room))
            if place in step.words:
                sizes[other] = step.words[place]
    return attrs.evolve(step, tables=tables, words=sizes)


def _last(point: TablePoint) -> TablePoint:
    """The point of the layer that makes the output."""
    return point.design.parts[-1][2] if isinstance(point.design, Together) else point


def _followed(point: TablePoint, energy_pj: float, cycles: float, room: float) -> TablePoint:
    """A point with a pass behind it."""
    costs = point.energy_pj + energy_pj, point.cycles + cycles
    if isinstance(point.design, Together):
        *before, (name, place, last) = point.design.parts
        together = Together((*before, (name, place, _followed(last, energy_pj, cycles, last.room))))
        return TablePoint(*costs, room, together)
    return TablePoint(*costs, room, Converted(point, energy_pj, cycles))
