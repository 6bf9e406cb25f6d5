"""Execution of instructions over the addresses of memory tiles.

Every byte of a memory tile has an owner: a row of a tensor, or a position in the records of a layer. Every action follows
from the fields of an instruction. Reading a byte of another owner or an unwritten byte is an error, as is a tensor beyond a
memory tile, or a tile or record larger than a buffer of a core. Computations decode the record of these positions,
multiply its kept blocks alone, and count their cycles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from .durations import PIXELS
from .instructions import Instruction
from .layers import round_up
from .operations import MaskedWeights, convolved, decoded, pooled, quantised
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
    """Memory tiles during an execution, the contents of all tensors, and their rows in DDR."""

    compiled: Compiled
    weights: Mapping[str, MaskedWeights]
    tensors: Tensors
    tally: MovedVolumes = attrs.field(factory=MovedVolumes)

    def __attrs_post_init__(self) -> None:
        self.shapes = self.compiled.schedule.shapes
        machine = self.machine = self.compiled.schedule.machine
        self.owner = np.zeros((machine.columns, machine.memtile), np.int32)
        """Owners of the bytes; 0: nothing."""
        sizes = [(name, shape[0]) for name, shape in self.shapes.items()]
        sizes += [(f"weights of {name}", own.stored.shape[1]) for name, own in self.weights.items()]
        starts = accumulate((size for _, size in sizes), initial=1)
        self.first = dict(zip((name for name, _ in sizes), starts, strict=False))
        """The owner of the first row or position."""
        self.stored = {name: np.zeros(shape[0], bool) for name, shape in self.tensors.shapes.items()}
        """By tensor, the rows in DDR."""
        self.held: Array = np.zeros((0, 0), np.int8)
        """(rows of cores, bytes) the records in the cores."""
        self.decoded = lru_cache(1)(lambda content, *about: decoded(content, machine, *about))
        self.numbers = {id(one): number for number, one in enumerate(self.compiled.instructions)}

    def broken(self, one: Instruction, text: str) -> BrokenSchedule:
        return BrokenSchedule(f"instructions[{self.numbers[id(one)]}], {one.type} of {one.layer}: {text}")

    def count(self, one: Instruction, amount: float) -> None:
        self.tally.amounts[self.numbers[id(one)]] += amount

    def check_room(self, one: Instruction, size: int, room: int) -> None:
        if size > room:
            raise self.broken(one, f"{size:,} bytes in a buffer of {room:,}")

    def run(self, group: Sequence[Instruction]) -> None:
        """The instructions of a group."""
        moves = {"LOAD": self.move, "WRITE": self.move, "LOADW": self.load_pass, "LOADWM": self.load_records}
        if group[-1].type != "WRITEFM":
            for one in group:
                moves[one.type](one)
            return
        *weights, load, compute, write = group
        for k in range(load.iterations):
            sums: Any = 0
            for part in range(load.parts):
                for one in weights:
                    self.load_records(one, part)
                inputs = self.load_inputs(load, k, part, -128 if compute.op == "maxpool" else 0)
                if compute.op == "conv":
                    sums = sums + self.products(compute, inputs, part == 0)
            self.write_outputs(write, k, self.outputs(compute, inputs, sums))

    # ---------------------------------------------------------------------------------------------------- memory tiles

    def shape(self, tensor: str) -> tuple[int, int, int, int]:
        """Rows, columns, columns per memory tile and channels of a tensor."""
        height, width, channels = self.shapes[tensor]
        return height, width, -(-width // self.machine.columns), round_up(channels, self.machine.grain)

    def region(self, one: Instruction, source: int, first: int, rows: int) -> tuple[Array, Array]:
        """(memory tiles, rows, columns, channels) owners of the bytes of rows of a tensor of an instruction, and the rows'
        own, (rows, 1, 1)."""
        tensor, address = one.tensor[source], one.address[source]
        _, _, width, channels = self.shape(tensor)
        start = address + (first - one.origin) * width * channels
        end = start + rows * width * channels
        if not 0 <= address <= start <= end <= self.machine.memtile:
            raise self.broken(one, f"{tensor} at 0x{address:05X} leaves the memory tile")
        self.tally.peak = max(self.tally.peak, end)
        own = self.first[tensor] + first + np.arange(rows, dtype=np.int32)[:, None, None]
        return self.owner[:, start:end].reshape(self.machine.columns, rows, width, channels), own

    def check_owner(self, one: Instruction, wrong: Array, what: str) -> None:
        """An error for (N,) owners of bytes that are `what`."""
        if wrong.size:
            names = ["nothing", *self.first]
            found = names[np.searchsorted([0, *self.first.values()], wrong[0], side="right") - 1]
            raise self.broken(one, f"reads {what} where {found} was written")

    def image(self, one: Instruction, source: int, first: int, rows: int, channels: slice = slice(None)) -> Array:
        """(rows, columns, channels) of a tensor of an instruction in the memory tiles."""
        tensor, (owner, own) = one.tensor[source], self.region(one, source, first, rows)
        whole = np.concatenate(list(owner[..., channels]), axis=1)[:, : self.shapes[tensor][1]]
        self.check_owner(one, whole[whole != own], tensor)
        return self.tensors[tensor][first : first + rows, :, channels]

    def move(self, one: Instruction) -> None:
        """LOAD and WRITE: rows of a tensor between DDR and the memory tiles."""
        (first, count), tensor = one.rows, one.tensor[0]
        part = self.compiled.schedule.slices.get(tensor)
        base, at = (part.tensor, part.first + first) if part else (tensor, first)
        there = self.stored[base][at : at + count]
        if one.type == "WRITE":
            self.image(one, 0, first, count)
            there[:] = True
        elif not there.all():
            raise self.broken(one, f"DDR has no rows {first} to {first + count} of {tensor}")
        else:
            owner, own = self.region(one, 0, first, count)
            owner[:] = own
        _, width, share, channels = self.shape(tensor)
        self.count(one, count * min(share, width) * channels)

    def load_pass(self, one: Instruction) -> None:
        """A pass of weights to every memory tile."""
        at, size, first = one.address[0], one.bytes[0], self.first[f"weights of {one.layer}"]
        self.check_room(one, at + size, self.machine.memtile)
        self.tally.peak = max(self.tally.peak, at + size)
        self.owner[:, at : at + size] = first + one.offset + np.arange(size)
        self.count(one, size)

    # ----------------------------------------------------------------------------------------------------------- cores

    def load_records(self, one: Instruction, part: int = 0) -> None:
        """A record for every row of cores."""
        machine, size, rows = self.machine, one.bytes[part], np.arange(self.machine.rows)
        at, tile = one.address[part] + rows // machine.columns * one.apart, (rows % machine.columns)[:, None]
        self.check_room(one, size, machine.weights)
        name, stored = f"weights of {one.layer}", self.weights[one.layer].stored
        owner = self.owner[tile, at[:, None] + np.arange(size)]
        places = owner - self.first[name]
        self.check_owner(one, owner[(places < 0) | (places >= stored.shape[1])], name)
        self.count(one, size)
        self.held = stored[tile, places]

    def position(self, one: Instruction, k: int) -> tuple[int, int]:
        """First row, and step through the channels, of iteration k."""
        step, at = divmod(k, one.iterations // one.steps)
        return min(one.rows[0] + at * one.rows[2], one.rows[3]), step

    def gather(self, one: Instruction, row: int, low: int, sources: Sequence[int], empty: int) -> Array:
        """(columns of cores, rows, columns, channels from `low` on) of the inputs, padding included."""
        (first, width, apart), (_, count, *_), rows = one.columns, one.channels, one.rows[1]
        height, image, *_ = self.shape(one.tensor[sources[0]])
        begin, end = min(max(row, 0), height), min(max(row + rows, 0), height)
        parts, done = [np.empty((end - begin, image, 0), np.int8)], 0
        for source in sources:
            channels = self.shape(one.tensor[source])[3]
            inside = slice(max(low - done, 0), max(min(low + count - done, channels), 0))
            if inside.start < inside.stop:
                parts.append(self.image(one, source, begin, end - begin, inside))
            done += channels
        whole = np.concatenate(parts, axis=2)
        above, left, last = min(max(-row, 0), rows), max(-first, 0), first + apart * (self.machine.columns - 1) + width
        sides = (above, rows - above - len(whole)), (left, max(last - image, 0)), (0, count - whole.shape[2])
        padded, starts = np.pad(whole, sides, constant_values=empty), range(self.machine.columns)
        return np.stack([padded[:, left + first + apart * n :][:, :width] for n in starts])

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
            for core, lane in np.ndindex(one.cores if between else 1, columns if lanes else 1):
                low = start + core * between + lane * lanes
                if low < limit or not (core or lane):
                    data = self.gather(one, row, low, sources, empty)
                    own = (lane if lanes else slice(None)), (core if between else slice(None)), place
                    held[own] = data[lane] if lanes else data if between else data[:, None]
        self.count(one, size * one.cores)
        return held

    def products(self, one: Instruction, inputs: Array, first: bool) -> Array:
        """(columns, rows of cores, rows, columns, channels) sums of a convolution over a part of the input channels, with the
        bias in the first part; equal records are decoded once."""
        machine, (rows, columns, channels) = self.machine, one.makes
        dense, bias, blocks = self.decoded(self.held.tobytes(), channels, one.reads[2], one.kernel, first)
        pixels = rows * columns
        self.tally.blocks += machine.columns * pixels * int(blocks.sum())
        words = math.prod(machine.block) * math.prod(one.kernel) * int(blocks.max())
        self.count(one, -(-pixels // PIXELS) * PIXELS * words / machine.macs)
        every = zip(dense, bias, strict=True)
        sums = [convolved(inputs[:, 0, 0], own, one.stride, (rows, columns)) + more for own, more in every]
        return np.stack(sums, axis=1)

    def outputs(self, one: Instruction, inputs: Array, sums: Any) -> Array:
        """int8 outputs of an iteration: of the sums of a convolution, or of the inputs of a pool or sum."""
        self.check_room(one, math.prod(one.makes), self.machine.outputs)
        if one.op == "conv":
            return quantised(sums, self.weights[one.layer].shift, one.relu)
        self.count(one, math.ceil(math.prod(one.reads) / self.machine.macs))
        return pooled(inputs, one.op, one.kernel, one.stride, one.makes, one.relu)

    def write_outputs(self, one: Instruction, k: int, data: Array) -> None:
        """The outputs of all cores to the memory tiles of their columns."""
        rows, width, channels = one.rows[1], one.columns[1], one.channels[1]
        (row, step), (first, count, between, lanes) = self.position(one, k), one.channels
        owner, own = self.region(one, 0, row, rows)
        _, image, share, limit = self.shape(one.tensor[0])
        for column, core in np.ndindex(self.machine.columns, one.cores):
            begin = one.columns[0] + column * one.columns[2]
            low = first + step * count + core * between + column * lanes
            wide, high = min(width, image - begin), min(low + count, limit)
            if low < high and wide > 0:
                to, local = divmod(begin, share)
                owner[to, :, local : local + wide, low:high] = own
                whole = self.tensors[one.tensor[0]][row : row + rows]
                whole[:, begin : begin + wide, low:high] = data[column, core, :, :wide, : high - low]
        self.count(one, rows * width * channels * one.cores)
