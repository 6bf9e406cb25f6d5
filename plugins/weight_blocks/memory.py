"""Tensors in the memory tiles over time, their addresses, and the transfers from and to DDR.

All memory tiles are alike: a tensor has the same start and end address in all tiles, and each tile has a share of the
columns of the image. Free places lie between live tensors; without a large enough hole, a layer evicts all others and
runs from DDR to DDR, in tiles of rows, and its weights in passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

import attrs

from sparsemap.errors import SpecError

from .layers import MeshLayer, round_up
from .machine import CoreMesh
from .splits import MOST_TILES, PASSES


@attrs.frozen
class TilePlace:
    """Addresses [start, end) in every memory tile."""

    tensor: str
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


@attrs.frozen(kw_only=True)
class Placement:
    """Contents of memory tiles during a layer, and its transfers from and to DDR."""

    tiles: int = 1
    passes: int
    spilled: bool = False
    """Whether the layer runs from DDR to DDR."""
    inputs: tuple[TilePlace, ...]
    """Inputs; with several tiles, the inputs of a tile."""
    output: TilePlace
    weights: TilePlace
    """Weights of the largest pass."""
    room: TilePlace
    """The hole for weights."""
    live: tuple[TilePlace, ...] = ()
    """Other resident tensors."""
    load: int
    """Bytes of activations from DDR per memory tile."""
    write: int = 0
    loaded: tuple[str, ...]
    """Tensors from DDR."""
    evicted: tuple[TilePlace, ...] = ()
    """Tensors to DDR before the layer."""
    stored: bool = False
    """Whether the output goes to DDR."""


def tile_windows(layer: MeshLayer, rows: int) -> list[tuple[int, int]]:
    """The rows [low, high) of the input of every tile of so many output rows; together all rows."""
    starts = range(0, layer.out_height, rows)
    lows = [layer.input_rows(first, first + 1)[0] for first in starts]
    highs = [layer.input_rows(first, min(first + rows, layer.out_height))[1] for first in starts]
    highs = [max(high, low) for high, low in zip(highs, [*lows[1:], layer.height], strict=True)]
    return list(zip([0, *lows[1:]], highs, strict=True))


def expanded(names: Iterable[str], concats: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Names with every concatenation replaced by its parts, which have places of their own."""
    parts = (expanded(concats[name], concats) if name in concats else (name,) for name in names)
    return tuple(chain.from_iterable(parts))


def holes(held: Iterable[TilePlace], capacity: int) -> list[TilePlace]:
    """The free addresses, ascending."""
    found, at = [], 0
    for place in sorted(held, key=lambda place: place.start):
        if place.start > at:
            found.append(TilePlace("", at, place.start))
        at = max(at, place.end)
    return [*found, TilePlace("", at, capacity)] if at < capacity else found


def fit(
    sizes: Sequence[tuple[str, int]], held: Sequence[TilePlace], staying: Sequence[TilePlace], capacity: int, alignment: int
) -> list[TilePlace] | None:  # fmt: skip
    """A place for each tensor and size beside the `held` ones, or None.

    Each goes to the end of a hole, for the largest remaining hole beside the `staying` tensors."""
    if not sizes:
        return []
    (name, size), *others = sizes
    choices = []
    for hole in holes(held, capacity):
        for start in {round_up(hole.start, alignment), (hole.end - size) // alignment * alignment}:
            place = TilePlace(name, start, start + size)
            if hole.start <= place.start and place.end <= hole.end:
                left = max((rest.size for rest in holes([*staying, place], capacity)), default=0)
                choices.append((-left, start, place))
    for _, _, place in sorted(choices, key=lambda choice: choice[:2]):
        rest = fit(others, [*held, place], [*staying, place], capacity, alignment)
        if rest is not None:
            return [place, *rest]
    return None


@attrs.define(slots=False)
class Allocator:
    """State of memory tiles during a network, layer by layer."""

    layers: Sequence[MeshLayer]
    machine: CoreMesh
    weights: Callable[[str, int], int]
    """Bytes per memory tile of the largest of so many passes of a layer's weights, by name."""
    wanted: frozenset[str] = frozenset()
    """Outputs for DDR."""
    held: dict[str, TilePlace] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.weights = cache(self.weights)
        self.concats = {layer.name: layer.inputs for layer in self.layers if layer.op == "concat"}
        self.shapes: dict[str, tuple[int, int, int]] = {}
        """Rows, columns and channels of every tensor but concatenations."""
        self.last: dict[str, int] = {}
        """The last reader of a tensor."""
        for index, layer in enumerate(self.layers):
            for name in layer.inputs:
                self.shapes.setdefault(name, (layer.height, layer.width, layer.channels))
            self.shapes[layer.name] = (layer.out_height, layer.out_width, layer.out_channels)
            if layer.op != "concat":
                self.last |= dict.fromkeys(expanded(layer.inputs, self.concats), index)
        self.first = next((index for index, layer in enumerate(self.layers) if layer.op == "conv"), -1)
        self.stored = set(self.shapes) - {layer.name for layer in self.layers}
        """Tensors in DDR."""

    def size(self, tensor: str, rows: int | None = None) -> int:
        height, width, channels = self.shapes[tensor]
        return (height if rows is None else rows) * self.machine.row_bytes(width, channels)

    def place(self, index: int) -> Placement:
        """Makes room for a layer, and returns its placement; for every layer but concatenations, in order."""
        layer = self.layers[index]
        inputs = expanded(layer.inputs, self.concats)
        self.held = {name: place for name, place in self.held.items() if self.last.get(name, -1) >= index}
        first = index == self.first and self.machine.listed
        found = None if first else self._beside_others(layer, index, inputs)
        if found is None:
            return self._spilled(layer, inputs)
        self.held |= {place.tensor: place for place in (*found.inputs, found.output)}
        self.held = {n: place for n, place in self.held.items() if self.last.get(n, -1) > index or n == layer.name}
        if layer.name in self.wanted:
            self.stored.add(layer.name)
            found = attrs.evolve(found, write=found.write + self.size(layer.name), stored=True)
        return found

    def _fit(
        self, sizes: Sequence[tuple[str, int]], layer: MeshLayer, passes: int, staying: Sequence[TilePlace] = ()
    ) -> tuple[list[TilePlace], TilePlace, TilePlace] | None:
        """Places beside the held tensors, the place of a pass of weights, and the hole around it."""
        sizes = [*sizes, ("weights", self.weights(layer.name, passes))]
        held, memtile = list(self.held.values()), self.machine.memtile
        places = fit(sizes, held, staying, memtile, self.machine.alignment)
        if places is None:
            return None
        *new, weights = places
        around = (hole for hole in holes([*held, *new], memtile) if hole.start <= weights.start < hole.end)
        return new, weights, next(around, TilePlace("", weights.start, weights.start))

    def _beside_others(self, layer: MeshLayer, index: int, inputs: tuple[str, ...]) -> Placement | None:
        """Everything at once, beside live tensors; in passes if the weights do not fit otherwise."""
        missing = tuple(dict.fromkeys(name for name in inputs if name not in self.held))
        free = [name for name in inputs if layer.op == "add" and self.last[name] <= index]
        # the operand that a sum overwrites: one that nobody reads later, at the lowest address for fewer holes
        reused = min(free, key=lambda name: self.held[name].start if name in self.held else 0, default=None)
        sizes = [(name, self.size(name)) for name in (missing if reused else (*missing, layer.name))]
        staying = [place for name, place in self.held.items() if self.last[name] > index]
        in_passes = self.weights(layer.name, 1) > self.machine.memtile or not self.machine.listed
        for passes in PASSES if in_passes else (1,):
            if found := self._fit(sizes, layer, passes, staying):
                break
        else:
            return None
        new, weights, room = found
        at = self.held | {place.tensor: place for place in new}
        sources = tuple(at[name] for name in inputs)
        output = attrs.evolve(at[reused], tensor=layer.name) if reused else at[layer.name]
        live = tuple(place for name, place in self.held.items() if name not in inputs)
        load = sum(self.size(name) for name in missing)
        where: dict[str, Any] = {"inputs": sources, "output": output, "weights": weights, "room": room, "live": live}
        return Placement(passes=passes, load=load, loaded=missing, **where)

    def _spilled(self, layer: MeshLayer, inputs: tuple[str, ...]) -> Placement:
        """From DDR to DDR, with the tiles and passes of least transfers, after all others have left."""
        evicted = tuple(place for name, place in self.held.items() if name not in self.stored)
        self.held = {}
        self.stored |= {*(place.tensor for place in evicted), layer.name}
        listed = self.machine.listed
        sources = tuple(dict.fromkeys(inputs))
        most, every = min(MOST_TILES, layer.out_height), tuple[int, ...](PASSES)
        if listed:
            half = self.machine.memtile // 2
            every = (next((p for p in PASSES if self.weights(layer.name, p) <= half), PASSES[-1]),)
        options = []
        for tiles in (2**k for k in range(7) if 2**k <= most) if listed else range(1, most + 1):
            rows = -(-layer.out_height // tiles)
            windows = [high - low for low, high in tile_windows(layer, rows)]
            sizes = [(name, self.size(name, max(windows))) for name in inputs]
            sizes.append((layer.name, self.size(layer.name, rows)))
            load = sum(self.size(name, sum(windows)) for name in sources)
            for passes in every:
                again = len(windows) if passes > 1 else 1
                seconds = max(load / self.machine.load, again * self.weights(layer.name, 1) / self.machine.load_weights)
                cost = (0.0 if listed else seconds, tiles * passes, tiles)
                options.append((cost, passes, len(windows), load, sizes))
        for option in sorted(options):
            _, passes, count, load, sizes = option
            if found := self._fit(sizes, layer, passes):
                break
        else:
            raise SpecError.at("", f"layer {layer.name}", f"does not fit in the memory tiles with {MOST_TILES} tiles")
        (*places, output), weights, room = found
        write = self.size(layer.name) + sum(place.size for place in evicted)
        where: Any = {"inputs": tuple(places), "output": output, "weights": weights, "room": room, "evicted": evicted}
        moved: Any = {"load": load, "loaded": sources, "write": write, "stored": True}
        return Placement(tiles=count, passes=passes, spilled=True, **where, **moved)
