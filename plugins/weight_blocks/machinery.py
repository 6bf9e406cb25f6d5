"""The memories of a mesh and what instructions do to them: arrays of bytes that know which tensor wrote each of them.

Every instruction reads and writes at its addresses; a stale or unwritten byte that is read is an error, and so is a
write beyond a buffer. The two buffers of a core's inputs and outputs are full or empty. Computations take the kept
blocks out of the records in the core's memory and multiply these alone.
"""

from __future__ import annotations

from collections import Counter

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from .instructions import INPUT, OUTPUT_LOCK, Instruction
from .layers import round_up
from .operations import Blocks, Weights, compute, pooled, quantised
from .record import unpack
from .schedule_file import Compiled
from .splits import Cut, Splits


class Broken(SparseMapError):
    """A schedule that hardware could not execute as it stands."""


@attrs.define
class Tally:
    """What was moved and computed."""

    volumes: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """Bytes by layer and kind of step, of the memory tile, column or row of cores that moves most."""
    blocks: int = 0
    """Blocks times pixels that were multiplied."""
    records: Counter[tuple[str, int, int]] = attrs.field(factory=Counter)
    """Reads of each record, by layer, chunk and part."""
    peak: int = 0
    """The largest address in a memory tile that was used, plus one."""
    reach: int = 0
    """How many columns away from its own a core read inputs at most."""


class Tensors(dict[str, Array]):
    """(rows, columns, channels in whole blocks) int8 by name, zero before the first use; a slice is the rows of its tensor."""

    def __init__(self, compiled: Compiled) -> None:
        self.shapes, self.slices = dict(compiled.shapes), compiled.slices
        for name, part in self.slices.items():
            height = max(other.first + other.rows for other in self.slices.values() if other.tensor == part.tensor)
            self.shapes.setdefault(part.tensor, (height, *compiled.shapes[name][1:]))

    def __missing__(self, tensor: str) -> Array:
        if (part := self.slices.get(tensor)) is not None:
            return self[part.tensor][part.first : part.first + part.rows]
        height, width, channels = self.shapes[tensor]
        return self.setdefault(tensor, np.zeros((height, width, round_up(channels)), np.int8))


@attrs.define(slots=False)
class Machinery:
    """The memories while a schedule runs."""

    compiled: Compiled
    tally: Tally = attrs.field(factory=Tally)

    def __attrs_post_init__(self) -> None:
        machine = self.compiled.machine
        self.tiles = np.zeros((machine.columns, machine.memtile), np.int8)
        self.owner = np.zeros((machine.columns, machine.memtile), np.int16)
        """The tags of what wrote the bytes; 0: nothing."""
        self.cores = np.zeros((machine.columns, machine.rows, machine.core), np.int8)
        self.ddr = Tensors(self.compiled)
        self.names = ["nothing", *self.compiled.shapes, "weights"]
        self.tags = {name: number for number, name in enumerate(self.names)}
        self.full = [False] * 4
        """By lock: whether the buffer that it guards holds something."""

    def row_bytes(self, tensor: str) -> int:
        return self.compiled.machine.row_bytes(*self.compiled.shapes[tensor][1:])

    def views(self, tensor: str, address: int) -> tuple[Array, Array]:
        """(memory tiles, rows, columns, channels) of a tensor whose first row is at an address, and what wrote it."""
        _, width, channels = self.compiled.shapes[tensor]
        size, columns = self.row_bytes(tensor), self.compiled.machine.columns
        rows = (self.compiled.machine.memtile - address) // size
        shape = columns, rows, -(-width // columns), round_up(channels)
        data, owner = (m[:, address : address + rows * size].reshape(shape) for m in (self.tiles, self.owner))
        return data, owner

    # -------------------------------------------------------------------------------------------- between DDR and tiles

    def load(self, one: Instruction) -> None:
        source = self.ddr[one.tensor][one.row : one.row + one.rows]
        data, owner = self.views(one.tensor, one.address[0])
        self.check_inside(one, one.tensor, one.address[0], np.arange(one.rows))
        tiles, width = len(data), data.shape[2]
        padded = np.pad(source, ((0, 0), (0, tiles * width - source.shape[1]), (0, 0)))
        data[:, : one.rows] = padded.reshape(one.rows, tiles, width, -1).transpose(1, 0, 2, 3)
        owner[:, : one.rows] = self.tags[one.tensor]
        self.tally.volumes[one.layer, one.type] += source[:, :width].size

    def write(self, one: Instruction) -> None:
        whole = self.ddr[one.tensor]
        target = whole[one.row : one.row + (one.rows or len(whole))]
        target[...] = self.image(one, one.tensor, one.row - one.origin, len(target))
        width = -(-target.shape[1] // len(self.tiles))
        self.tally.volumes[one.layer, one.type] += target[:, :width].size

    def image(self, one: Instruction, tensor: str, first: int, rows: int) -> Array:
        """(rows, columns, channels) of a tensor that memory tiles hold, from a row on that is counted from its address."""
        self.check_inside(one, tensor, one.address[0], np.arange(first, first + rows))
        width = self.compiled.shapes[tensor][1]
        parts = (view[:, first : first + rows] for view in self.views(tensor, one.address[0]))
        data, owner = (np.concatenate(list(part), axis=1)[:, :width] for part in parts)
        self.check_owner(one, owner, tensor)
        return data

    def check_inside(self, one: Instruction, tensor: str, address: int, rows: Array) -> None:
        """Raises Broken unless rows, counted from the one at an address, lie in a memory tile; bytes of weights are rows."""
        size = 1 if tensor == "weights" else self.row_bytes(tensor)
        end = address + (int(rows.max(initial=-1)) + 1) * size
        if address < 0 or rows.min(initial=0) < 0 or end > self.compiled.machine.memtile:
            raise Broken(f"{one.layer}: {one.type} of {tensor} at 0x{address:05X} leaves the memory tile")
        self.tally.peak = max(self.tally.peak, end)

    def check_owner(self, one: Instruction, owners: Array, tensor: str) -> None:
        wrong = owners[owners != self.tags[tensor]]
        if wrong.size:
            raise Broken(f"{one.layer}: {one.type} reads {tensor} where {self.names[wrong.flat[0]]} was written")

    # ---------------------------------------------------------------------------------------------------------- locks

    def fill(self, one: Instruction, lock: int) -> None:
        if self.full[lock]:
            raise Broken(f"{one.layer}: {one.type} fills a buffer (lock {lock}) that is not empty")
        self.full[lock] = True

    def drain(self, one: Instruction, lock: int) -> None:
        if not self.full[lock]:
            raise Broken(f"{one.layer}: {one.type} reads a buffer (lock {lock}) that is not full")
        self.full[lock] = False


@attrs.define(slots=False)
class Running:
    """A layer while it runs."""

    machinery: Machinery
    cut: Cut
    splits: Splits
    sources: tuple[str, ...]
    """The tensors that it reads, concatenations resolved."""
    weights: Weights | None
    row_weights: int = 0
    """Bytes of a row of cores in the pass of weights that memory tiles hold."""
    blocks: Blocks | None = None
    """The kept blocks of the chunk in the cores, per row of cores."""

    def __attrs_post_init__(self) -> None:
        layer, cut = self.cut.layer, self.cut
        columns = np.arange(cut.machine.columns)[:, None]
        first = 0 * columns if layer.is_global else columns * cut.out_columns * layer.stride
        at = first - layer.padding[1] + np.arange(cut.in_columns)
        """(columns of cores, columns of a tile): columns of the image."""
        share = -(-layer.width // cut.machine.columns)
        self.there = (at >= 0) & (at < layer.width)
        inside = np.clip(at, 0, layer.width - 1)
        self.tile, self.local = inside // share, inside % share
        if not layer.is_global:
            reach = int(np.where(self.there, np.abs(self.tile - columns), 0).max())
            self.machinery.tally.reach = max(self.machinery.tally.reach, reach)

    def position(self, one: Instruction, k: int) -> tuple[int, int]:
        """First row and channel of iteration k."""
        step, at = divmod(k, one.iterations // one.steps)
        return min(one.row + at * one.step, one.last_row), one.channel + step * one.channels

    def put(self, one: Instruction, at: int, data: Array, room: int, what: str) -> None:
        """Writes (columns, rows of cores, bytes) into a buffer of the cores; one for all where there is one."""
        if data.shape[2] > room:
            raise Broken(f"{one.layer}: {data.shape[2]} bytes of {what} in a buffer of {room}")
        self.machinery.cores[:, :, at : at + data.shape[2]] = data

    # ------------------------------------------------------------------------------------------------------------ loads

    def gather(self, one: Instruction, row: int, low: int, high: int, sources: list[int]) -> Array:
        """(columns of cores, rows, columns, channels [low, high)) of the inputs; what is outside is padding."""
        machinery, layer = self.machinery, self.cut.layer
        empty = -128 if layer.op == "maxpool" else 0
        columns, width = self.there.shape
        found = np.full((columns, one.rows, width, high - low), empty, np.int8)
        rows = np.arange(row, row + one.rows)
        kept = (rows >= 0) & (rows < layer.height)
        rows, at = rows[kept] - one.origin, 0
        for place in sources:
            name = self.sources[place]
            channels = round_up(machinery.compiled.shapes[name][2])
            begin, end = max(low, at), min(high, at + channels)
            if begin < end:
                machinery.check_inside(one, name, one.address[place], rows)
                index = self.tile[:, None, :], rows[None, :, None], self.local[:, None, :], slice(begin - at, end - at)
                data, owner = (view[index] for view in machinery.views(name, one.address[place]))
                inside = np.broadcast_to(self.there[:, None, :], data.shape[:3])
                machinery.check_owner(one, owner[inside], name)
                found[:, kept, :, begin - low : end - low] = np.where(inside[..., None], data, empty)
            at += channels
        return found

    def load_pass(self, one: Instruction) -> None:
        """A pass of weights to every memory tile."""
        assert self.weights is not None
        machinery, records, at = self.machinery, self.weights.passes[one.chunk], one.address[0]
        self.row_weights = records.shape[2]
        own = records.reshape(len(records), -1)[:, : one.bytes[0]]
        machinery.check_inside(one, "weights", at, np.arange(own.shape[1]))
        machinery.tiles[:, at : at + own.shape[1]] = own
        machinery.owner[:, at : at + own.shape[1]] = machinery.tags["weights"]
        machinery.tally.volumes[one.layer, one.type] += own.shape[1]

    def load_records(self, one: Instruction, part: int = 0) -> None:
        """A record to every row of cores, broadcast to its columns; decodes what the cores then hold."""
        machinery, machine, size = self.machinery, self.cut.machine, one.bytes[part]
        rows = np.arange(machine.rows)
        at = one.address[part] + rows // machine.columns * self.row_weights
        machinery.check_inside(one, "weights", at.max(), np.arange(size))
        index = (rows % machine.columns)[:, None], at[:, None] + np.arange(size)
        machinery.check_owner(one, machinery.owner[index], "weights")
        self.put(one, one.core, machinery.tiles[index][None], machine.weights, "a record")
        held = machinery.cores[0, :, one.core : one.core + size]
        shape = (
            int(self.cut.profile(self.splits.co, self.splits.ci).co[one.chunk]),
            self.splits.ci,
            self.cut.layer.kernel,
        )
        self.blocks = Blocks.of([unpack(record, *shape, machine.index, bias=part == 0) for record in held])
        machinery.tally.volumes[one.layer, one.type] += size
        machinery.tally.records[one.layer, one.chunk, part] += 1

    def load(self, one: Instruction, k: int, part: int) -> None:
        machinery, machine, cut = self.machinery, self.cut.machine, self.cut
        buffer = (k * one.parts + part) % 2
        machinery.fill(one, one.lock + buffer)
        row, start = self.position(one, k)
        every = list(range(len(self.sources)))
        if cut.convolves:
            low = part * self.splits.ci
            held = self.gather(one, row, low, low + self.splits.ci, every).reshape(machine.columns, 1, -1)
            moved = held.shape[2]
        else:
            operands = [[place] for place in every] if self.cut.layer.op == "add" else [every]
            parts = [self._shares(one, row, start, own).reshape(*machinery.cores.shape[:2], -1) for own in operands]
            held = np.concatenate(parts, axis=2)
            moved = held.shape[2] * cut.busy_rows
        self.put(one, one.core + buffer * machine.inputs, held, machine.inputs, "inputs")
        machinery.tally.volumes[one.layer, one.type] += moved

    def _shares(self, one: Instruction, row: int, start: int, sources: list[int]) -> Array:
        """(columns, rows of cores, rows, columns, channels) of inputs where every row of cores has channels of its own; of
        a global average, every core."""
        cut, columns = self.cut, self.cut.machine.columns
        shape = columns, cut.machine.rows, one.rows, cut.in_columns, one.channels
        found = np.zeros(shape, np.int8)
        for share in range(cut.machine.rows * (columns if self.cut.layer.is_global else 1)):
            low = share * cut.row_channels + start
            high = min(low + one.channels, cut.channels)
            if low < high:
                data = self.gather(one, row, low, high, sources)
                core, column = divmod(share, columns) if self.cut.layer.is_global else (share, slice(None))
                found[column, core, ..., : high - low] = data[column]
        return found

    # ---------------------------------------------------------------------------------------------------------- compute

    def compute(self, one: Instruction, k: int, part: int, load: Instruction) -> None:
        machinery, machine, layer = self.machinery, self.cut.machine, self.cut.layer
        buffer, out = (k * one.parts + part) % 2, k % 2 if one.parts == 1 else 0
        machinery.drain(one, load.lock + buffer)
        shape = load.rows, self.cut.in_columns, self.splits.ci if self.cut.convolves else one.channels
        at, tile = INPUT + buffer * machine.inputs, (one.rows, self.cut.out_columns, one.channels)
        inputs = machinery.cores[:, :, at : at + int(np.prod(shape)) * self.cut.operands]
        if self.cut.convolves:
            if self.blocks is None:
                raise Broken(f"{one.layer}: rows of cores hold no weights")
            image = inputs[:, 0].reshape(machine.columns, *shape)
            sums, multiplied = compute(image, self.blocks, layer, tile, machine.rows)
            machinery.tally.blocks += multiplied
            outputs = self._accumulated(sums, part, one, tile)
        else:
            outputs = pooled(inputs, layer, shape, tile)
        if outputs is not None:
            machinery.fill(one, OUTPUT_LOCK + out)
            flat = outputs.reshape(machine.columns, machine.rows, -1)
            self.put(one, one.core + out * machine.outputs, flat, machine.outputs, "outputs")

    def _accumulated(self, sums: Array, part: int, one: Instruction, tile: tuple[int, int, int]) -> Array | None:
        """int8 outputs after the last part; partial sums stay in both output buffers as int32."""
        assert self.weights is not None
        if one.parts > 1:
            if part:
                held = self.machinery.cores[:, :, one.core : one.core + 4 * int(np.prod(tile))]
                sums = sums + held.copy().view(np.int32).reshape(sums.shape)
            words = np.ascontiguousarray(sums.astype(np.int32)).reshape(*self.machinery.cores.shape[:2], -1)
            self.put(one, one.core, words.view(np.int8), 2 * self.cut.machine.outputs, "partial sums")
        return None if part < one.parts - 1 else quantised(sums, self.weights.shift)

    def write(self, one: Instruction, k: int, parts: int) -> None:
        machinery, machine, layer, cut = self.machinery, self.cut.machine, self.cut.layer, self.cut
        buffer = k % 2 if parts == 1 else 0
        machinery.drain(one, one.lock + buffer)
        at, tile = one.core + buffer * machine.outputs, (one.rows, cut.out_columns, one.channels)
        size = int(np.prod(tile))
        data = machinery.cores[:, :, at : at + size].reshape(machine.columns, machine.rows, *tile)
        row, start = self.position(one, k)
        row -= one.origin
        held, owner = machinery.views(layer.name, one.address[0])
        width, limit = held.shape[2], held.shape[3]
        machinery.check_inside(one, layer.name, one.address[0], np.arange(row, row + one.rows))
        for column, core in np.ndindex(machine.columns, machine.rows):
            to, first = (0, 0) if layer.is_global else (column, column * width)
            columns = min(width, cut.out_columns, layer.out_width - first)
            share = core * machine.columns + column if layer.is_global else core
            low = share * cut.row_channels + start
            high = min(low + one.channels, (share + 1) * cut.row_channels, limit)
            if low < high and columns > 0:
                place = to, slice(row, row + one.rows), slice(0, columns), slice(low, high)
                held[place] = data[column, core, :, :columns, : high - low]
                owner[place] = machinery.tags[layer.name]
        machinery.tally.volumes[one.layer, one.type] += cut.busy_rows * size
