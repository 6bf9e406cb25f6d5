"""The instructions of a schedule: what moves where and when, addresses and locks included.

Per layer: WRITE of what has to leave the memory tiles; for every tile of rows and pass of weights LOAD and LOADW (DDR to
memory tiles, in parallel); per chunk of weights LOADWM, which blocks, and groups of LOADFM, COMP, WRITEFM (memory tile
to core, in the core, back); then WRITE. An instruction drives all memory tiles or cores. A group moves equal volumes in
every iteration: iteration k starts at `row + k * step`, but no later than `last_row`, so that left-over rows are done
together with some that were. Iterations alternate between two buffers, at `core` and one buffer further; lock `lock`
guards the first of them, `lock + 1` the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from .durations import PARAMETERS, Iteration, iteration, row_groups, tile_rows, weight_bytes
from .events import constant
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
    start: float = 0.0
    """Seconds since the start of the network."""
    end: float = 0.0


def instructions_of(schedule: Schedule) -> list[Instruction]:
    """All instructions in order, with the times at which they start and end in a pipeline with two buffers."""
    found: list[Instruction] = []
    now = 0.0
    for planned in schedule.layers:
        for together in layer_instructions(planned, schedule.row_bytes):
            end = now + span(together)
            found.extend(
                attrs.evolve(one, start=now + offset, end=end - after) for one, offset, after in _times(together)
            )
            now = end
    return found


def span(together: Sequence[Instruction], buffers: int = 2) -> float:
    """Seconds that instructions take which run together: in parallel, as a pipeline, or part by part."""
    by_type = {one.type: one for one in together}
    if "COMP" not in by_type:
        channels = {one.type for one in together}
        return max(sum(one.seconds for one in together if one.type == channel) for channel in channels)
    load, compute, write = (by_type[name] for name in GROUP)
    if load.parts > 1:
        each = by_type["LOADWM"].seconds + load.seconds + compute.seconds
        return load.iterations * (load.parts * each + write.seconds)
    return constant(load.seconds, compute.seconds, write.seconds, load.iterations, buffers)


def _times(together: Sequence[Instruction]) -> Iterator[tuple[Instruction, float, float]]:
    """Instructions with when they start after the first, and end before the last."""
    by_type = {one.type: one for one in together}
    whole = span(together)
    if "COMP" not in by_type:
        passed = {one.type: 0.0 for one in together}
        for one in together:
            yield one, passed[one.type], whole - passed[one.type] - one.seconds
            passed[one.type] += one.seconds
        return
    load, compute, write = (by_type[name].seconds for name in GROUP)
    weights = by_type["LOADWM"].seconds if "LOADWM" in by_type else 0.0
    before = {"LOADWM": 0.0, "LOADFM": weights, "COMP": weights + load, "WRITEFM": weights + load + compute}
    after = {"LOADWM": load + compute + write, "LOADFM": compute + write, "COMP": write, "WRITEFM": 0.0}
    for one in together:
        yield one, before[one.type], after[one.type]


def layer_instructions(planned: Planned, row_bytes: dict[str, int]) -> Iterator[list[Instruction]]:
    """The instructions of a layer: lists of those that run together. `row_bytes`: of a tensor, per memory tile."""
    cut, splits, place = planned.cut, planned.splits, planned.placement
    layer = cut.layer
    rows, count = (int(value) for value in tile_rows(cut, splits))
    windows = tile_windows(layer, rows) if place.spilled else [(0, layer.height)]
    for gone in place.evicted:
        yield [_write(planned, gone, gone.end - gone.start, 0, 0)]
    for tile in range(count):
        first = tile * rows
        own = min(rows, layer.out_height - first)
        low, high = windows[min(tile, len(windows) - 1)]
        together = []
        if place.spilled or tile == 0:
            for source in place.inputs:
                if source.tensor in place.loaded:
                    size = (high - low) * row_bytes[source.tensor]
                    together.append(_load(planned, source, size, low, high - low, tile))
        for number, size in enumerate(_pass_sizes(planned)):
            if size and (tile == 0 or splits.passes > 1):
                together.append(_load_weights(planned, size, number, tile))
            if together:
                yield together
            together = []
            yield from _pass(planned, Tile(tile, first, own, low if place.spilled else 0), number)
        if place.stored:
            size = own * row_bytes[layer.name] if place.spilled else place.output.end - place.output.start
            yield [_write(planned, place.output, size, first, own)]


def _load(planned: Planned, source: Place, size: int, row: int, rows: int, tile: int) -> Instruction:
    seconds = size / planned.cut.machine.load
    return Instruction(
        type="LOAD",
        layer=planned.cut.layer.name,
        seconds=seconds,
        tensor=source.tensor,
        address=(source.start,),
        origin=row,
        row=row,
        rows=rows,
        tile=tile,
        bytes=(size,),
    )


def _load_weights(planned: Planned, size: float, number: int, tile: int) -> Instruction:
    return Instruction(
        type="LOADW",
        layer=planned.cut.layer.name,
        seconds=size / planned.cut.machine.load_weights,
        tensor="weights",
        address=(planned.placement.weights.start,),
        chunk=number,
        tile=tile,
        bytes=(round(size),),
    )


def _write(planned: Planned, source: Place, size: int, row: int, rows: int) -> Instruction:
    return Instruction(
        type="WRITE",
        layer=planned.cut.layer.name,
        seconds=size / planned.cut.machine.write,
        tensor=source.tensor,
        address=(source.start,),
        origin=row,
        row=row,
        rows=rows,
        bytes=(size,),
    )


# ---------------------------------------------------------------------------------------------------------- inside cores


@attrs.frozen
class Tile:
    """Output rows [first, first + rows) of a layer; `origin` is the row of its inputs that memory tiles hold first."""

    number: int
    first: int
    rows: int
    origin: int


def chunk_passes(cut: Cut, co: int, ci: int, passes: int) -> list[range]:
    """The chunks of every pass."""
    count = len(cut.chunk_sizes(co, ci))
    each = -(-count // passes)
    return [range(first, min(first + each, count)) for first in range(0, count, each)]


def record_offsets(cut: Cut, co: int, ci: int, chunks: range) -> dict[tuple[int, int], int]:
    """Where the records of a pass start, by chunk and part: chunk by chunk, their parts one behind the other."""
    sizes = cut.chunk_sizes(co, ci)
    found, at = {}, 0
    for chunk in chunks:
        for part in range(sizes.shape[1]):
            found[chunk, part] = at
            at += int(sizes[chunk, part])
    return found


def _pass_sizes(planned: Planned) -> list[float]:
    """Bytes of weights that every pass brings to a memory tile."""
    cut, splits = planned.cut, planned.splits
    whole = float(weight_bytes(cut, splits, 1))
    if cut.layer.op != "conv" or "bias-per-part" in cut.quirks:
        return [whole / splits.passes] * splits.passes
    share = -(-cut.machine.rows // cut.machine.columns)
    sizes = cut.chunk_sizes(splits.co, splits.ci).sum(axis=1)
    passes = chunk_passes(cut, splits.co, splits.ci, splits.passes)
    found = [share * float(sizes[part.start : part.stop].sum()) for part in passes]
    return [found[0] + whole - sum(found), *found[1:]]


def _pass(planned: Planned, tile: Tile, number: int) -> Iterator[list[Instruction]]:
    """What cores do with the weights of one pass."""
    cut, splits = planned.cut, planned.splits
    if cut.layer.op != "conv":
        if number == 0:
            yield from _pooled(planned, tile)
    elif "one-chunk" in cut.quirks:
        if number == 0 or "repeated-passes" in cut.quirks:
            yield [_listed_chunk(planned, first=tile.number == number == 0)]
            kept = cut.layer.density * (splits.co // 8) * (splits.ci // 8)
            yield from _groups(
                planned, tile, 0, splits.co, iteration(cut, splits, _step(planned, tile), splits.co, kept)
            )
    else:
        chunks = chunk_passes(cut, splits.co, splits.ci, splits.passes)[number]
        offsets = record_offsets(cut, splits.co, splits.ci, chunks)
        every = range(len(cut.chunk_sizes(splits.co, splits.ci))) if "repeated-passes" in cut.quirks else chunks
        for chunk in every:
            yield from _chunk(planned, tile, chunk, offsets)


def _step(planned: Planned, tile: Tile) -> int:
    return min(planned.splits.rows, tile.rows)


def _listed_chunk(planned: Planned, first: bool) -> Instruction:
    """The only chunk that the paper's estimator counts."""
    cut, splits = planned.cut, planned.splits
    size = cut.chunk_bytes(splits.co, splits.ci)
    if "instructions" in cut.quirks:
        size = 16 * -(-size // 16) + (PARAMETERS if first else 0)
    return _weights(planned, 0, (planned.placement.weights.start,), (round(size),), size)


def _weights(
    planned: Planned, chunk: int, address: tuple[int, ...], sizes: tuple[int, ...], mean: float
) -> Instruction:
    return Instruction(
        type="LOADWM",
        layer=planned.cut.layer.name,
        seconds=mean / planned.cut.machine.load_core_weights,
        parts=len(sizes),
        tensor="weights",
        address=address,
        core=WEIGHTS,
        chunk=chunk,
        bytes=sizes,
    )


def _chunk(
    planned: Planned, tile: Tile, chunk: int, offsets: dict[tuple[int, int], int]
) -> Iterator[list[Instruction]]:
    """A chunk of weights and its iterations; with parts of the input channels, one part after the other in each."""
    cut, splits = planned.cut, planned.splits
    profile, sizes = cut.profile(splits.co, splits.ci), cut.chunk_sizes(splits.co, splits.ci)
    parts, channels = sizes.shape[1], int(profile.co[chunk])
    start = planned.placement.weights.start
    address = tuple(start + offsets.get((chunk, part), 0) for part in range(parts))
    own = tuple(int(size) for size in sizes[chunk])
    weights = _weights(planned, chunk, address, own, sum(own) / parts)
    step = _step(planned, tile)
    one = iteration(cut, splits, step, channels, profile.kept[chunk].sum() / parts)
    if parts == 1:
        yield [weights]
        yield from _groups(planned, tile, chunk, channels, one)
        return
    count = -(-tile.rows // step)
    triple = _triple(planned, tile, chunk, channels, one, 0, count, parts=parts)
    yield [attrs.evolve(weights, iterations=count), *triple]


def _groups(planned: Planned, tile: Tile, chunk: int, channels: int, one: Iteration) -> Iterator[list[Instruction]]:
    """Iterations at the padding one by one, all others together."""
    step = _step(planned, tile)
    head, body, tail = (int(count) for count in row_groups(planned.cut, tile.first, tile.rows, step))
    for at in range(head):
        yield _triple(planned, tile, chunk, channels, one, at, 1)
    if body:
        yield _triple(planned, tile, chunk, channels, one, head, body)
    for at in range(head + body, head + body + tail):
        yield _triple(planned, tile, chunk, channels, one, at, 1)


def _pooled(planned: Planned, tile: Tile) -> Iterator[list[Instruction]]:
    """Steps through the channels of a core, which load no weights: iterations of several form one group."""
    cut, splits = planned.cut, planned.splits
    step = _step(planned, tile)
    head, body, tail = (int(count) for count in row_groups(cut, tile.first, tile.rows, step))
    whole, rest = divmod(cut.row_channels, splits.co)
    channel = 0
    if "instructions" in cut.quirks:
        yield [_weights(planned, 0, (0,), (PARAMETERS,), PARAMETERS)]
    for count, channels in ((whole, splits.co), (1 if rest else 0, rest)):
        if not count:
            continue
        one = iteration(cut, splits, step, channels, 0)
        starts = range(channel, channel + count * channels, channels)
        for at in (*range(head), *range(head + body, head + body + tail)):
            for start in starts:
                yield _triple(planned, tile, 0, channels, one, at, 1, channel=start)
        if body:
            yield _triple(planned, tile, 0, channels, one, head, body * count, channel=channel, steps=count)
        channel += count * channels


def _triple(
    planned: Planned,
    tile: Tile,
    chunk: int,
    channels: int,
    one: Iteration,
    at: int,
    count: int,
    parts: int = 1,
    steps: int = 1,
    channel: int | None = None,
) -> list[Instruction]:
    """LOADFM, COMP and WRITEFM of `count` iterations from iteration `at` of a tile on."""
    cut, place = planned.cut, planned.placement
    layer, machine, step = cut.layer, cut.machine, _step(planned, tile)
    last = tile.first + tile.rows - step
    row = min(tile.first + at * step, last)
    common: dict[str, Any] = {
        "layer": layer.name,
        "iterations": count,
        "channel": chunk * planned.splits.co if channel is None else channel,
        "channels": channels,
        "chunk": chunk,
        "steps": steps,
        "tile": tile.number,
    }
    return [
        Instruction(
            type="LOADFM",
            seconds=float(one.load) / machine.load_core,
            parts=parts,
            address=tuple(source.start for source in place.inputs),
            origin=tile.origin,
            core=INPUT,
            row=row * layer.stride - layer.padding[0],
            rows=(step - 1) * layer.stride + layer.kernel[0],
            step=step * layer.stride,
            last_row=last * layer.stride - layer.padding[0],
            bytes=(round(float(one.load)),),
            lock=INPUT_LOCK,
            **common,
        ),
        Instruction(
            type="COMP",
            seconds=float(one.compute) / machine.clock_hz,
            parts=parts,
            core=OUTPUT,
            row=row,
            rows=step,
            step=step,
            last_row=last,
            lock=INPUT_LOCK,
            **common,
        ),
        Instruction(
            type="WRITEFM",
            seconds=float(one.write) / machine.write_core,
            tensor=layer.name,
            address=(place.output.start,),
            origin=tile.first if place.spilled else 0,
            core=OUTPUT,
            row=row,
            rows=step,
            step=step,
            last_row=last,
            bytes=(round(float(one.write)),),
            lock=OUTPUT_LOCK,
            **common,
        ),
    ]
