"""The packets in which designs store a tensor: below its outermost compressed rank the order of words is fixed.

What is outside that rank is a grid of packets in any order, whose addresses are computed. Who writes a tensor and who
reads it agree if their packets are equal; without a compressed rank there are none, and every word has an address.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..errors import DesignError
from ..pieces.data_specs import Converter
from ..problem.chip import Chip
from ..problem.designs import Design, Designs
from ..problem.problem import Problem
from .graph import converted
from .join import Step, TablePoint, Together

Packet = tuple[tuple[int, int, str], ...]
"""From the outermost compressed rank inwards: the tensor's rank that a loop moves, its bound, the name of its format."""
PLAIN: Packet = ()


@attrs.frozen
class TensorPlace:
    """Where a tensor lives between layers."""

    level: str
    packet: Packet = PLAIN
    """The packets in which it is written there."""
    slides: str = ""
    """What lives of it at a time, of how much along which loop; empty: the whole of it."""
    words: float = 0.0
    """Of a tensor that slides by, what lives of it at a time."""


def packet_of(design: Design, tensor: int) -> Packet:
    """The packets of a tensor in a design; loops with a bound of 1 are no part of them."""
    of = {dim: r for r, rank in enumerate(design.problem.tensors[tensor].ranks) for dim, _ in rank}
    ranks = design.ranks(tensor)
    first = next((i for i, rank in enumerate(ranks) if rank.format.compressed), len(ranks))
    return tuple((of[rank.loop.dim], rank.loop.bound, rank.format.name) for rank in ranks[first:])


def packets(problem: Problem, designs: Designs, tensors: Sequence[int]) -> list[tuple[Packet, ...]]:
    """Per design, the packets of some tensors."""
    formats = problem.candidates("format")
    packed = np.array([form.compressed for form in formats], dtype=bool)
    if not packed.any() or not tensors:
        return [(PLAIN,) * len(tensors)] * len(designs)
    some = packed[designs.columns["formats"]].any(axis=1)  # (T, B)
    some |= any(form.compressed for form in problem.candidates("beyond-format"))
    found = []
    for row, asked in enumerate(some[list(tensors)].T):
        design = Design.of(problem, designs.take(slice(row, row + 1))) if asked.any() else None
        found.append(tuple(packet_of(design, t) if design and some[t, row] else PLAIN for t in tensors))
    return found


def uncompressed(problem: Problem, genomes: Sequence[tuple[int, ...]], tensors: Sequence[int]) -> list[tuple[int, ...]]:
    """The same designs with some tensors stored word by word, as far as the space can say so; and these repaired, since
    larger tiles may not fit, and nothing skips by a tensor without metadata."""
    plain = [i for i, form in enumerate(problem.candidates("format")) if not form.compressed]
    designs = problem.space.decode(np.array(genomes, dtype=np.int64))
    if not plain or "formats" not in designs.columns:
        return []
    formats = designs.columns["formats"].copy()
    formats[list(tensors)] = plain[0]
    try:
        found = problem.space.encode(Designs({**designs.columns, "formats": formats}))
    except DesignError:  # a space whose formats are fixed
        return []
    repaired = problem.space.repair(found, np.random.default_rng(0))
    return [tuple(genome) for genome in (*found.tolist(), *repaired.tolist())]


@attrs.frozen
class Converted:
    """A point whose output is rewritten once it is there, or encoded on its way out, or whose inputs are rewritten before it
    runs: `point` without that, and what it adds."""

    point: TablePoint
    energy_pj: float
    cycles: float
    step: str = "converted"
    """Or `encoded`; `inputs`: these are rewritten."""


def encoded(point: TablePoint, words: int, converter: Converter) -> TablePoint:
    """A point whose output of so many `words` passes the unit as it leaves, which may hold the layer up."""
    late = max(0.0, math.ceil(words / converter.words_per_cycle) - point.cycles)
    made = Converted(point, converter.pj * words, late, "encoded")
    return attrs.evolve(point, energy_pj=point.energy_pj + made.energy_pj, cycles=point.cycles + late, design=made)


def bare(point: TablePoint) -> tuple[TablePoint, tuple[Converted, ...]]:
    """A point of a layer without what is done to its output, and that, in the order in which it is done."""
    passes: list[Converted] = []
    while isinstance(point.design, Converted):
        passes.append(point.design)
        point = point.design.point
    return point, tuple(passes[::-1])


def with_conversions(
    step: Step, targets: Mapping[Packet, float], stored: Callable[[Any], float], words: int, levels: Mapping[str, int],
    converter: Converter, chip: Chip,
) -> Step:  # fmt: skip
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
            for point in points:  # of the layer that makes the output
                last = point.design.parts[-1][2] if isinstance(point.design, Together) else point
                costs = converted(converter, stored(bare(last)[0].design), written, words, levels[here.level], chip)
                room = max(point.room, step.words.get(place, 0.0))
                tables.setdefault((inputs, other), []).append(followed(point, *costs, room))
            if place in step.words:
                sizes[other] = step.words[place]
    return attrs.evolve(step, tables=tables, words=sizes)


def followed(point: TablePoint, pj: float, cycles: float, room: float, step: str = "converted") -> TablePoint:
    """A point with a pass behind it, or as `Converted` says."""
    costs = point.energy_pj + pj, point.cycles + cycles
    if isinstance(point.design, Together):
        *before, (name, place, last) = point.design.parts
        together = Together((*before, (name, place, followed(last, pj, cycles, last.room))))
        return TablePoint(*costs, room, together)
    return TablePoint(*costs, room, Converted(point, pj, cycles, step))
