"""The instructions of a schedule: all transfers and computations with their times.

Per layer: WRITE of evicted tensors; for every tile of rows and pass of weights LOAD and LOADW (DDR to memory tiles, in
parallel); per chunk of weights LOADWM, and groups of LOADFM, COMP, WRITEFM (memory tile to core, in the core, back);
then WRITE. An instruction drives all memory tiles or cores. A group moves equal volumes in every iteration: iteration k
starts at row first + k * step, but no later than `last`, so that left-over rows repeat some rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Any

import attrs

from .durations import iteration, row_groups, tile_rows
from .memory import TilePlace, tile_windows
from .schedule import LayerPlan, Schedule
from .splits import Cut


@attrs.frozen(kw_only=True)
class Instruction:
    """A transfer or computation, `iterations` times. Fields of other types keep their defaults."""

    type: str
    """LOAD, LOADW, LOADFM, LOADWM, WRITE, WRITEFM or COMP."""
    layer: str
    group: int = 0
    """Number of the group; instructions of a group run together."""
    seconds: float = 0.0
    """Of an iteration, or of a part of an iteration."""
    iterations: int = 1
    steps: int = 1
    """Steps through the channels among the iterations of a layer without weights."""
    parts: int = 1
    """Parts of the input channels in every iteration, each with its weights."""
    bytes: tuple[int, ...] = ()
    """Bytes of an iteration, per memory tile, column of cores or row of cores; for LOADWM, per part."""
    tensor: tuple[str, ...] = ()
    operands: int = 1
    """Of LOADFM: tensors of a sum, behind each other; other tensors are channels of a whole."""
    address: tuple[int, ...] = ()
    """In every memory tile, per tensor, the address of its row `origin`. Of LOADWM, per part; of LOADW, a single
    address."""
    origin: int = 0
    offset: int = 0
    """LOADW: offset of the bytes in the DDR records of a memory tile."""
    apart: int = 0
    """Of LOADWM: bytes between the records of rows of cores with the same memory tile."""
    rows: tuple[int, ...] = ()
    """First row of the first iteration, rows, rows between iterations, first row of the last iteration; for LOAD and
    WRITE the first two. Rows and columns outside the image are padding."""
    columns: tuple[int, ...] = ()
    """First image column for the first column of cores, columns, columns between columns of cores."""
    channels: tuple[int, ...] = ()
    """First channel for the first core, channels, and channels between rows and between columns of cores; parts and
    steps follow each other."""
    cores: int = 0
    """Rows of cores with channels in a column's transfer; 1 for broadcast inputs."""
    op: str = ""
    kernel: tuple[int, ...] = ()
    stride: int = 0
    relu: bool = False
    reads: tuple[int, ...] = ()
    """Rows, columns, channels of every operand in an iteration of COMP."""
    makes: tuple[int, ...] = ()
    """Rows, columns, channels of the output of an iteration."""


def instructions_of(schedule: Schedule) -> list[Instruction]:
    """All instructions in order, with the numbers of their groups."""
    groups = (group for planned in schedule.layers for group in layer_groups(planned, schedule.shapes))
    return [attrs.evolve(one, group=number) for number, group in enumerate(groups) for one in group]


def layer_groups(planned: LayerPlan, shapes: Mapping[str, tuple[int, int, int]]) -> Iterator[list[Instruction]]:
    """The instructions of a layer in parallel groups; `shapes` of all tensors."""
    cut, splits, place = planned.cut, planned.splits, planned.placement
    layer, machine = cut.layer, cut.machine

    def moved(kind: str, of: TilePlace, size: int, row: int, rows: int) -> Instruction:
        """LOAD or WRITE of rows of a tensor."""
        return _instruction(cut, kind, size, tensor=(of.tensor,), address=(of.start,), origin=row, rows=(row, rows))

    rows, count = tile_rows(cut, splits)
    windows = tile_windows(layer, rows) if place.spilled else [(0, layer.height)] * count
    sizes = (machine.share * planned.profile.pass_bytes(splits.passes)).tolist() if cut.convolves else [0.0]
    for gone in place.evicted:
        yield [moved("WRITE", gone, gone.size, 0, shapes[gone.tensor][0])]
    for number, (low, high) in enumerate(windows):
        first = number * rows
        tile = RowTile(planned, first, min(rows, layer.out_height - first), low if place.spilled else 0)
        together = []
        for source in place.inputs:
            if source.tensor in place.loaded and (place.spilled or number == 0):
                size = (high - low) * machine.row_bytes(*shapes[source.tensor][1:])
                together.append(moved("LOAD", source, size, low, high - low))
        for part, (offset, weights) in enumerate(zip(accumulate(sizes, initial=0), sizes, strict=False)):
            if weights and (number == 0 or splits.passes > 1):
                where = {"address": (place.weights.start,), "offset": int(offset)}
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
    """An instruction with a number of bytes, or of cycles."""
    size = {} if kind == "COMP" else {"bytes": (round(float(amount)),)}
    seconds = float(amount) / cut.machine.rates[kind]
    found: Any = {"type": kind, "layer": cut.layer.name, "seconds": seconds, **size, **fields}
    return Instruction(**found)


@attrs.frozen
class RowTile:
    """Output rows [first, first + rows) of a layer; `origin` is the first row of its inputs in memory tiles."""

    planned: LayerPlan
    first: int
    rows: int
    origin: int

    @property
    def step(self) -> int:
        """Rows of an iteration."""
        return min(self.planned.splits.rows, self.rows)

    def computed(self, part: int) -> Iterator[list[Instruction]]:
        """The work of cores with a pass of the weights: chunks with their iterations, single ones at the padding, then all
        others together; parts of the input channels follow each other."""
        cut, splits, start = self.planned.cut, self.planned.splits, self.planned.placement.weights.start
        if not cut.convolves:
            yield from self._pooled() if part == 0 else ()
            return
        profile = self.planned.profile
        chunks = profile.passes(splits.passes)[part]
        apart = int(profile.bytes[chunks].sum()) if cut.machine.share > 1 else 0
        for chunk in chunks:
            sizes, kept = profile.bytes[chunk].astype(int).tolist(), profile.kept[chunk].sum()
            address = tuple(accumulate(sizes[:-1], initial=start))
            where: Any = {"bytes": tuple(sizes), "address": address, "apart": apart, "parts": len(sizes)}
            weights = _instruction(cut, "LOADWM", sum(sizes) / len(sizes), **where)
            triple = partial(self._triple, int(profile.co[chunk]), chunk * splits.co)
            if len(sizes) == 1:
                yield [weights]
                for at, count, _ in self._bounds():
                    yield triple(kept, at, count)
            else:
                count = -(-self.rows // self.step)
                whole = triple(kept / len(sizes), 0, count, parts=len(sizes))
                yield [attrs.evolve(weights, iterations=count), *whole]
            start += sum(sizes)

    def _bounds(self) -> list[tuple[int, int, bool]]:
        """First iteration and number of iterations of every group, and whether the group is the body."""
        groups = row_groups(self.planned.cut, self.first, self.rows, self.step)
        head, body, tail = (int(count) for count in groups)
        found = [(at, 1, False) for at in range(head)] + ([(head, body, True)] if body else [])
        return found + [(at, 1, False) for at in range(head + body, head + body + tail)]

    def _pooled(self) -> Iterator[list[Instruction]]:
        """Steps through the channels of a core without weights: iterations of several steps form a group."""
        cut, co = self.planned.cut, self.planned.splits.co
        whole, rest = divmod(cut.row_channels, co)
        for steps, channels, channel in ((whole, co, 0), (min(rest, 1), rest, whole * co)):
            for at, rows, body in sorted(self._bounds(), key=lambda group: group[2]) if steps else ():
                if body:
                    yield self._triple(channels, channel, 0, at, rows * steps, steps=steps)
                else:
                    for first in range(channel, channel + steps * channels, channels):
                        yield self._triple(channels, first, 0, at, 1)

    def _triple(
        self, channels: int, channel: int, kept: float, at: int, count: int, parts: int = 1, steps: int = 1
    ) -> list[Instruction]:
        """LOADFM, COMP and WRITEFM of `count` iterations from iteration `at` on, for channels from `channel` on."""
        cut, place, step = self.planned.cut, self.planned.placement, self.step
        layer, machine, last = cut.layer, cut.machine, self.first + self.rows - step
        stride, ci = layer.stride, self.planned.splits.ci if cut.convolves else channels

        def rows(size: int, scale: int, before: int) -> tuple[int, ...]:
            """Of inputs (with the stride and the rows above) or outputs."""
            begin, end = (min(self.first + k * step, last) for k in (at, at + count // steps - 1))
            return begin * scale - before, size, step * scale * (begin < end), end * scale - before

        apart = 0 if machine.columns == 1 or layer.is_global else cut.out_columns  # columns between those of cores
        lanes = cut.row_channels * (layer.is_global and machine.columns > 1)
        between = cut.row_channels * (machine.columns if layer.is_global else 1) * (cut.busy_rows > 1)
        own, reads = (channel, channels, between, lanes), (cut.in_rows(step), cut.in_columns, ci)
        made = step, cut.out_columns, channels
        loaded, computed, written = iteration(cut, self.planned.splits, step, channels, kept)
        load = {
            "tensor": tuple(source.tensor for source in place.inputs),
            "operands": cut.operands,
            "address": tuple(source.start for source in place.inputs),
            "origin": self.origin,
            "rows": rows(reads[0], stride, layer.padding[0]),
            "columns": (-layer.padding[1], reads[1], apart * stride),
            "channels": (0, ci, 0, 0) if cut.convolves else own,
            "cores": 1 if cut.convolves else cut.busy_rows,
        }
        paced = max(made[:2]) > 1 or apart or rows(step, 1, 0)[2]  # whether anything goes on by the stride
        relu = layer.relu and layer.op in ("conv", "add")
        compute = {"op": layer.op, "kernel": layer.kernel, "stride": stride if paced else 1, "relu": relu}
        write = {
            "tensor": (layer.name,),
            "address": (place.output.start,),
            "origin": self.first if place.spilled else 0,
            "rows": rows(step, 1, 0),
            "columns": (0, made[1], apart),
            "channels": own,
            "cores": cut.busy_rows,
        }
        return [
            _instruction(cut, "LOADFM", loaded, iterations=count, parts=parts, steps=steps, **load),
            _instruction(cut, "COMP", computed, iterations=count, parts=parts, reads=reads, makes=made, **compute),
            _instruction(cut, "WRITEFM", written, iterations=count, steps=steps, **write),
        ]
