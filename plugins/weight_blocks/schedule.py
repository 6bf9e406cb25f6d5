"""A network on a machine: the splits, the memory and the time of every layer, in the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SpecError

from .durations import Steps, layer_steps, tile_rows
from .layers import BLOCK, Layer, round_up
from .machine import Machine
from .memory import Allocator, Place, Placement
from .splits import Cut, Splits, by_pair


@attrs.frozen(eq=False)
class Planned:
    """A layer in a schedule."""

    cut: Cut
    splits: Splits
    placement: Placement
    steps: Steps

    @property
    def seconds(self) -> float:
        return float(self.steps.total)


@attrs.frozen(eq=False, slots=False)
class Schedule:
    """The layers of a network in order; concatenations take no time and are left out."""

    machine: Machine
    quirks: frozenset[str]
    layers: tuple[Planned, ...]

    shapes: Mapping[str, tuple[int, int, int]]
    """Rows, columns and channels of every tensor."""
    concats: Mapping[str, tuple[str, ...]]
    """Concatenations by name, as the tensors that they join."""
    slices: Mapping[str, Any]
    """Tensors of tiles by name: which rows of another one they are (`tiling.Slice`)."""

    @cached_property
    def seconds(self) -> float:
        return float(sum(planned.seconds for planned in self.layers))

    @cached_property
    def row_bytes(self) -> dict[str, int]:
        """Bytes of a row of a tensor in one memory tile."""
        columns = self.machine.columns
        return {name: -(-width // columns) * round_up(c) for name, (_, width, c) in self.shapes.items()}


Choose = Callable[[Cut, Placement], Splits]
"""The sub-volume of a layer that has its place in memory."""


def compile_layers(
    layers: Sequence[Layer],
    machine: Machine,
    quirks: frozenset[str] = frozenset(),
    choose: Choose | None = None,
    progress: Callable[[], None] = lambda: None,
    stored: frozenset[str] = frozenset(),
    slices: Mapping[str, Any] | None = None,
) -> Schedule:
    """The schedule of a network on a machine that has the rates that the quirks ask for.

    `choose` replaces the exhaustive choice of sub-volumes. Outputs named in `stored` go to DDR. Tiles of a layer, whose
    names are alike up to an "@", divide the input channels alike, since they have the same weights.
    """
    parts: dict[str, int] = {}
    cuts = {layer.name: Cut(layer, machine, quirks) for layer in layers}
    known: dict[Any, Splits] = {}

    held: dict[tuple[str, int], int] = {}

    def weights(layer: Layer, passes: int) -> int:
        key = layer.name, passes
        if key not in held:
            held[key] = least_weights(cuts[layer.name], passes) if layer.op == "conv" else 0
        return held[key]

    concats = {layer.name: layer.inputs for layer in layers if layer.op == "concat"}
    allocator = Allocator(layers, machine, quirks, weights, wanted=stored)
    planned = []
    for index, layer in enumerate(layers):
        placement = allocator.place(index)
        if layer.op == "concat":
            continue
        cut = cuts[layer.name]
        base, is_tile, _ = layer.name.partition("@")
        splits = choose(cut, placement) if choose else best_splits(cut, placement, known, parts.get(base, 0))
        if is_tile and layer.op == "conv":
            parts[base] = int(splits.ci)
        if layer.op == "conv" and "rule-splits" not in quirks:
            start = -(-placement.room[0] // machine.alignment) * machine.alignment
            place = Place("weights", start, start + int(pass_bytes(cut, splits)))
            placement = attrs.evolve(placement, weights=place)
        planned.append(Planned(cut, splits, placement, steps_of(cut, splits, placement)))
        progress()
    return Schedule(machine, quirks, tuple(planned), allocator.shapes, concats, slices or {})


def steps_of(cut: Cut, splits: Splits, placement: Placement) -> Steps:
    """The durations of a layer where it has its place."""
    return layer_steps(cut, splits, placement.load, placement.write, weight_loads(cut, splits))


def weight_loads(cut: Cut, splits: Splits) -> Any:
    """How often weights come from DDR: once, or once per tile where they pass in parts."""
    return np.where(np.asarray(splits.passes) > 1, tile_rows(cut, splits)[1], 1)


def least_weights(cut: Cut, passes: int) -> int:
    """Bytes of weights per memory tile of the largest pass: those of the rule's sub-volume, or the least that is sound."""
    if "rule-splits" in cut.quirks:
        rule = cut.rule()
        chunks = -(-cut.layer.padded_out_channels // rule.co) * -(-cut.channels // rule.ci)
        whole = -(-chunks // cut.machine.columns) * cut.chunk_bytes(rule.co, rule.ci)
        return math.ceil(whole / passes)
    sizes = (float(pass_bytes(cut, Splits(co, cut.channels, 1, 1, passes))) for co in (BLOCK, cut.row_channels))
    return int(min(*sizes, cut.machine.memtile + 1))


def pass_bytes(cut: Cut, splits: Splits) -> Any:
    """Bytes of weights per memory tile of the largest pass; infinity where there are fewer chunks than passes."""
    share = -(-cut.machine.rows // cut.machine.columns)
    passes = int(np.max(splits.passes))

    def largest(co: int, ci: int) -> float:
        sizes = cut.chunk_sizes(co, ci).sum(axis=1)
        if passes > len(sizes):
            return math.inf
        return share * float(np.add.reduceat(sizes, np.arange(0, len(sizes), -(-len(sizes) // passes))).max())

    return by_pair(splits, largest)


def signature(cut: Cut, placement: Placement) -> Any:
    """Equal for layers that have the same sub-volumes and times; room beyond twice the weights counts as that."""
    layer = cut.layer
    room = placement.room[1] - placement.room[0]
    if layer.op == "conv":
        room = min(room, 2 * least_weights(cut, 1))
    mask = None if layer.mask is None else layer.mask.tobytes()
    shape = attrs.astuple(attrs.evolve(layer, name="", inputs=(), mask=None))
    return shape, mask, placement.tiles, placement.passes, placement.load, placement.write, room


def best_splits(cut: Cut, placement: Placement, known: dict[Any, Splits], part: int = 0) -> Splits:
    """The sub-volume that takes the least time of all that fit, or the rule's where quirks ask for it.

    `part`: the input channels of a chunk, if they are given.
    """
    tiles, passes = placement.tiles, placement.passes
    if "rule-splits" in cut.quirks:
        return attrs.evolve(cut.rule(), tiles=tiles, passes=passes)
    layer, key = cut.layer, (signature(cut, placement), part)
    if key in known:
        return known[key]
    rows = -(-layer.out_height // tiles)
    every = cut.candidates(rows)
    every = attrs.evolve(every, tiles=tiles, passes=passes)
    if layer.op == "conv":
        fits = pass_bytes(cut, every) <= placement.room[1] - placement.room[0]
        fits &= (every.ci == part) | (part == 0)
        every = Splits(every.co[fits], every.ci[fits], every.rows[fits], tiles, passes)
    if not len(every.co):
        raise SpecError.at("", f"layer {layer.name}", "no sub-volume fits in the buffers of a core")
    times = layer_steps(cut, every, placement.load, placement.write, weight_loads(cut, every)).total
    best = int(np.argmin(times))
    found = Splits(int(every.co[best]), int(every.ci[best]), int(every.rows[best]), tiles, passes)
    known[key] = found
    return found
