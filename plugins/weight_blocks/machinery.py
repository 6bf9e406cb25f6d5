"""Memory tiles of a mesh as arrays of bytes with their tensors, and the effects of instructions.

Every action follows from the fields of an instruction. Reading a stale or unwritten byte is an error, as is a tensor
beyond a memory tile, or a tile or record larger than a buffer of a core. Computations decode the record from the memory
tile, multiply its kept blocks alone, and count their cycles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from .durations import PIXELS
from .instructions import Instruction
from .layers import round_up
from .operations import MaskedWeights, RowWeights, pooled, quantised
from .schedule import Schedule
from .schedule_file import Compiled


class BrokenSchedule(SparseMapError):
    """A schedule beyond the abilities of the hardware."""


@attrs.define
class MovedVolumes:
    """Transfers and computations of an execution."""

    amounts: dict[int, float] = attrs.field(factory=lambda: defaultdict(float))
    """Bytes (of COMP cycles) by the place of the instruction, for the fullest memory tile, column or row of cores."""
    blocks: int = 0
    """Multiplied blocks times pixels."""
    peak: int = 0
    """The largest used address of a memory tile, plus one."""


class Tensors(dict[str, Array]):
    """(rows, columns, channels in whole blocks) int8 by name, initially zero; a slice views rows of its tensor."""

    def __init__(self, schedule: Schedule) -> None:
        self.shapes, self.slices, self.grain = dict(schedule.shapes), schedule.slices, schedule.machine.grain
        for name, part in self.slices.items():
            height = max(other.first + other.rows for other in self.slices.values() if other.tensor == part.tensor)
            self.shapes.setdefault(part.tensor, (height, *schedule.shapes[name][1:]))

    def __missing__(self, tensor: str) -> Array:
        if (part := self.slices.get(tensor)) is not None:
            return self[part.tensor][part.first : part.first + part.rows]
        height, width, channels = self.shapes[tensor]
        return self.setdefault(tensor, np.zeros((height, width, round_up(channels, self.grain)), np.int8))


@attrs.define(slots=False)
class Machinery:
    """DDR and the memory tiles during an execution."""

    compiled: Compiled
    weights: Mapping[str, MaskedWeights]
    ddr: Tensors
    tally: MovedVolumes = attrs.field(factory=MovedVolumes)

    def __attrs_post_init__(self) -> None:
        self.shapes = self.compiled.schedule.shapes
        machine = self.machine = self.compiled.schedule.machine
        self.tiles = np.zeros((machine.columns, machine.memtile), np.int8)
        self.owner = np.zeros((machine.columns, machine.memtile), np.int16)
        """Tags of the tensors of the bytes; 0: nothing."""
        self.names = ["nothing", "weights", *self.shapes]
        self.tags = {name: number for number, name in enumerate(self.names)}
        self.stored = {name: np.zeros(shape[0], bool) for name, shape in self.ddr.shapes.items()}
        """By tensor, the rows in DDR."""
        self.decoded: tuple[bytes, RowWeights] | None = None
        self.numbers = {id(one): number for number, one in enumerate(self.compiled.instructions)}

    def broken(self, one: Instruction, text: str) -> BrokenSchedule:
        return BrokenSchedule(f"instructions[{self.numbers[id(one)]}], {one.type} of {one.layer}: {text}")

    def count(self, one: Instruction, amount: float) -> None:
        self.tally.amounts[self.numbers[id(one)]] += amount

    def check_room(self, one: Instruction, size: int, room: int) -> None:
        if size > room:
            raise self.broken(one, f"{size:,} bytes in a buffer of {room:,}")

    # ---------------------------------------------------------------------------------------------------- memory tiles

    def shape(self, tensor: str) -> tuple[int, int, int, int]:
        """Rows, columns, columns per memory tile and channels of a tensor."""
        height, width, channels = self.shapes[tensor]
        return height, width, -(-width // self.machine.columns), round_up(channels, self.machine.grain)

    def views(self, one: Instruction, tensor: str, address: int, rows: Array) -> tuple[Array, Array]:
        """(memory tiles, rows, columns, channels) of a tensor with its first row at an address, and the owners of the bytes;
        `rows`, counted from the first row, must lie inside."""
        _, _, width, channels = self.shape(tensor)
        end = address + (int(rows.max(initial=-1)) + 1) * width * channels
        if address < 0 or rows.min(initial=0) < 0 or end > self.machine.memtile:
            raise self.broken(one, f"{tensor} at 0x{address:05X} leaves the memory tile")
        self.tally.peak = max(self.tally.peak, end)
        count = (self.machine.memtile - address) // (width * channels)
        shape = self.machine.columns, count, width, channels
        stop = address + count * width * channels
        return self.tiles[:, address:stop].reshape(shape), self.owner[:, address:stop].reshape(shape)

    def check_owner(self, one: Instruction, owners: Array, tensor: str) -> None:
        wrong = owners[owners != self.tags[tensor]]
        if wrong.size:
            raise self.broken(one, f"reads {tensor} where {self.names[wrong.flat[0]]} was written")

    def image(self, one: Instruction, tensor: str, first: int, rows: int) -> Array:
        """(rows, columns, channels) of a tensor in the memory tiles; `first` counts from the row at the address."""
        views = self.views(one, tensor, one.address[0], np.arange(first, first + rows))
        width = self.shape(tensor)[1]
        data, owner = (np.concatenate(list(view[:, first : first + rows]), axis=1)[:, :width] for view in views)
        self.check_owner(one, owner, tensor)
        return data

    def rows_of(self, one: Instruction) -> Array:
        """(rows,) bool of the rows of a LOAD or WRITE in DDR, as a view."""
        (first, count), tensor = one.rows, one.tensor[0]
        part = self.compiled.schedule.slices.get(tensor)
        base, at = (part.tensor, part.first) if part else (tensor, 0)
        return self.stored[base][at + first : at + first + count]

    def load(self, one: Instruction) -> None:
        (first, count), tensor = one.rows, one.tensor[0]
        if not self.rows_of(one).all():
            raise self.broken(one, f"DDR has no rows {first} to {first + count} of {tensor}")
        source, row = self.ddr[tensor][first : first + count], first - one.origin
        data, owner = self.views(one, tensor, one.address[0], np.arange(row, row + count))
        tiles, width = len(data), data.shape[2]
        padded = np.pad(source, ((0, 0), (0, tiles * width - source.shape[1]), (0, 0)))
        data[:, row : row + count] = padded.reshape(count, tiles, width, -1).transpose(1, 0, 2, 3)
        owner[:, row : row + count] = self.tags[tensor]
        self.count(one, source[:, :width].size)

    def write(self, one: Instruction) -> None:
        (first, count), tensor = one.rows, one.tensor[0]
        data = self.image(one, tensor, first - one.origin, count)
        self.ddr[tensor][first : first + count] = data
        self.rows_of(one)[:] = True
        self.count(one, data[:, : self.shape(tensor)[2]].size)

    def load_pass(self, one: Instruction) -> None:
        """A pass of weights to every memory tile."""
        at, size, stored = one.address[0], one.bytes[0], self.weights[one.layer].stored
        self.check_room(one, at + size, self.machine.memtile)
        self.tally.peak = max(self.tally.peak, at + size)
        self.tiles[:, at : at + size] = stored[:, one.offset : one.offset + size]
        self.owner[:, at : at + size] = self.tags["weights"]
        self.count(one, size)

    # ----------------------------------------------------------------------------------------------------------- cores

    def records(self, one: Instruction, part: int = 0) -> Array:
        """(rows of cores, bytes) a record for every row of cores."""
        machine, size, rows = self.machine, one.bytes[part], np.arange(self.machine.rows)
        at = one.address[part] + rows // machine.columns * one.apart
        self.check_room(one, size, machine.weights)
        index = (rows % machine.columns)[:, None], at[:, None] + np.arange(size)
        self.check_owner(one, self.owner[index], "weights")
        self.count(one, size)
        return self.tiles[index]

    def position(self, one: Instruction, k: int) -> tuple[int, int]:
        """First row, and step through the channels, of iteration k."""
        step, at = divmod(k, one.iterations // one.steps)
        return min(one.rows[0] + at * one.rows[2], one.rows[3]), step

    def gather(self, one: Instruction, row: int, low: int, sources: Sequence[int], empty: int) -> Array:
        """(columns of cores, rows, columns, channels from `low` on) of the inputs, padding included."""
        first, width, apart = one.columns
        height, image, share, _ = self.shape(one.tensor[sources[0]])
        columns, high = np.arange(self.machine.columns)[:, None], low + one.channels[1]
        at = first + columns * apart + np.arange(width)
        there = (at >= 0) & (at < image)
        inside = np.clip(at, 0, image - 1)
        tile, local = inside // share, inside % share
        found = np.full((self.machine.columns, one.rows[1], width, one.channels[1]), empty, np.int8)
        rows = np.arange(row, row + one.rows[1])
        kept = (rows >= 0) & (rows < height)
        rows, done = rows[kept] - one.origin, 0
        for source in sources:
            name, address = one.tensor[source], one.address[source]
            channels = self.shape(name)[3]
            begin, end = max(low, done), min(high, done + channels)
            if begin < end:
                index = tile[:, None, :], rows[None, :, None], local[:, None, :], slice(begin - done, end - done)
                data, owner = (view[index] for view in self.views(one, name, address, rows))
                seen = np.broadcast_to(there[:, None, :], data.shape[:3])
                self.check_owner(one, owner[seen], name)
                found[:, kept, :, begin - low : end - low] = np.where(seen[..., None], data, empty)
            done += channels
        return found

    def load_inputs(self, one: Instruction, k: int, part: int, empty: int) -> Array:
        """(columns, rows of cores, operands, rows, columns, channels) inputs, broadcast down a column or of own channels."""
        row, step = self.position(one, k)
        first, count, between, lanes = one.channels
        columns, start = self.machine.columns, first + (step + part) * count
        operands = [[n] for n in range(len(one.tensor))] if one.operands > 1 else [list(range(len(one.tensor)))]
        size = one.operands * one.rows[1] * one.columns[1] * count
        self.check_room(one, size, self.machine.inputs)
        shape = columns, self.machine.rows, len(operands), one.rows[1], one.columns[1], count
        held = np.zeros(shape, np.int8)
        limit = sum(self.shape(one.tensor[n])[3] for n in operands[0])
        for place, sources in enumerate(operands):
            for core in range(one.cores if between else 1):
                for lane in range(columns if lanes else 1):
                    low = start + core * between + lane * lanes
                    if low < limit or not (core or lane):
                        data = self.gather(one, row, low, sources, empty)
                        own = (lane if lanes else slice(None)), (core if between else slice(None)), place
                        held[own] = data[lane] if lanes else data if between else data[:, None]
        self.count(one, size * one.cores)
        return held

    def products(self, one: Instruction, inputs: Array, records: Array, bias: bool) -> Array:
        """Sums of a convolution over a part of the input channels; equal records are decoded once."""
        machine, (rows, columns, channels) = self.machine, one.makes
        kernel = one.kernel[0], one.kernel[1]
        content = repr((kernel, channels, one.reads[2], bias)).encode() + records.tobytes()
        if self.decoded is None or self.decoded[0] != content:
            self.decoded = content, RowWeights.of(records, channels, one.reads[2], kernel, bias, machine)
        weights, pixels = self.decoded[1], rows * columns
        self.tally.blocks += machine.columns * pixels * int(weights.blocks.sum())
        words = math.prod(machine.block) * math.prod(kernel) * int(weights.blocks.max())
        self.count(one, -(-pixels // PIXELS) * PIXELS * words / machine.macs)
        return weights.products(inputs[:, 0, 0], one.stride, (rows, columns))

    def outputs(self, one: Instruction, inputs: Array, sums: Array | None) -> Array:
        """int8 outputs of an iteration: of the sums of a convolution, or of the inputs of a pool or sum."""
        self.check_room(one, math.prod(one.makes), self.machine.outputs)
        if sums is not None:
            return quantised(sums, self.weights[one.layer].shift, one.relu)
        self.count(one, math.ceil(math.prod(one.reads) / self.machine.macs))
        tile, kernel = (one.makes[0], one.makes[1], one.makes[2]), (one.kernel[0], one.kernel[1])
        return pooled(inputs, one.op, kernel, one.stride, tile, one.relu)

    def write_outputs(self, one: Instruction, k: int, data: Array) -> None:
        """The outputs of all cores to the memory tiles of their columns."""
        tensor, tile = one.tensor[0], (one.rows[1], one.columns[1], one.channels[1])
        (row, step), (first, count, between, lanes) = self.position(one, k), one.channels
        row -= one.origin
        held, owner = self.views(one, tensor, one.address[0], np.arange(row, row + tile[0]))
        _, image, share, limit = self.shape(tensor)
        for column, core in np.ndindex(self.machine.columns, one.cores):
            begin = one.columns[0] + column * one.columns[2]
            low = first + step * count + core * between + column * lanes
            width, high = min(tile[1], image - begin), min(low + count, limit)
            if low < high and width > 0:
                to, local = divmod(begin, share)
                place = to, slice(row, row + tile[0]), slice(local, local + width), slice(low, high)
                held[place] = data[column, core, :, :width, : high - low]
                owner[place] = self.tags[tensor]
        self.count(one, math.prod(tile) * one.cores)
