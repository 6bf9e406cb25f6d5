"""Which tensors memory tiles hold when, at which addresses, and what goes from and to DDR for it.

All memory tiles are alike: a tensor has one start and one end address, the same in all of them, and each holds its share
of the columns of the image. Places are found between what is live, so that a hole that is too small counts as
full: a layer that does not fit evicts all others and runs from DDR to DDR, in tiles of rows, and its weights in passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import attrs

from sparsemap.errors import SpecError

from .layers import Layer
from .machine import Machine
from .splits import MOST_TILES, PASSES


@attrs.frozen
class Place:
    """Addresses [start, end) in every memory tile."""

    tensor: str
    start: int
    end: int


@attrs.frozen(kw_only=True)
class Placement:
    """What memory tiles hold while a layer runs, and what its run moves from and to DDR."""

    tiles: int = 1
    passes: int
    spilled: bool = False
    """Whether it runs from DDR to DDR."""
    inputs: tuple[Place, ...]
    """Of a tile, where there are several."""
    output: Place
    weights: Place
    """Of the largest pass."""
    room: tuple[int, int]
    """Addresses that weights may use."""
    live: tuple[Place, ...] = ()
    """Other tensors that stay."""
    load: int
    """Bytes of activations per memory tile that come from DDR for this layer."""
    write: int = 0
    loaded: tuple[str, ...]
    """Tensors that come from DDR."""
    evicted: tuple[Place, ...] = ()
    """Tensors that go to DDR first."""
    stored: bool = False
    """Whether the output goes to DDR."""


def tile_windows(layer: Layer, rows: int) -> list[tuple[int, int]]:
    """The rows [low, high) of the input that are loaded for every tile of so many output rows: all of them are."""
    starts = range(0, layer.out_height, rows)
    lows = [layer.input_rows(first, first + 1)[0] for first in starts]
    highs = [layer.input_rows(first, min(first + rows, layer.out_height))[1] for first in starts]
    highs = [max(high, low) for high, low in zip(highs, [*lows[1:], layer.height], strict=True)]
    return list(zip([0, *lows[1:]], highs, strict=True))


def holes(held: Iterable[Place], capacity: int) -> list[tuple[int, int]]:
    """The free address ranges [start, end), ascending."""
    found, at = [], 0
    for place in sorted(held, key=lambda place: place.start):
        if place.start > at:
            found.append((at, place.start))
        at = max(at, place.end)
    return [*found, (at, capacity)] if at < capacity else found


def fit(
    sizes: Sequence[int], held: Sequence[Place], leaving: Iterable[str], capacity: int, alignment: int
) -> list[int] | None:
    """A start address for each size beside what is held, or None if they do not fit one by one.

    Each goes to the end of a hole where it leaves the largest hole once the tensors that are `leaving` are gone.
    """
    if not sizes:
        return []
    size, places = sizes[0], []
    staying = [place for place in held if place.tensor not in leaving]
    for low, high in holes(held, capacity):
        for start in {-(-low // alignment) * alignment, (high - size) // alignment * alignment}:
            if low <= start and start + size <= high:
                place = Place("", start, start + size)
                left = max((end - begin for begin, end in holes([*staying, place], capacity)), default=0)
                places.append((-left, start, place))
    for _, start, place in sorted(places, key=lambda found: found[:2]):
        rest = fit(sizes[1:], [*held, place], leaving, capacity, alignment)
        if rest is not None:
            return [start, *rest]
    return None


@attrs.define(slots=False)
class Allocator:
    """Memory tiles while a network runs, layer by layer."""

    layers: Sequence[Layer]
    machine: Machine
    quirks: frozenset[str]
    weights: Callable[[str, int], int]
    """Bytes per memory tile of the largest of so many passes of the weights of a layer, by its name."""
    wanted: frozenset[str] = frozenset()
    """Outputs that have to be in DDR."""
    held: dict[str, Place] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.weights = cache(self.weights)
        self.joined = {layer.name: layer.inputs for layer in self.layers if layer.op == "concat"}
        self.shapes: dict[str, tuple[int, int, int]] = {}
        """Rows, columns and channels of every tensor that is not a concatenation of others."""
        self.last: dict[str, int] = {}
        """The last layer that reads a tensor."""
        for index, layer in enumerate(self.layers):
            for name in layer.inputs:
                self.shapes.setdefault(name, (layer.height, layer.width, layer.channels))
            self.shapes[layer.name] = (layer.out_height, layer.out_width, layer.out_channels)
            if layer.op != "concat":
                self.last |= dict.fromkeys(self.expand(layer.inputs), index)
        running = [index for index, layer in enumerate(self.layers) if layer.op != "concat"]
        self.final = running[-1]
        self.first = next((index for index in running if self.layers[index].op == "conv"), -1)
        self.stored = set(self.shapes) - {layer.name for layer in self.layers}
        """Tensors that DDR has."""

    def expand(self, names: Iterable[str]) -> tuple[str, ...]:
        """What names stand for: a concatenation is the tensors that it joins, which are written in place."""
        return tuple(
            one for name in names for one in (self.expand(self.joined[name]) if name in self.joined else (name,))
        )

    def size(self, tensor: str, rows: int | None = None) -> int:
        height, width, channels = self.shapes[tensor]
        return (height if rows is None else rows) * self.machine.row_bytes(width, channels)

    def place(self, index: int) -> Placement:
        """Makes room for a layer and says how; to be called once per layer that is no concatenation, in order."""
        layer = self.layers[index]
        inputs = self.expand(layer.inputs)
        self.held = {name: place for name, place in self.held.items() if self.last.get(name, -1) >= index}
        first = index == self.first and "first-spills" in self.quirks
        found = None if first else self._beside_others(layer, index, inputs)
        if found is None:
            found = self._spilled(layer, inputs)
            self.stored |= {*(place.tensor for place in found.evicted), layer.name}
            self.held = {}
            return found
        self.held |= {place.tensor: place for place in (*found.inputs, found.output)}
        self.held = {n: place for n, place in self.held.items() if self.last.get(n, -1) > index or n == layer.name}
        if index == self.final or layer.name in self.wanted:
            self.stored.add(layer.name)
            found = attrs.evolve(found, write=found.write + self.size(layer.name), stored=True)
        return found

    def _fit(self, sizes: Sequence[int], held: Iterable[Place] = (), leaving: Iterable[str] = ()) -> list[int] | None:
        return fit(sizes, list(held), leaving, self.machine.memtile, self.machine.alignment)

    def _placement(self, layer: Layer, passes: int, at: int, held: Sequence[Place], **more: Any) -> Placement:
        """With weights at an address, and the hole in which they lie; none where they have no bytes."""
        weights = Place("weights", at, at + self.weights(layer.name, passes))
        every = holes(held, self.machine.memtile)
        room = next(((low, high) for low, high in every if low <= at < high), (at, at))
        return Placement(passes=passes, weights=weights, room=room, **more)

    def _beside_others(self, layer: Layer, index: int, inputs: tuple[str, ...]) -> Placement | None:
        """Everything at once, beside what is live; in passes if the weights do not fit otherwise."""
        missing = tuple(dict.fromkeys(name for name in inputs if name not in self.held))
        free = [name for name in inputs if layer.op == "add" and self.last[name] <= index]
        # the operand that a sum overwrites: one that nobody reads later, at the lowest address for fewer holes
        reused = min(free, key=lambda name: self.held[name].start if name in self.held else 0, default=None)
        sizes = [self.size(name) for name in (missing if reused else (*missing, layer.name))]
        leaving = {name for name in (*inputs, *self.held) if self.last[name] <= index}
        in_passes = self.weights(layer.name, 1) > self.machine.memtile or "power-of-two-tiles" not in self.quirks
        for passes in PASSES if in_passes else (1,):
            starts = self._fit([*sizes, self.weights(layer.name, passes)], self.held.values(), leaving)
            if starts is None:
                continue
            new = {name: Place(name, at, at + size) for name, at, size in zip(missing, starts, sizes, strict=False)}
            if reused:
                output = attrs.evolve(self.held.get(reused) or new[reused], tensor=layer.name)
            else:
                output = Place(layer.name, starts[-2], starts[-2] + sizes[-1])
            at = {**self.held, **new}
            live = tuple(place for name, place in self.held.items() if name not in inputs)
            own = {"inputs": tuple(at[name] for name in inputs), "output": output, "live": live, "loaded": missing}
            load = sum(self.size(name) for name in missing)
            return self._placement(layer, passes, starts[-1], [*at.values(), output], load=load, **own)
        return None

    def _spilled(self, layer: Layer, inputs: tuple[str, ...]) -> Placement:
        """From DDR to DDR, with the tiles and passes that move the least."""
        listed = "power-of-two-tiles" in self.quirks
        sources = tuple(dict.fromkeys(inputs))
        most, every = min(MOST_TILES, layer.out_height), PASSES
        if listed:
            half = self.machine.memtile // 2
            every = (next((p for p in PASSES if self.weights(layer.name, p) <= half), PASSES[-1]),)
        best: tuple[tuple[float, int, int], int, Any] | None = None
        for tiles in (2**k for k in range(7) if 2**k <= most) if listed else range(1, most + 1):
            rows = -(-layer.out_height // tiles)
            windows = [high - low for low, high in tile_windows(layer, rows)]
            sizes = [*(self.size(name, max(windows)) for name in inputs), self.size(layer.name, rows)]
            load = sum(self.size(name, sum(windows)) for name in sources)
            for passes in every:
                weights = self.weights(layer.name, 1) * (len(windows) if passes > 1 else 1)
                moved = max(load / self.machine.load, weights / self.machine.load_weights)
                cost = (0.0 if listed else moved, tiles * passes, tiles)
                if best is None or cost < best[0]:
                    starts = self._fit([*sizes, self.weights(layer.name, passes)])
                    best = best if starts is None else (cost, passes, (len(windows), sizes, load, starts))
        if best is None:
            raise SpecError.at("", f"layer {layer.name}", f"does not fit in the memory tiles with {MOST_TILES} tiles")
        _, passes, (count, sizes, load, starts) = best
        places = [Place(n, at, at + size) for n, at, size in zip((*inputs, layer.name), starts, sizes, strict=False)]
        evicted = tuple(place for name, place in self.held.items() if name not in self.stored)
        write = self.size(layer.name) + sum(place.end - place.start for place in evicted)
        held = {"inputs": tuple(places[:-1]), "output": places[-1], "loaded": sources, "evicted": evicted}
        moved = {"load": load, "write": write, "spilled": True, "stored": True}
        return self._placement(layer, passes, starts[-1], places, tiles=count, **held, **moved)
