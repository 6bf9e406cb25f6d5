"""Which tensors memory tiles hold when, at which addresses, and what goes from and to DDR for it.

All memory tiles are alike: a tensor has one start and one end address, the same in all of them, and each holds its share
of the columns of the image. Places are found between what is live, so that a hole that is too small counts as
full: a layer that does not fit evicts all others and runs from DDR to DDR, in tiles of rows, and its weights in passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from .layers import Layer, round_up
from .machine import Machine
from .splits import MOST_TILES, PASSES


@attrs.frozen
class Place:
    """Addresses [start, end) in every memory tile."""

    tensor: str
    start: int
    end: int


@attrs.frozen
class Placement:
    """What memory tiles hold while a layer runs, and what its run moves from and to DDR."""

    tiles: int
    passes: int
    spilled: bool
    """Whether it runs from DDR to DDR."""
    inputs: tuple[Place, ...]
    """Of a tile, where there are several."""
    output: Place
    weights: Place
    """Of the largest pass."""
    room: tuple[int, int]
    """Addresses that weights may use."""
    live: tuple[Place, ...]
    """Other tensors that stay."""
    load: int
    """Bytes of activations per memory tile that come from DDR for this layer."""
    write: int
    loaded: tuple[str, ...]
    """Tensors that come from DDR."""
    evicted: tuple[Place, ...]
    """Tensors that go to DDR first."""
    stored: bool
    """Whether the output goes to DDR."""


def tensor_shapes(layers: Sequence[Layer]) -> dict[str, tuple[int, int, int]]:
    """Rows, columns and channels of every tensor that is not a concatenation of others."""
    shapes: dict[str, tuple[int, int, int]] = {}
    for layer in layers:
        for name in layer.inputs:
            shapes.setdefault(name, (layer.height, layer.width, layer.channels))
        shapes[layer.name] = (layer.out_height, layer.out_width, layer.out_channels)
    return shapes


def tile_windows(layer: Layer, rows: int) -> list[tuple[int, int]]:
    """The rows [low, high) of the input that are loaded for every tile of so many output rows: all of them are."""
    starts = range(0, layer.out_height, rows)
    lows = [layer.input_rows(first, first + 1)[0] for first in starts]
    highs = [layer.input_rows(first, min(first + rows, layer.out_height))[1] for first in starts]
    highs = [max(high, low) for high, low in zip(highs, [*lows[1:], layer.height], strict=True)]
    return list(zip([0, *lows[1:]], highs, strict=True))


def members(layers: Sequence[Layer]) -> Callable[[Iterable[str]], tuple[str, ...]]:
    """What names of tensors stand for: a concatenation is the tensors that it joins, which are written in place."""
    joined = {layer.name: layer.inputs for layer in layers if layer.op == "concat"}

    def expand(names: Iterable[str]) -> tuple[str, ...]:
        found: list[str] = []
        for name in names:
            found.extend(expand(joined[name]) if name in joined else [name])
        return tuple(found)

    return expand


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


def _room(held: Iterable[Place], at: int, capacity: int) -> tuple[int, int]:
    """The hole that an address lies in; (at, at) where there is none, as of weights of no bytes."""
    return next(((low, high) for low, high in holes(held, capacity) if low <= at < high), (at, at))


@attrs.define(slots=False)
class Allocator:
    """Memory tiles while a network runs, layer by layer."""

    layers: Sequence[Layer]
    machine: Machine
    quirks: frozenset[str]
    weights: Callable[[Layer, int], int]
    """Bytes per memory tile of the largest of so many passes of a layer's weights."""
    wanted: frozenset[str] = frozenset()
    """Outputs that have to be in DDR."""
    held: dict[str, Place] = attrs.field(factory=dict)
    stored: set[str] = attrs.field(factory=set)
    """Tensors that DDR has."""

    def __attrs_post_init__(self) -> None:
        self.shapes = tensor_shapes(self.layers)
        self.expand = members(self.layers)
        self.last: dict[str, int] = {}
        for index, layer in enumerate(self.layers):
            if layer.op != "concat":
                for name in self.expand(layer.inputs):
                    self.last[name] = index
        produced = {layer.name for layer in self.layers}
        self.stored |= {name for name in self.shapes if name not in produced}

    def size(self, tensor: str, rows: int | None = None) -> int:
        height, width, channels = self.shapes[tensor]
        return (height if rows is None else rows) * -(-width // self.machine.columns) * round_up(channels)

    def place(self, index: int) -> Placement:
        """Makes room for a layer and says how; to be called once per layer, in order."""
        layer = self.layers[index]
        inputs = self.expand(layer.inputs)
        if layer.op == "concat":
            return self._joined(layer, inputs)
        for name in [name for name in self.held if self.last.get(name, -1) < index]:
            del self.held[name]
        is_last = all(self.last.get(name, -1) <= index for name in self.shapes) and index == self._final()
        first = index == self._first_convolution() and "first-spills" in self.quirks
        found = None if first else self._beside_others(layer, index, inputs)
        if found is None:
            found = self._spilled(layer, inputs)
            self.stored |= {*(place.tensor for place in found.evicted), layer.name}
            self.held = {}
            return found
        self.held |= {place.tensor: place for place in (*found.inputs, found.output)}
        for name in [name for name in self.held if self.last.get(name, -1) <= index and name != layer.name]:
            del self.held[name]
        if is_last or layer.name in self.wanted:
            self.stored.add(layer.name)
            found = attrs.evolve(found, write=found.write + self.size(layer.name), stored=True)
        return found

    def _final(self) -> int:
        return max(i for i, layer in enumerate(self.layers) if layer.op != "concat")

    def _first_convolution(self) -> int:
        return next((i for i, layer in enumerate(self.layers) if layer.op == "conv"), -1)

    def _joined(self, layer: Layer, inputs: tuple[str, ...]) -> Placement:
        nothing = Place(layer.name, 0, 0)
        return Placement(1, 1, False, (), nothing, nothing, (0, 0), tuple(self.held.values()), 0, 0, (), (), False)

    def _beside_others(self, layer: Layer, index: int, inputs: tuple[str, ...]) -> Placement | None:
        """Everything at once, beside what is live; in passes if the weights do not fit otherwise."""
        missing = tuple(dict.fromkeys(name for name in inputs if name not in self.held))
        reused = self._reused(layer, index, inputs)
        sizes = [self.size(name) for name in missing]
        if reused is None:
            sizes.append(self.size(layer.name))
        leaving = {name for name in (*inputs, *self.held) if self.last[name] <= index}
        whole = self.weights(layer, 1)
        in_passes = whole > self.machine.memtile or "power-of-two-tiles" not in self.quirks
        for passes in PASSES if in_passes else (1,):
            starts = self._fit([*sizes, self.weights(layer, passes)], leaving)
            if starts is None:
                continue
            new = {name: Place(name, at, at + size) for name, at, size in zip(missing, starts, sizes, strict=False)}
            if reused is None:
                output = Place(layer.name, starts[-2], starts[-2] + sizes[-1])
            else:
                output = attrs.evolve(self.held.get(reused) or new[reused], tensor=layer.name)
            at = {**self.held, **new}
            room = _room([*at.values(), output], starts[-1], self.machine.memtile)
            return Placement(
                tiles=1,
                passes=passes,
                spilled=False,
                inputs=tuple(at[name] for name in inputs),
                output=output,
                weights=Place("weights", starts[-1], starts[-1] + self.weights(layer, passes)),
                room=room,
                live=tuple(place for name, place in self.held.items() if name not in inputs),
                load=sum(self.size(name) for name in missing),
                write=0,
                loaded=missing,
                evicted=(),
                stored=False,
            )
        return None

    def _reused(self, layer: Layer, index: int, inputs: tuple[str, ...]) -> str | None:
        """The operand that a sum overwrites: one that nobody reads later, at the lowest address for fewer holes."""
        if layer.op != "add":
            return None
        free = [name for name in inputs if self.last[name] <= index]
        return min(free, key=lambda name: self.held[name].start if name in self.held else 0, default=None)

    def _fit(self, sizes: Sequence[int], leaving: Iterable[str] = ()) -> list[int] | None:
        return fit(sizes, list(self.held.values()), leaving, self.machine.memtile, self.machine.alignment)

    def _spilled(self, layer: Layer, inputs: tuple[str, ...]) -> Placement:
        """From DDR to DDR, with the tiles and passes that move the least."""
        evicted = tuple(place for name, place in self.held.items() if name not in self.stored)
        best: tuple[tuple[float, int, int], int, int] | None = None
        for tiles, passes in self._tilings(layer):
            rows = -(-layer.out_height // tiles)
            sizes = self._tile_sizes(layer, inputs, rows)
            total = [*sizes, self.weights(layer, passes)]
            if fit(total, (), (), self.machine.memtile, self.machine.alignment) is None:
                continue
            count = -(-layer.out_height // rows)
            loads = self.weights(layer, 1) * (count if passes > 1 else 1) / self.machine.load_weights
            moved = max(self._loaded(layer, inputs, rows) / self.machine.load, loads)
            cost = (0.0 if "power-of-two-tiles" in self.quirks else moved, tiles * passes, tiles)
            if best is None or cost < best[0]:
                best = cost, tiles, passes
        if best is None:
            raise ValueError(f"layer {layer.name} does not fit in the memory tiles with {MOST_TILES} tiles")
        _, tiles, passes = best
        rows = -(-layer.out_height // tiles)
        sizes = self._tile_sizes(layer, inputs, rows)
        starts = fit([*sizes, self.weights(layer, passes)], (), (), self.machine.memtile, self.machine.alignment)
        assert starts is not None
        places = [Place(n, at, at + size) for n, at, size in zip((*inputs, layer.name), starts, sizes, strict=False)]
        return Placement(
            tiles=-(-layer.out_height // rows),
            passes=passes,
            spilled=True,
            inputs=tuple(places[:-1]),
            output=places[-1],
            weights=Place("weights", starts[-1], starts[-1] + self.weights(layer, passes)),
            room=_room(places, starts[-1], self.machine.memtile),
            live=(),
            load=self._loaded(layer, inputs, rows),
            write=self.size(layer.name) + sum(place.end - place.start for place in evicted),
            loaded=tuple(dict.fromkeys(inputs)),
            evicted=evicted,
            stored=True,
        )

    def _tilings(self, layer: Layer) -> list[tuple[int, int]]:
        if "power-of-two-tiles" not in self.quirks:
            return [(t, p) for t in range(1, min(MOST_TILES, layer.out_height) + 1) for p in PASSES]
        powers = [2**k for k in range(7) if 2**k <= max(1, layer.out_height)]
        half = self.machine.memtile // 2
        passes = next((p for p in PASSES if self.weights(layer, p) <= half), PASSES[-1])
        return [(t, passes) for t in powers]

    def _tile_sizes(self, layer: Layer, inputs: tuple[str, ...], rows: int) -> list[int]:
        needed = max(high - low for low, high in tile_windows(layer, rows))
        return [*(self.size(name, needed) for name in inputs), self.size(layer.name, rows)]

    def _loaded(self, layer: Layer, inputs: tuple[str, ...], rows: int) -> int:
        """Bytes of the inputs of all tiles; rows that two tiles share count twice."""
        count = sum(high - low for low, high in tile_windows(layer, rows))
        return sum(self.size(name, count) for name in dict.fromkeys(inputs))
