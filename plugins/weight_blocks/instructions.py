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
from itertools import accumulate
from typing import Any

import attrs

from .durations import PARAMETERS, iteration, listed_blocks, row_groups, tile_rows, weight_bytes
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
    groups = (group for planned in schedule.layers for group in layer_groups(planned, schedule.shapes))
    for number, together in enumerate(groups):
        whole = span(together)
        chained = any(one.type == "COMP" for one in together)
        for index, one in enumerate(together):
            ahead = sum(other.seconds for other in together[:index] if chained or other.type == one.type)
            behind = sum(other.seconds for other in together[index + 1 :])
            after = behind if chained else whole - ahead - one.seconds
            found.append(attrs.evolve(one, group=number, start=now + ahead, end=now + whole - after))
        now += whole
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


def layer_groups(planned: Planned, shapes: Mapping[str, tuple[int, int, int]]) -> Iterator[list[Instruction]]:
    """The instructions of a layer as lists of those that run together; `shapes` of all tensors."""
    cut, splits, place = planned.cut, planned.splits, planned.placement
    layer, machine = cut.layer, cut.machine

    def moved(kind: str, of: Place, size: int, row: int, rows: int, tile: int = 0) -> Instruction:
        """LOAD or WRITE of rows of a tensor."""
        where = {"tensor": of.tensor, "address": (of.start,)}
        return _instruction(cut, kind, size, **where, origin=row, row=row, rows=rows, tile=tile)

    rows, count = tile_rows(cut, splits)
    windows = tile_windows(layer, rows) if place.spilled else [(0, layer.height)] * count
    if cut.convolves and "one-chunk" not in cut.machine.quirks:
        sizes = (machine.share * planned.profile.pass_bytes(splits.passes)).tolist()
    else:
        sizes = [float(weight_bytes(cut, attrs.evolve(splits, passes=1))) / splits.passes] * splits.passes
    for gone in place.evicted:
        yield [moved("WRITE", gone, gone.size, 0, 0)]
    for number, (low, high) in enumerate(windows):
        first = number * rows
        tile = Tile(planned, number, first, min(rows, layer.out_height - first), low if place.spilled else 0)
        together = []
        for source in place.inputs:
            if source.tensor in place.loaded and (place.spilled or number == 0):
                size = (high - low) * machine.row_bytes(*shapes[source.tensor][1:])
                together.append(moved("LOAD", source, size, low, high - low, number))
        for part, weights in enumerate(sizes):
            if weights and (number == 0 or splits.passes > 1):
                where = {"tensor": "weights", "address": (place.weights.start,), "chunk": part, "tile": number}
                together.append(_instruction(cut, "LOADW", weights, **where))
            if together:
                yield together
            together = []
            yield from tile.computed(part)
        if place.stored:
            row_bytes = machine.row_bytes(layer.out_width, layer.out_channels)
            size = tile.rows * row_bytes if place.spilled else place.output.size
            yield [moved("WRITE", place.output, size, first, tile.rows)]


def _instruction(cut: Cut, kind: str, amount: Any, **fields: Any) -> Instruction:
    """An instruction that moves so many bytes, or computes for so many cycles."""
    size = {} if kind == "COMP" else {"bytes": (round(float(amount)),)}
    seconds = float(amount) / cut.machine.rates[kind]
    return Instruction(type=kind, layer=cut.layer.name, seconds=seconds, **{**size, **fields})


@attrs.frozen
class Tile:
    """Output rows [first, first + rows) of a layer; `origin` is the row of its inputs that memory tiles hold first."""

    planned: Planned
    number: int
    first: int
    rows: int
    origin: int

    @property
    def step(self) -> int:
        """Rows of an iteration."""
        return min(self.planned.splits.rows, self.rows)

    def computed(self, part: int) -> Iterator[list[Instruction]]:
        """What cores do with a pass of the weights."""
        cut, splits, start = self.planned.cut, self.planned.splits, self.planned.placement.weights.start
        if not cut.convolves:
            if part == 0:
                yield from self._pooled()
        elif "one-chunk" in cut.machine.quirks:
            size = 16 * -(-cut.chunk_bytes(splits.co, splits.ci) // 16)
            sizes = [int(size) + (PARAMETERS if self.number == part == 0 else 0)]
            yield from self._chunk(0, splits.co, sizes, listed_blocks(cut, splits), start)
        else:
            profile = self.planned.profile
            for chunk in profile.passes(splits.passes)[part]:
                sizes = profile.bytes[chunk].astype(int).tolist()
                yield from self._chunk(chunk, int(profile.co[chunk]), sizes, profile.kept[chunk].sum(), start)
                start += sum(sizes)

    def _weights(self, chunk: int, sizes: Sequence[int], start: int) -> Instruction:
        """A chunk of weights, a record after the other."""
        address = tuple(start + before for before in accumulate(sizes[:-1], initial=0))
        fields = {"tensor": "weights", "address": address, "core": WEIGHTS, "chunk": chunk, "parts": len(sizes)}
        return _instruction(self.planned.cut, "LOADWM", sum(sizes) / len(sizes), bytes=tuple(sizes), **fields)

    def _chunk(
        self, chunk: int, channels: int, sizes: Sequence[int], kept: float, start: int
    ) -> Iterator[list[Instruction]]:
        """A chunk of weights and its iterations: those at the padding one by one, all others together; with parts of the
        input channels, one part after the other in each."""
        weights, parts = self._weights(chunk, sizes, start), len(sizes)
        fields = {"chunk": chunk, "channel": chunk * self.planned.splits.co}
        if parts == 1:
            yield [weights]
            for at, count, _ in self._bounds():
                yield self._triple(channels, kept, at, count, **fields)
        else:
            count = -(-self.rows // self.step)
            triple = self._triple(channels, kept / parts, 0, count, parts=parts, **fields)
            yield [attrs.evolve(weights, iterations=count), *triple]

    def _bounds(self) -> list[tuple[int, int, bool]]:
        """First iteration and iterations of every group, and whether it is that in the body."""
        groups = row_groups(self.planned.cut, self.first, self.rows, self.step)
        head, body, tail = (int(count) for count in groups)
        found = [(at, 1, False) for at in range(head)] + ([(head, body, True)] if body else [])
        return found + [(at, 1, False) for at in range(head + body, head + body + tail)]

    def _pooled(self) -> Iterator[list[Instruction]]:
        """Steps through the channels of a core, which load no weights: iterations of several form one group."""
        cut, splits = self.planned.cut, self.planned.splits
        whole, rest = divmod(cut.row_channels, splits.co)
        if "one-chunk" in cut.machine.quirks:
            yield [self._weights(0, [PARAMETERS], 0)]
        for count, channels, channel in ((whole, splits.co, 0), (min(rest, 1), rest, whole * splits.co)):
            if not count:
                continue
            for at, rows, body in sorted(self._bounds(), key=lambda group: group[2]):
                if body:
                    yield self._triple(channels, 0, at, rows * count, channel=channel, steps=count)
                else:
                    for start in range(channel, channel + count * channels, channels):
                        yield self._triple(channels, 0, at, 1, channel=start)

    def _triple(
        self, channels: int, kept: float, at: int, count: int, parts: int = 1, **fields: Any
    ) -> list[Instruction]:
        """LOADFM, COMP and WRITEFM of `count` iterations from iteration `at` on."""
        cut, place, step = self.planned.cut, self.planned.placement, self.step
        stride, above, last = cut.layer.stride, cut.layer.padding[0], self.first + self.rows - step
        row = min(self.first + at * step, last)
        fields |= {"iterations": count, "channels": channels, "tile": self.number}
        read = {"row": row * stride - above, "rows": cut.in_rows(step), "step": step * stride, "core": INPUT}
        read |= {"last_row": last * stride - above, "address": tuple(source.start for source in place.inputs)}
        made = {"row": row, "rows": step, "step": step, "last_row": last, "core": OUTPUT}
        target = {"tensor": cut.layer.name, "address": (place.output.start,), "lock": OUTPUT_LOCK}
        target |= {"origin": self.first if place.spilled else 0}
        loaded, computed, written = iteration(cut, self.planned.splits, step, channels, kept)
        return [
            _instruction(cut, "LOADFM", loaded, origin=self.origin, parts=parts, lock=INPUT_LOCK, **read, **fields),
            _instruction(cut, "COMP", computed, parts=parts, lock=INPUT_LOCK, **made, **fields),
            _instruction(cut, "WRITEFM", written, **target, **made, **fields),
        ]
