"""A network on a machine: splits, memory and time of every layer, in order.

A chain of layers may run from its first input to its last output once per tile of rows (depth-wise tiling): backwards
from the output, u rows of a layer's output need (u - 1) * stride + kernel rows of its input, clipped at the borders.
Tiles overlap, and both compute the shared rows; but tensors between the layers may stay in the memory tiles. Weights
are loaded for every tile again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SpecError

from .durations import Steps, layer_steps
from .layers import MeshLayer, round_up
from .machine import CoreMesh
from .memory import Allocator, Placement, TilePlace, expanded
from .record import ChunkProfile
from .splits import Cut, Splits, by_pair

MOST_CHAINED = 16
"""The most tiles of a chain in `best_tiles`."""


@attrs.frozen(eq=False)
class LayerPlan:
    """A layer in a schedule."""

    cut: Cut
    splits: Splits
    placement: Placement
    steps: Steps

    @property
    def seconds(self) -> float:
        return float(self.steps.total)

    @property
    def volumes(self) -> dict[str, int]:
        """Bytes by kind of step, cycles of COMP."""
        rates = self.cut.machine.rates
        return {step: round(float(seconds) * rates[step]) for step, seconds in self.steps.of.items()}

    @property
    def profile(self) -> ChunkProfile:
        return self.cut.profile(self.splits.co, self.splits.ci)


@attrs.frozen
class TensorSlice:
    """A tensor of a tile: rows [first, first + rows) of a whole tensor."""

    tensor: str
    first: int
    rows: int


@attrs.frozen(eq=False, slots=False)
class Schedule:
    """The layers of a network in order; concatenations take no time and are left out."""

    machine: CoreMesh
    network: tuple[MeshLayer, ...]
    """All layers, concatenations included."""
    layers: tuple[LayerPlan, ...]

    shapes: Mapping[str, tuple[int, int, int]]
    """Rows, columns and channels of every tensor."""
    outputs: Mapping[str, tuple[str, ...]]
    """Outputs of the network by name, each as its parts: all go to DDR."""
    slices: Mapping[str, TensorSlice]
    """Tensors of tiles by name."""

    @cached_property
    def plans(self) -> dict[str, LayerPlan]:
        """By name of the layer."""
        return {one.cut.layer.name: one for one in self.layers}

    @cached_property
    def seconds(self) -> float:
        return float(sum(planned.seconds for planned in self.layers))


Choose = Callable[[Cut, Placement], Splits]
"""The sub-volume of a placed layer."""


def compile_layers(
    layers: Sequence[MeshLayer],
    machine: CoreMesh,
    choose: Choose | None = None,
    progress: Callable[[], None] = lambda: None,
    slices: Mapping[str, TensorSlice] | None = None,
) -> Schedule:
    """The schedule of a network on a machine.

    `choose` replaces the exhaustive choice of sub-volumes. `slices` and their tensors go to DDR. Tiles of a layer, with
    the same name up to an "@", divide the input channels alike, as they have the same weights."""
    slices = slices or {}
    if machine.listed:
        layers = [attrs.evolve(layer, repeats=repeats_of(layer, layers, machine.columns)) for layer in layers]
    cuts = {layer.name: Cut(layer, machine) for layer in layers}
    parts: dict[str, int] = {}
    known: dict[Any, Splits] = {}
    outputs = outputs_of(layers, slices)
    stored = frozenset(slices) | {part.tensor for part in slices.values()} | set().union(*outputs.values())
    allocator = Allocator(layers, machine, lambda name, passes: least_weights(cuts[name], passes), stored)
    planned = []
    for index, layer in enumerate(layers):
        if layer.op == "concat":
            continue
        placement, cut = allocator.place(index), cuts[layer.name]
        base, is_tile, _ = layer.name.partition("@")
        splits = choose(cut, placement) if choose else best_splits(cut, placement, known, parts.get(base, 0))
        if cut.convolves:
            if is_tile:
                parts[base] = splits.ci
            if not machine.listed:
                start = round_up(placement.room.start, machine.alignment)
                place = TilePlace("weights", start, start + int(pass_bytes(cut, splits)))
                placement = attrs.evolve(placement, weights=place)
        planned.append(LayerPlan(cut, splits, placement, steps_of(cut, splits, placement)))
        progress()
    return Schedule(machine, tuple(layers), tuple(planned), allocator.shapes, outputs, slices)


def outputs_of(layers: Sequence[MeshLayer], slices: Mapping[str, TensorSlice]) -> dict[str, tuple[str, ...]]:
    """Tensors without a reader, and other outputs of the network, each as its parts."""

    def whole(name: str) -> str:
        return slices[name].tensor if name in slices else name

    read = {tensor for layer in layers for name in layer.inputs for tensor in (name, whole(name))}
    concats = {layer.name: layer.inputs for layer in layers if layer.op == "concat"}
    made = dict.fromkeys(whole(layer.name) for layer in layers)
    returned = {layer.name for layer in layers if layer.returned}
    return {name: expanded([name], concats) for name in made if name not in read or name in returned}


def repeats_of(layer: MeshLayer, layers: Sequence[MeshLayer], columns: int) -> int:
    """Runs of a convolution into a concatenation, the outermost one, in the paper's listings."""
    joined, found = layer.out_channels, layer.name
    for other in layers:
        if other.op == "concat" and found in other.inputs:
            joined, found = other.out_channels, other.name
    return -(-joined // (columns * layer.out_channels)) if layer.op == "conv" else 1


def steps_of(cut: Cut, splits: Splits, placement: Placement) -> Steps:
    """The durations of a placed layer."""
    return layer_steps(cut, splits, placement.load, placement.write)


def least_weights(cut: Cut, passes: int) -> int:
    """Bytes of weights per memory tile of the largest pass: of the rule's sub-volume, or the least sound number."""
    if not cut.convolves:
        return 0
    if cut.machine.listed:
        rule = cut.rule()
        chunks = -(-cut.layer.padded_out_channels // rule.co) * cut.parts(rule.ci)
        return math.ceil(-(-chunks // cut.machine.columns) * cut.chunk_bytes(rule.co, rule.ci) / passes)
    splits = (Splits(co, cut.channels, 1, 1, passes) for co in (cut.layer.grain, cut.row_channels))
    return int(min(*(float(pass_bytes(cut, one)) for one in splits), cut.machine.memtile + 1))


def pass_bytes(cut: Cut, splits: Splits) -> Any:
    """(B,) bytes of weights per memory tile of the largest pass; infinity for fewer chunks than passes."""
    passes = np.broadcast_to(splits.passes, np.shape(splits.co))
    found = np.full(passes.shape, math.inf)
    for count in np.unique(passes).tolist():

        def largest(co: int, ci: int, count: int = count) -> float:
            profile = cut.profile(co, ci)
            return math.inf if count > len(profile.co) else cut.machine.share * float(profile.pass_bytes(count).max())

        found = np.where(passes == count, by_pair(splits, largest), found)
    return found


def signature(cut: Cut, placement: Placement) -> Any:
    """Equal for layers with the same sub-volumes and times; room beyond twice the weights does not count."""
    room = placement.room.size
    if cut.convolves:
        room = min(room, 2 * least_weights(cut, 1))
    mask = None if cut.layer.mask is None else cut.layer.mask.tobytes()
    shape = attrs.astuple(attrs.evolve(cut.layer, name="", inputs=(), mask=None))
    return shape, mask, placement.tiles, placement.passes, placement.load, placement.write, room


def best_splits(cut: Cut, placement: Placement, known: dict[Any, Splits], part: int = 0) -> Splits:
    """The fastest sub-volume, or the rule's in the paper's estimator.

    `part`: the input channels of a chunk, if fixed."""
    tiles, passes = placement.tiles, placement.passes
    if cut.machine.listed:
        return attrs.evolve(cut.rule(), tiles=tiles, passes=passes)
    key = signature(cut, placement), part
    if key not in known:
        every = attrs.evolve(cut.candidates(-(-cut.layer.out_height // tiles)), tiles=tiles, passes=passes)
        if cut.convolves:
            fits = pass_bytes(cut, every) <= placement.room.size
            fits &= (every.ci == part) | (part == 0)
            every = Splits(every.co[fits], every.ci[fits], every.rows[fits], tiles, passes)
        if not len(every.co):
            raise SpecError.at("", f"layer {cut.layer.name}", "no sub-volume fits in the buffers of a core")
        best = int(np.argmin(steps_of(cut, every, placement).total))
        known[key] = Splits(int(every.co[best]), int(every.ci[best]), int(every.rows[best]), tiles, passes)
    return known[key]


# -------------------------------------------------------------------------------------------------- depth-wise tiling


def chains(schedule: Schedule, layers: Sequence[MeshLayer]) -> list[list[MeshLayer]]:
    """Runs of two layers or more from DDR to DDR, each read by the next layer only."""
    spilled = {one.cut.layer.name for one in schedule.layers if one.placement.spilled}
    readers: dict[str, list[str]] = {}
    for layer in layers:
        for name in layer.inputs:
            readers.setdefault(name, []).append(layer.name)
    found: list[list[MeshLayer]] = []
    for layer in layers:
        fits = layer.name in spilled and len(layer.inputs) == 1 and not layer.is_global
        last = found[-1][-1] if found and found[-1] else None
        alone = last is not None and not last.returned and readers.get(last.name) == [layer.name]
        if fits and last is not None and alone and layer.inputs == (last.name,):
            found[-1].append(layer)
        else:
            found.append([layer] if fits else [])
    return [chain for chain in found if len(chain) > 1]


def split(chain: Sequence[MeshLayer], count: int) -> tuple[list[MeshLayer], dict[str, TensorSlice]]:
    """The layers of all tiles of a chain, and the first and last slices.

    Rows of tiles differ by at most one, the longer tiles first, as the first and the last tile share rows with one
    neighbour only."""
    count = min(count, chain[-1].out_height)
    rows, longer = divmod(chain[-1].out_height, count)
    ends = list(accumulate(rows + (number < longer) for number in range(count)))
    layers: list[MeshLayer] = []
    slices: dict[str, TensorSlice] = {}
    for number, (first, last) in enumerate(zip([0, *ends], ends, strict=False), 1):
        windows = list(projection(chain, first, last))
        low, high = windows[0]
        source = f"{chain[0].inputs[0]}@{chain[0].name}.{number}"
        slices[source] = TensorSlice(chain[0].inputs[0], low, high - low)
        for layer, (begin, end), (start, stop) in zip(chain, windows, windows[1:], strict=False):
            above = max(0, layer.padding[0] - start * layer.stride)
            shape: Any = {"height": end - begin, "out_height": stop - start, "padding": (above, layer.padding[1])}
            layers.append(attrs.evolve(layer, name=f"{layer.name}@{number}", inputs=(source,), **shape))
            source = layers[-1].name
        slices[source] = TensorSlice(chain[-1].name, first, last - first)
    return layers, slices


def projection(chain: Sequence[MeshLayer], first: int, stop: int) -> Iterator[tuple[int, int]]:
    """The rows of every tensor of a chain, from its input on, for rows [first, stop) of its output."""
    found = [(first, stop)]
    for layer in reversed(chain):
        found.append(layer.input_rows(*found[-1]))
    return reversed(found)


def recomputed(chain: Sequence[MeshLayer], count: int) -> float:
    """Multiply-adds of all tiles over the whole chain's."""
    return sum(layer.macs for layer in split(chain, count)[0]) / sum(layer.macs for layer in chain)


def compile_tiled(
    layers: Sequence[MeshLayer], machine: CoreMesh, chosen: Sequence[tuple[Sequence[MeshLayer], int]]
) -> Schedule:
    """The schedule of layers with chains in tiles; a single tile is the chain itself."""
    replaced: dict[str, Sequence[MeshLayer]] = {}
    slices: dict[str, TensorSlice] = {}
    for chain, count in chosen:
        if count > 1:
            replaced |= dict.fromkeys((layer.name for layer in chain), ())
            replaced[chain[0].name], own = split(chain, count)
            slices |= own
    found = [one for layer in layers for one in replaced.get(layer.name, (layer,))]
    return compile_layers(found, machine, slices=slices)


def best_tiles(layers: Sequence[MeshLayer], machine: CoreMesh) -> tuple[Schedule, dict[str, int]]:
    """The schedule with the fastest number of tiles of every chain, and the numbers by first layer."""
    best = compile_layers(layers, machine)
    every = chains(best, layers)
    chosen: dict[str, int] = {}
    for chain in every:
        for count in range(2, min(MOST_CHAINED, chain[-1].out_height) + 1):
            others = [(one, chosen[one[0].name]) for one in every if one[0].name in chosen and one is not chain]
            trial = compile_tiled(layers, machine, [*others, (chain, count)])
            if trial.seconds < best.seconds:
                best, chosen[chain[0].name] = trial, count
    return best, chosen
