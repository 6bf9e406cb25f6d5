"""The instructions of a schedule: what moves where and when, addresses and locks included.

Per layer: WRITE of what has to leave the memory tiles; for every tile of rows and pass of weights LOAD and LOADW (DDR to
memory tiles, in parallel); per chunk of weights LOADWM, which blocks, and groups of LOADFM, COMP, WRITEFM (memory tile
to core, in the core, back); then WRITE. An instruction drives all memory tiles or cores. A group moves equal volumes in
every iteration: iteration k starts at `row + k * step`, but no later than `last_row`, so that left-over rows are done
together with some that were. Iterations alternate between two buffers, at `core` and one buffer further; lock `lock`
guards the first of them, `lock + 1` the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from .durations import PARAMETERS, Iteration, iteration, listed_blocks, row_groups, tile_rows, weight_bytes
from .memory import Place, tile_windows
from .schedule import Planned, Schedule
from .splits import Cut

INPUT, OUTPUT, WEIGHTS = 0x0000, 0x4000, 0x8000
"""Addresses in a core, for two buffers of 8 KiB, two of 8 KiB and one of 16 KiB; parameters at 0xC000, temporaries above."""
INPUT_LOCK, OUTPUT_LOCK = 0, 2
"""The first lock of the two input buffers, and of the two output buffers."""
GROUP = ("LOADFM", "COMP", "WRITEFM")


@attrs.frozen(kw_only=True)
class Instruction:
    """One movement or computation, `iterations` times."""

    type: str
    layer: str
    seconds: float
    """Of one iteration (of one part of it)."""
    iterations: int = 1
    parts: int = 1
    """Parts of the input channels that follow each other in every iteration, with their weights."""
    tensor: str = ""
    address: tuple[int, ...] = ()
    """In every memory tile, per tensor that is read: where the row `origin` lies. Of LOADWM, per part."""
    origin: int = 0
    core: int = -1
    """In a core, of the first of two buffers."""
    row: int = 0
    """First row of the first iteration; of inputs it may lie in the padding."""
    rows: int = 0
    """Per iteration."""
    step: int = 0
    last_row: int = 0
    channel: int = 0
    """Of outputs, the first of a row of cores, counted from the first of that row."""
    channels: int = 0
    """Output channels of a core."""
    chunk: int = 0
    steps: int = 1
    """Steps through the channels that the iterations of a group are divided into, where there are no weights."""
    tile: int = 0
    bytes: tuple[int, ...] = ()
    """Of an iteration, per memory tile, column of cores or row of cores; of LOADWM, per part."""
    lock: int = -1
    group: int = 0
    """Instructions with the same number run together."""
    start: float = 0.0
    """Seconds since the start of the network."""
    end: float = 0.0


def instructions_of(schedule: Schedule) -> list[Instruction]:
    """All instructions in order, with the times at which they start and end in a pipeline with two buffers."""
    found: list[Instruction] = []
    now = 0.0
    groups = (group for planned in schedule.layers for group in Emitter(planned, schedule.shapes).layer())
    for number, together in enumerate(groups):
        end = now + span(together)
        for one, ahead, after in _times(together):
            found.append(attrs.evolve(one, group=number, start=now + ahead, end=end - after))
        now = end
    return found


def constant(load: float, compute: float, write: float, count: int) -> float:
    """The end of a pipeline of so many iterations with two buffers each for inputs and outputs."""
    longest = max(load, compute, write)
    return count * longest + (load + compute + write - longest)


def span(together: Sequence[Instruction], end: Callable[[float, float, float, int], float] = constant) -> float:
    """Seconds that instructions take which run together: in parallel, part by part, or as a pipeline that has an `end`."""
    by_type = {one.type: one for one in together}
    if "COMP" not in by_type:
        return max(sum(one.seconds for one in together if one.type == channel) for channel in by_type)
    load, compute, write = (by_type[name] for name in GROUP)
    if load.parts > 1:
        each = by_type["LOADWM"].seconds + load.seconds + compute.seconds
        return load.iterations * (load.parts * each + write.seconds)
    return end(load.seconds, compute.seconds, write.seconds, load.iterations)


def _times(together: Sequence[Instruction]) -> Iterator[tuple[Instruction, float, float]]:
    """Instructions with when they start after the first, and end before the last."""
    whole, ahead = span(together), dict.fromkeys([one.type for one in together], 0.0)
    chained = "COMP" in ahead
    order = [name for name in ("LOADWM", *GROUP) if name in ahead]
    seconds = {one.type: one.seconds for one in together}
    for one in together:
        if chained:
            at = order.index(one.type)
            before, after = (sum(seconds[name] for name in part) for part in (order[:at], order[at + 1 :]))
            yield one, before, after
        else:
            yield one, ahead[one.type], whole - ahead[one.type] - one.seconds
            ahead[one.type] += one.seconds


@attrs.frozen
class Tile:
    """Output rows [first, first + rows) of a layer; `origin` is the row of its inputs that memory tiles hold first."""

    number: int
    first: int
    rows: int
    origin: int


def chunk_passes(cut: Cut, co: int, ci: int, passes: int) -> list[range]:
    """The chunks of every pass."""
    count = len(cut.profile(co, ci).co)
    each = -(-count // passes)
    return [range(first, min(first + each, count)) for first in range(0, count, each)]


@attrs.frozen(slots=False)
class Emitter:
    """Writes the instructions of a layer, as lists of those that run together."""

    planned: Planned
    shapes: Mapping[str, tuple[int, int, int]]
    """Of all tensors."""

    @cached_property
    def cut(self) -> Cut:
        return self.planned.cut

    def row_bytes(self, tensor: str) -> int:
        return self.cut.machine.row_bytes(*self.shapes[tensor][1:])

    def one(self, kind: str, amount: Any, **fields: Any) -> Instruction:
        """An instruction that moves so many bytes, or computes for so many cycles."""
        size = {} if kind == "COMP" else {"bytes": (round(float(amount)),)}
        seconds = float(amount) / self.cut.machine.rates[kind]
        return Instruction(type=kind, layer=self.cut.layer.name, seconds=seconds, **{**size, **fields})

    def layer(self) -> Iterator[list[Instruction]]:
        cut, splits, place = self.cut, self.planned.splits, self.planned.placement
        layer = cut.layer
        rows, count = (int(value) for value in tile_rows(cut, splits))
        windows = tile_windows(layer, rows) if place.spilled else [(0, layer.height)] * count
        sizes = self._pass_sizes()
        for gone in place.evicted:
            yield [self.rows("WRITE", gone, gone.end - gone.start, 0, 0)]
        for number, (low, high) in enumerate(windows):
            first = number * rows
            tile = Tile(number, first, min(rows, layer.out_height - first), low if place.spilled else 0)
            together = []
            for source in place.inputs:
                if source.tensor in place.loaded and (place.spilled or number == 0):
                    size = (high - low) * self.row_bytes(source.tensor)
                    together.append(self.rows("LOAD", source, size, low, high - low, tile=number))
            for part, size in enumerate(sizes):
                if size and (number == 0 or splits.passes > 1):
                    at = (place.weights.start,)
                    together.append(self.one("LOADW", size, tensor="weights", address=at, chunk=part, tile=number))
                if together:
                    yield together
                together = []
                yield from self._pass(tile, part)
            if place.stored:
                whole = place.output.end - place.output.start
                size = tile.rows * self.row_bytes(layer.name) if place.spilled else whole
                yield [self.rows("WRITE", place.output, size, first, tile.rows)]

    def rows(self, kind: str, of: Place, size: int, row: int, rows: int, tile: int = 0) -> Instruction:
        """LOAD or WRITE of rows of a tensor."""
        return self.one(kind, size, tensor=of.tensor, address=(of.start,), origin=row, row=row, rows=rows, tile=tile)

    def _pass_sizes(self) -> list[float]:
        """Bytes of weights that every pass brings to a memory tile."""
        cut, splits = self.cut, self.planned.splits
        whole = float(weight_bytes(cut, splits, 1))
        if not cut.convolves or "one-chunk" in cut.quirks:
            return [whole / splits.passes] * splits.passes
        share = -(-cut.machine.rows // cut.machine.columns)
        sizes = cut.profile(splits.co, splits.ci).bytes.sum(axis=1)
        passes = chunk_passes(cut, splits.co, splits.ci, splits.passes)
        return [share * float(sizes[part.start : part.stop].sum()) for part in passes]

    def _pass(self, tile: Tile, number: int) -> Iterator[list[Instruction]]:
        """What cores do with the weights of one pass."""
        cut, splits = self.cut, self.planned.splits
        start = self.planned.placement.weights.start
        if not cut.convolves:
            if number == 0:
                yield from self._pooled(tile)
        elif "one-chunk" in cut.quirks:
            size = cut.chunk_bytes(splits.co, splits.ci)
            moved = 16 * -(-size // 16) + (PARAMETERS if tile.number == number == 0 else 0)
            yield [self._weights(0, (start,), (round(moved),), moved)]
            one = iteration(cut, splits, self.step(tile), splits.co, listed_blocks(cut, splits))
            yield from self._groups(tile, 0, splits.co, one)
        else:
            for chunk in chunk_passes(cut, splits.co, splits.ci, splits.passes)[number]:
                sizes = cut.profile(splits.co, splits.ci).bytes[chunk].astype(int).tolist()
                yield from self._chunk(tile, chunk, tuple(start + sum(sizes[:part]) for part in range(len(sizes))))
                start += sum(sizes)

    def step(self, tile: Tile) -> int:
        return min(self.planned.splits.rows, tile.rows)

    def _weights(self, chunk: int, address: tuple[int, ...], sizes: tuple[int, ...], mean: float) -> Instruction:
        where = {"tensor": "weights", "address": address, "core": WEIGHTS}
        return self.one("LOADWM", mean, parts=len(sizes), chunk=chunk, bytes=sizes, **where)

    def _chunk(self, tile: Tile, chunk: int, address: tuple[int, ...]) -> Iterator[list[Instruction]]:
        """A chunk of weights and its iterations; with parts of the input channels, one part after the other in each."""
        cut, splits, step = self.cut, self.planned.splits, self.step(tile)
        profile, parts = cut.profile(splits.co, splits.ci), len(address)
        channels, sizes = int(profile.co[chunk]), tuple(profile.bytes[chunk].astype(int).tolist())
        weights = self._weights(chunk, address, sizes, sum(sizes) / parts)
        one = iteration(cut, splits, step, channels, profile.kept[chunk].sum() / parts)
        if parts == 1:
            yield [weights]
            yield from self._groups(tile, chunk, channels, one)
        else:
            count = -(-tile.rows // step)
            triple = self._triple(tile, channels, one, 0, count, chunk=chunk, parts=parts, channel=chunk * splits.co)
            yield [attrs.evolve(weights, iterations=count), *triple]

    def _groups(self, tile: Tile, chunk: int, channels: int, one: Iteration) -> Iterator[list[Instruction]]:
        """Iterations at the padding one by one, all others together."""
        for at, count, _ in self._bounds(tile):
            channel = chunk * self.planned.splits.co
            yield self._triple(tile, channels, one, at, count, chunk=chunk, channel=channel)

    def _bounds(self, tile: Tile) -> list[tuple[int, int, bool]]:
        """First iteration and iterations of every group, and whether it is that in the body."""
        groups = row_groups(self.cut, tile.first, tile.rows, self.step(tile))
        head, body, tail = (int(count) for count in groups)
        found = [(at, 1, False) for at in range(head)] + ([(head, body, True)] if body else [])
        return found + [(at, 1, False) for at in range(head + body, head + body + tail)]

    def _pooled(self, tile: Tile) -> Iterator[list[Instruction]]:
        """Steps through the channels of a core, which load no weights: iterations of several form one group."""
        cut, splits = self.cut, self.planned.splits
        whole, rest = divmod(cut.row_channels, splits.co)
        if "one-chunk" in cut.quirks:
            yield [self._weights(0, (0,), (PARAMETERS,), PARAMETERS)]
        for count, channels, channel in ((whole, splits.co, 0), (min(rest, 1), rest, whole * splits.co)):
            if not count:
                continue
            one = iteration(cut, splits, self.step(tile), channels, 0)
            for at, rows, body in sorted(self._bounds(tile), key=lambda group: group[2]):
                if body:
                    yield self._triple(tile, channels, one, at, rows * count, channel=channel, steps=count)
                else:
                    for start in range(channel, channel + count * channels, channels):
                        yield self._triple(tile, channels, one, at, 1, channel=start)

    def _triple(
        self, tile: Tile, channels: int, one: Iteration, at: int, count: int, parts: int = 1, **fields: Any
    ) -> list[Instruction]:
        """LOADFM, COMP and WRITEFM of `count` iterations from iteration `at` of a tile on."""
        cut, place, step = self.cut, self.planned.placement, self.step(tile)
        layer, last = cut.layer, tile.first + tile.rows - step
        row = min(tile.first + at * step, last)
        fields |= {"iterations": count, "channels": channels, "tile": tile.number}
        stride, above = layer.stride, layer.padding[0]
        read = {"row": row * stride - above, "rows": cut.in_rows(step), "step": step * stride}
        read |= {"last_row": last * stride - above, "core": INPUT, "lock": INPUT_LOCK, "parts": parts}
        made = {"row": row, "rows": step, "step": step, "last_row": last, "core": OUTPUT}
        sources = tuple(source.start for source in place.inputs)
        target = {"tensor": layer.name, "address": (place.output.start,), "lock": OUTPUT_LOCK}
        return [
            self.one("LOADFM", one.load, address=sources, origin=tile.origin, **read, **fields),
            self.one("COMP", one.compute, **made, parts=parts, lock=INPUT_LOCK, **fields),
            self.one("WRITEFM", one.write, origin=tile.first if place.spilled else 0, **target, **made, **fields),
        ]
