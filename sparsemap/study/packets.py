"""Packets of stored tensors: below the outermost compressed rank of a design, the order of words is fixed.

Outside this rank, a tensor is a grid of packets in any order, with computed addresses. A producer and a consumer of a
tensor agree if their packets are equal. Without a compressed rank, a tensor has no packets, and every word has an
address."""

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
"""Loops from the outermost compressed rank inwards: the tensor's rank moved by the loop, the bound, the format's name."""
PLAIN: Packet = ()


@attrs.frozen
class TensorPlace:
    """Place of a tensor between layers."""

    level: str
    packet: Packet = PLAIN
    slides: str = ""
    """For a sliding tensor, the live extent, the full extent, and the loop, as text; empty: resident as a whole."""
    words: float = 0.0
    """Live words of a sliding tensor."""


def level_of(place: Any) -> str:
    """Level of a place of a plan of a network."""
    assert isinstance(place, TensorPlace)
    return place.level


def packet_of(design: Design, tensor: int) -> Packet:
    """Packets of a tensor in a design, without loops of bound 1."""
    of = {dim: r for r, rank in enumerate(design.problem.tensors[tensor].ranks) for dim, _ in rank}
    ranks = design.ranks(tensor)
    first = next((i for i, rank in enumerate(ranks) if rank.format.compressed), len(ranks))
    return tuple((of[rank.loop.dim], rank.loop.bound, rank.format.name) for rank in ranks[first:])


def packets(problem: Problem, designs: Designs, tensors: Sequence[int]) -> list[tuple[Packet, ...]]:
    """Packets of some tensors, per design."""
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
    """The same designs with some tensors uncompressed, where the space allows, and repaired versions.

    Repairs are needed: larger tiles may not fit, and nothing skips by a tensor without metadata."""
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
    """A layer's `point`, plus energy and cycles of a conversion (of the output afterwards or on its way, or of inputs),
    or of the activation."""

    point: TablePoint
    energy_pj: float
    cycles: float
    step: str = "converted"
    """`converted` or `encoded` (output), `inputs` (rewritten inputs), or the type of the activation."""


def encoded(point: TablePoint, words: int, converter: Converter) -> TablePoint:
    """A point whose output (`words`) the converter encodes on the way out; a slow converter delays the layer."""
    late = max(0.0, math.ceil(words / converter.words_per_cycle) - point.cycles)
    made = Converted(point, converter.pj * words, late, "encoded")
    return attrs.evolve(point, energy_pj=point.energy_pj + made.energy_pj, cycles=point.cycles + late, design=made)


def bare(point: TablePoint) -> tuple[TablePoint, tuple[Converted, ...]]:
    """A layer's point without conversions, and the conversions in order."""
    passes: list[Converted] = []
    while isinstance(point.design, Converted):
        passes.append(point.design)
        point = point.design.point
    return point, tuple(passes[::-1])


def with_conversions(
    step: Step, targets: Mapping[Packet, float], stored: Callable[[Any], float], words: int, levels: Mapping[str, int],
    converter: Converter, chip: Chip,
) -> Step:  # fmt: skip
    """The step, plus points that write the output (`words`) in any packets and convert it to one of the `targets`.

    `stored`: words plus metadata written by a design. Both copies need room on chip during the conversion."""
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
    """A point followed by a pass, see `Converted`."""
    costs = point.energy_pj + pj, point.cycles + cycles
    if isinstance(point.design, Together):
        *before, (name, place, last) = point.design.parts
        together = Together((*before, (name, place, followed(last, pj, cycles, last.room))))
        return TablePoint(*costs, room, together)
    return TablePoint(*costs, room, Converted(point, pj, cycles, step))
