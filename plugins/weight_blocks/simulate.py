"""Executes a schedule on addressed memories, and compares the outputs with dense convolutions of the masked weights.

Memory tiles and cores are arrays of bytes. Every instruction reads and writes at its addresses; every byte of a memory
tile knows which tensor wrote it, so that a stale or unwritten byte that is read is an error, and so is a write beyond a
buffer. The two buffers of a core's inputs and outputs are full or empty, and the iterations of a group run in the order
of the pipeline. Computations take the kept blocks out of the records in the core's memory and multiply these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from .instructions import Instruction
from .layers import BLOCK, Layer
from .machinery import Broken, Machinery, Tally
from .operations import Weights, compute, decoded, draw, pooled, quantised, reference
from .record import unpack_blocks
from .schedule_file import Compiled
from .splits import Cut, Splits

NOT_EXECUTABLE = frozenset(
    ("input-macs", "one-chunk", "padded-width", "narrow-images", "repeated-passes", "one-row-pools", "bias-per-part")
)
"""Quirks that count other work than hardware would do."""


@attrs.define(slots=False)
class Running:
    """A layer while it runs."""

    machinery: Machinery
    layer: Layer
    cut: Cut
    splits: Splits
    sources: tuple[str, ...]
    """The tensors that it reads, concatenations resolved."""
    weights: Weights | None
    offset: int = 0
    blocks: Any = None
    """The kept blocks of the chunk in the cores, per row of cores."""

    def __attrs_post_init__(self) -> None:
        layer, cut = self.layer, self.cut
        columns = np.arange(cut.machine.columns)[:, None]
        first = 0 * columns if layer.is_global else columns * cut.out_columns * layer.stride
        self.at = first - layer.padding[1] + np.arange(cut.in_columns)
        """(columns of cores, columns of a tile): columns of the image."""
        share = -(-layer.width // cut.machine.columns)
        self.there = (self.at >= 0) & (self.at < layer.width)
        inside = np.clip(self.at, 0, layer.width - 1)
        self.tile, self.local = inside // share, inside % share
        busy = np.where(self.there, np.abs(self.tile - columns), 0)
        if not layer.is_global:
            self.machinery.tally.reach = max(self.machinery.tally.reach, int(busy.max()))
        self.parts = -(-cut.channels // self.splits.ci) if layer.op == "conv" else 1

    # ------------------------------------------------------------------------------------------------------------ loads

    def gather(self, one: Instruction, row: int, low: int, high: int, source: int | None = None) -> Array:
        """(columns of cores, rows, columns, channels [low, high)) of the inputs; what is outside is padding."""
        machinery, layer = self.machinery, self.layer
        empty = -128 if layer.op == "maxpool" else 0
        found = np.full((*self.at.shape[:1], one.rows, self.at.shape[1], high - low), empty, np.int8)
        rows = np.arange(row, row + one.rows)
        kept = (rows >= 0) & (rows < layer.height)
        rows = rows[kept]
        tile, local = self.tile[:, None, :], self.local[:, None, :]
        at = 0
        for place, name in enumerate(self.sources):
            if source is not None and place != source:
                continue
            channels = -(-machinery.compiled.shapes[name][2] // BLOCK) * BLOCK
            begin, end = max(low, at), min(high, at + channels)
            if begin < end:
                machinery.check_rows(one, name, one.address[place], rows - one.origin)
                index = tile, (rows - one.origin)[None, :, None], local, slice(begin - at, end - at)
                data = machinery.view(machinery.tiles, name, one.address[place])[index]
                owner = machinery.view(machinery.owner, name, one.address[place])[index]
                inside = np.broadcast_to(self.there[:, None, :], data.shape[:3])
                machinery.check_owner(one, owner[inside], name)
                found[:, kept, :, begin - low : end - low] = np.where(inside[..., None], data, empty)
            if source is None:
                at += channels
        return found

    def load_records(self, one: Instruction, part: int) -> None:
        """A record to every row of cores, broadcast to its columns; decodes what the cores then hold."""
        machinery, machine = self.machinery, self.cut.machine
        size, rows = one.bytes[part], []
        if size > machine.weights:
            raise Broken(f"{one.layer}: a record of {size} bytes in a buffer of {machine.weights}")
        per_row = self.weights.pass_sizes[self.weights.number] if self.weights else 0
        for row in range(machine.rows):
            tile, at = row % machine.columns, one.address[part] + row // machine.columns * per_row
            record = machinery.tiles[tile, at : at + size]
            if (machinery.owner[tile, at : at + size] != -1).any():
                raise Broken(f"{one.layer}: LOADWM reads a record where no weights were written")
            machinery.cores[:, row, one.core : one.core + size] = record
            channels = int(self.cut.profile(self.splits.co, self.splits.ci).co[one.chunk])
            held = machinery.cores[0, row, one.core : one.core + size]
            rows.append(unpack_blocks(held.view(np.uint8), channels, self.splits.ci, self.layer.kernel, bias=part == 0))
        machinery.tally.add(one.layer, one.type, size)
        machinery.tally.records[one.layer, one.chunk, part] += 1
        self.blocks = decoded(rows)

    def load(self, one: Instruction, k: int, part: int) -> None:
        machinery, machine = self.machinery, self.cut.machine
        buffer = (k * one.parts + part) % 2
        machinery.fill(one, one.lock + buffer)
        per_step = one.iterations // one.steps
        row = min(one.row + k % per_step * one.step, one.last_row)
        at = one.core + buffer * machine.inputs
        if self.layer.op == "conv":
            low = part * self.splits.ci
            data = self.gather(one, row, low, low + self.splits.ci)
            flat = data.reshape(len(data), 1, -1)
            moved = flat.shape[2]
            held = np.broadcast_to(flat, (len(data), machine.rows, moved))
        else:
            start = one.channel + k // per_step * one.channels
            operands = range(len(self.sources)) if self.layer.op == "add" else (None,)
            parts = [
                np.concatenate(
                    [self._slice(one, row, core, start, o).reshape(machine.columns, -1) for o in operands], 1
                )
                for core in range(machine.rows)
            ]
            held = np.stack(parts, axis=1)
            moved = held.shape[2] * self.cut.busy_rows
        if held.shape[2] > machine.inputs:
            raise Broken(f"{one.layer}: {held.shape[2]} bytes of inputs in a buffer of {machine.inputs}")
        machinery.cores[:, :, at : at + held.shape[2]] = held
        machinery.tally.add(one.layer, one.type, moved)

    def _slice(self, one: Instruction, row: int, core_row: int, start: int, source: int | None) -> Array:
        """(columns of cores, rows, columns, channels) of a row of cores that works on channels of its own."""
        cut, layer, size = self.cut, self.layer, one.channels
        if not layer.is_global:
            low = core_row * cut.row_channels + start
            high = min(low + size, layer.padded_channels)
            data = self.gather(one, row, min(low, high), high, source)
            return np.pad(data, ((0, 0), (0, 0), (0, 0), (0, size - data.shape[3])))
        found = []
        for column in range(cut.machine.columns):
            low = (core_row * cut.machine.columns + column) * cut.row_channels + start
            high = min(low + size, layer.padded_channels)
            data = self.gather(one, row, min(low, high), high, source)[column]
            found.append(np.pad(data, ((0, 0), (0, 0), (0, size - data.shape[2]))))
        return np.stack(found)

    # ---------------------------------------------------------------------------------------------------------- compute

    def compute(self, one: Instruction, k: int, part: int, load: Instruction) -> None:
        machinery, machine, layer = self.machinery, self.cut.machine, self.layer
        buffer = (k * one.parts + part) % 2
        machinery.drain(one, load.lock + buffer)
        out = k % 2 if one.parts == 1 else 0
        at = load.core + buffer * machine.inputs
        target = one.core + out * machine.outputs
        channels = self.splits.ci if layer.op == "conv" else one.channels * self.cut.operands
        shape = load.rows, self.cut.in_columns, channels
        size = int(np.prod(shape))
        tile = (one.rows, self.cut.out_columns, one.channels)
        if layer.op == "conv":
            own = machinery.cores[:, :, at : at + size]
            if (own != own[:, :1]).any():
                raise Broken(f"{one.layer}: the rows of cores hold other inputs")
            inputs = own[:, 0].reshape(machine.columns, *shape)
            sums, multiplied = compute(inputs, self.blocks, layer, tile, machine.rows)
            machinery.tally.blocks += multiplied
            outputs = self._accumulated(sums, part, one.core, tile)
        else:
            inputs = machinery.cores[:, :, at : at + size]
            outputs = pooled(inputs, layer, (load.rows, self.cut.in_columns, one.channels), tile)
        if outputs is None:
            return
        machinery.fill(one, 2 + out)
        flat = outputs.reshape(machine.columns, machine.rows, -1)
        if flat.shape[2] > machine.outputs:
            raise Broken(f"{one.layer}: {flat.shape[2]} bytes of outputs in a buffer of {machine.outputs}")
        machinery.cores[:, :, target : target + flat.shape[2]] = flat

    def _accumulated(self, sums: Array, part: int, at: int, tile: tuple[int, int, int]) -> Array | None:
        """int8 outputs after the last part; partial sums stay in both output buffers as int32."""
        machinery, weights = self.machinery, self.weights
        assert weights is not None
        if self.parts > 1:
            size = 4 * int(np.prod(tile))
            if size > 2 * self.cut.machine.outputs:
                raise Broken(f"{self.layer.name}: {size} bytes of partial sums")
            held = machinery.cores[:, :, at : at + size]
            if part:
                sums = sums + held.copy().view(np.int32).reshape(sums.shape)
            held[...] = np.ascontiguousarray(sums.astype(np.int32)).view(np.int8).reshape(held.shape)
        return None if part < self.parts - 1 else quantised(sums, weights.shift)

    def write(self, one: Instruction, k: int) -> None:
        machinery, machine, layer, cut = self.machinery, self.cut.machine, self.layer, self.cut
        buffer = k % 2 if self.parts == 1 else 0
        machinery.drain(one, one.lock + buffer)
        at = one.core + buffer * machine.outputs
        size = one.rows * cut.out_columns * one.channels
        tile = one.rows, cut.out_columns, one.channels
        data = machinery.cores[:, :, at : at + size].reshape(machine.columns, machine.rows, *tile)
        per_step = one.iterations // one.steps
        row = min(one.row + k % per_step * one.step, one.last_row) - one.origin
        start = one.channel + k // per_step * one.channels
        held, owner = (machinery.view(m, layer.name, one.address[0]) for m in (machinery.tiles, machinery.owner))
        width, limit = held.shape[2], held.shape[3]
        end = one.address[0] + (row + one.rows) * machinery.row_bytes(layer.name)
        machinery.check_end(one, end)
        tag = machinery.tags[layer.name]
        for column in range(machine.columns):
            to, first = (0, 0) if layer.is_global else (column, column * width)
            columns = min(width, cut.out_columns, layer.out_width - first)
            if columns <= 0:
                continue
            for core in range(machine.rows):
                share = core * machine.columns + column if layer.is_global else core
                low = share * cut.row_channels + start
                high = min(low + one.channels, (share + 1) * cut.row_channels, limit)
                if low < high:
                    place = to, slice(row, row + one.rows), slice(0, columns), slice(low, high)
                    held[place] = data[column, core, :, :columns, : high - low]
                    owner[place] = tag
        machinery.tally.add(one.layer, one.type, cut.busy_rows * size)


def execute(
    compiled: Compiled, seed: int = 0, progress: Callable[[str], None] = lambda name: None
) -> tuple[Tally, dict[str, bool], dict[str, Array]]:
    """Runs a schedule on random inputs and weights: what it did, by layer whether its output is bit-equal, and what DDR
    holds in the end.

    `Broken` where an instruction could not be executed, `SparseMapError` for schedules with quirks that count other work.
    """
    found = sorted(compiled.quirks & NOT_EXECUTABLE)
    if found:
        raise SparseMapError(
            f"a schedule with the quirks {', '.join(found)} counts other work than it would take to run"
        )
    rng = np.random.default_rng(seed)
    machinery = Machinery(compiled, seed)
    expected: dict[str, Array] = {}
    joined = _joined(compiled)
    produced = set(compiled.layers)
    made = produced | {part.tensor for name, part in compiled.slices.items() if name in produced}
    for name, (height, width, channels) in machinery.shapes.items():
        if name not in made and name not in compiled.slices:
            whole = machinery.whole(name)
            whole[:, :, :channels] = rng.integers(-128, 128, (height, width, channels), np.int8)
            expected[name] = whole.copy()
    equal = {}
    for name, instructions in _by_layer(compiled.instructions):
        progress(name)
        layer, _ = compiled.layers[name]
        cut, splits = compiled.cut(name)
        sources = tuple(source for given in layer.inputs for source in joined(given))
        own = np.random.default_rng([seed, *name.partition("@")[0].encode()])  # tiles have the same weights
        weights = draw(cut, splits, own) if layer.op == "conv" else None
        for source in sources:
            if source in compiled.slices and source not in expected:
                part = compiled.slices[source]
                expected[source] = expected[part.tensor][part.first : part.first + part.rows]
        running = Running(machinery, layer, cut, splits, sources, weights)
        _run(running, instructions)
        expected[name] = reference(layer, [expected[source] for source in sources], weights)
        last = instructions[-1]
        if name in compiled.slices:
            part = compiled.slices[name]
            whole = expected.setdefault(part.tensor, np.zeros_like(machinery.whole(part.tensor)))
            whole[part.first : part.first + part.rows] = expected[name]
        equal[name] = bool(np.array_equal(_output(machinery, name, last), expected[name]))
    return machinery.tally, equal, machinery.ddr


def _joined(compiled: Compiled) -> Callable[[str], tuple[str, ...]]:
    members: Mapping[str, tuple[str, ...]] = compiled.concats

    def resolve(name: str) -> tuple[str, ...]:
        return tuple(one for part in members[name] for one in resolve(part)) if name in members else (name,)

    return resolve


def _by_layer(instructions: tuple[Instruction, ...]) -> Iterator[tuple[str, list[Instruction]]]:
    start = 0
    for at in range(1, len(instructions) + 1):
        if at == len(instructions) or instructions[at].layer != instructions[start].layer:
            yield instructions[start].layer, list(instructions[start:at])
            start = at


def _run(running: Running, instructions: list[Instruction]) -> None:
    machinery = running.machinery
    at = 0
    while at < len(instructions):
        one = instructions[at]
        if one.type == "LOAD":
            machinery.load(one)
        elif one.type == "WRITE":
            machinery.write(one)
        elif one.type == "LOADW" and running.weights is not None:
            weights = running.weights
            weights.number = one.chunk
            offset = weights.offset_of(one.chunk)
            machinery.load_weights(one, weights.stored, offset)
        elif one.type == "LOADWM" and one.parts == 1:
            running.load_records(one, 0)
        elif one.type == "LOADWM":
            _parts(running, one, *instructions[at + 1 : at + 4])
            at += 3
        elif one.type == "LOADFM":
            _group(running, *instructions[at : at + 3])
            at += 2
        at += 1


def _group(running: Running, load: Instruction, compute: Instruction, write: Instruction) -> None:
    """Iterations in the order of a pipeline with two buffers."""
    count = load.iterations
    for k in range(count + 2):
        if k >= 2:
            running.write(write, k - 2)
        if 1 <= k <= count:
            running.compute(compute, k - 1, 0, load)
        if k < count:
            running.load(load, k, 0)


def _parts(running: Running, records: Instruction, load: Instruction, compute: Instruction, write: Instruction) -> None:
    """Parts of the input channels one after the other, with their weights; partial sums stay in the cores."""
    for k in range(load.iterations):
        for part in range(load.parts):
            running.load_records(records, part)
            running.load(load, k, part)
            running.compute(compute, k, part, load)
        running.write(write, k)


def _output(machinery: Machinery, name: str, last: Instruction) -> Array:
    """A layer's output, from DDR if it was written there and else from the memory tiles."""
    if last.type == "WRITE" and last.tensor == name:
        return machinery.whole(name)
    height, width, _ = machinery.compiled.shapes[name]
    view = machinery.view(machinery.tiles, name, last.address[0])[:, :height]
    owner = machinery.view(machinery.owner, name, last.address[0])[:, :height]
    whole = np.concatenate(list(view), axis=1)[:, :width]
    machinery.check_owner(last, np.concatenate(list(owner), axis=1)[:, :width], name)
    return whole
