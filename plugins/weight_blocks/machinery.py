"""The memories of a mesh and what instructions do to them: arrays of bytes that know which tensor wrote each of them.

All that an instruction does follows from its own fields. A stale or unwritten byte that is read is an error, and so is a
write beyond a buffer or into one that is in use. Computations decode the record that lies in the core's memory at that
time, multiply its kept blocks alone, and count their cycles.
"""

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
from .operations import KeptBlocks, MaskedWeights, compute, pooled, quantised
from .record import unpack
from .schedule import Schedule
from .schedule_file import Compiled


class BrokenSchedule(SparseMapError):
    """A schedule that hardware could not execute as it stands."""


@attrs.define
class MovedVolumes:
    """What was moved and computed."""

    volumes: dict[tuple[str, str], float] = attrs.field(factory=lambda: defaultdict(float))
    """Bytes (of COMP cycles) by layer and kind of step, of the memory tile, column or row of cores that has most."""
    amounts: dict[int, float] = attrs.field(factory=lambda: defaultdict(float))
    """The same by the place of the instruction."""
    blocks: int = 0
    """Blocks times pixels that were multiplied."""
    peak: int = 0
    """The largest address in a memory tile that was used, plus one."""


class Tensors(dict[str, Array]):
    """(rows, columns, channels in whole blocks) int8 by name, zero before the first use; a slice is the rows of its tensor."""

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
    """The memories while a schedule runs."""

    compiled: Compiled
    weights: Mapping[str, MaskedWeights]
    ddr: Tensors
    tally: MovedVolumes = attrs.field(factory=MovedVolumes)

    def __attrs_post_init__(self) -> None:
        self.shapes = self.compiled.schedule.shapes
        machine = self.machine = self.compiled.schedule.machine
        self.tiles = np.zeros((machine.columns, machine.memtile), np.int8)
        self.owner = np.zeros((machine.columns, machine.memtile), np.int16)
        """The tags of what wrote the bytes; 0: nothing."""
        self.cores = np.zeros((machine.columns, machine.rows, machine.core), np.int8)
        self.names = ["nothing", "weights", *self.shapes]
        self.tags = {name: number for number, name in enumerate(self.names)}
        self.stored = {name: np.zeros(shape[0], bool) for name, shape in self.ddr.shapes.items()}
        """By tensor, which rows DDR has."""
        self.used: dict[int | str, tuple[int, int]] = {}
        """Bytes of a core that hold something: by lock, `weights`, `partial sums`."""
        self.decoded: tuple[bytes, KeptBlocks] | None = None
        self.numbers = {id(one): number for number, one in enumerate(self.compiled.instructions)}

    def broken(self, one: Instruction, text: str) -> BrokenSchedule:
        """The error for an instruction."""
        return BrokenSchedule(f"instructions[{self.numbers[id(one)]}], {one.type} of {one.layer}: {text}")

    def count(self, one: Instruction, amount: float) -> None:
        self.tally.volumes[one.layer, one.type] += amount
        self.tally.amounts[self.numbers[id(one)]] += amount

    # ---------------------------------------------------------------------------------------------------- memory tiles

    def shape(self, tensor: str) -> tuple[int, int, int, int]:
        """Rows, columns, columns per memory tile and channels of a tensor."""
        height, width, channels = self.shapes[tensor]
        return height, width, -(-width // self.machine.columns), round_up(channels, self.machine.grain)

    def views(self, one: Instruction, tensor: str, address: int, rows: Array) -> tuple[Array, Array]:
        """(memory tiles, rows, columns, channels) of a tensor whose first row is at an address, and what wrote them; for
        rows that are counted from it, which have to lie inside."""
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
        """(rows, columns, channels) of a tensor that memory tiles hold, from a row on that is counted from its address."""
        views = self.views(one, tensor, one.address[0], np.arange(first, first + rows))
        width = self.shape(tensor)[1]
        data, owner = (np.concatenate(list(view[:, first : first + rows]), axis=1)[:, :width] for view in views)
        self.check_owner(one, owner, tensor)
        return data

    def rows_of(self, one: Instruction) -> Array:
        """Rows of a LOAD or WRITE that DDR stores, as a view."""
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
        if at + size > self.machine.memtile:
            raise self.broken(one, f"weights at 0x{at:05X} leave the memory tile")
        self.tally.peak = max(self.tally.peak, at + size)
        self.tiles[:, at : at + size] = stored[:, one.offset : one.offset + size]
        self.owner[:, at : at + size] = self.tags["weights"]
        self.count(one, size)

    # ----------------------------------------------------------------------------------------------------------- cores

    def fill(self, one: Instruction, key: int | str, start: int, size: int, room: int) -> None:
        """Takes bytes of a core, which nothing else may use, for what a lock guards."""
        if size > room or start < 0 or start + size > self.machine.core:
            raise self.broken(one, f"{size:,} bytes at 0x{start:04X} in a buffer of {room:,}")
        for other, (begin, end) in self.used.items():
            if other == key and isinstance(key, int):
                raise self.broken(one, f"fills a buffer (lock {key}) that is not empty")
            if other != key and begin < start + size and start < end:
                raise self.broken(one, f"overwrites a buffer in use ({other}) at 0x{start:04X}")
        self.used[key] = start, start + size

    def drain(self, one: Instruction, lock: int, start: int, size: int) -> None:
        """Gives bytes of a core free, which have to be all that a lock guards."""
        found = self.used.pop(lock, None)
        if found is None:
            raise self.broken(one, f"reads a buffer (lock {lock}) that is not full")
        if found != (start, start + size):
            guarded = f"lock {lock} guards {found[1] - found[0]:,} at 0x{found[0]:04X}"
            raise self.broken(one, f"reads {size:,} bytes at 0x{start:04X}, {guarded}")

    def load_records(self, one: Instruction, part: int = 0) -> None:
        """A record to every row of cores, broadcast to its columns."""
        machine, size = self.machine, one.bytes[part]
        rows = np.arange(machine.rows)
        at = one.address[part] + rows // machine.columns * one.apart
        self.fill(one, "weights", one.core[0], size, machine.weights)
        index = (rows % machine.columns)[:, None], at[:, None] + np.arange(size)
        self.check_owner(one, self.owner[index], "weights")
        self.cores[:, :, one.core[0] : one.core[0] + size] = self.tiles[index][None]
        self.count(one, size)

    def position(self, one: Instruction, k: int) -> tuple[int, int]:
        """First row, and step through the channels, of iteration k."""
        step, at = divmod(k, one.iterations // one.steps)
        return min(one.rows[0] + at * one.rows[2], one.rows[3]), step

    def gather(self, one: Instruction, row: int, low: int, sources: Sequence[int], empty: int) -> Array:
        """(columns of cores, rows, columns, channels from `low` on) of the inputs; what is outside is padding."""
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

    def load_inputs(self, one: Instruction, k: int, part: int, empty: int) -> None:
        """A tile of the inputs to every column of cores, or to every core one of its own channels."""
        row, step = self.position(one, k)
        first, count, between, lanes = one.channels
        columns, start = self.machine.columns, first + (step + part) * count
        operands = [[n] for n in range(len(one.tensor))] if one.operands > 1 else [list(range(len(one.tensor)))]
        size = one.operands * one.rows[1] * one.columns[1] * count
        turn = (k * one.parts + part) % len(one.core)
        self.fill(one, one.lock[turn], one.core[turn], size, self.machine.inputs)
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
        self.cores[:, :, one.core[turn] : one.core[turn] + size] = held.reshape(*held.shape[:2], -1)
        self.count(one, size * one.cores)

    def blocks(self, one: Instruction, bias: bool) -> KeptBlocks:
        """The record that lies in the cores, decoded anew where it is another one."""
        start, end = self.used.get("weights", (0, 0))
        if start != one.weights or start == end:
            raise self.broken(one, f"reads weights at 0x{max(0, one.weights):04X}, where there are none")
        held, kernel = self.cores[0, :, start:end], (one.kernel[0], one.kernel[1])
        content = repr((kernel, one.makes[2], one.reads[2], bias)).encode() + held.tobytes()
        if self.decoded is None or self.decoded[0] != content:
            shape, machine = (one.makes[2], one.reads[2], kernel), self.machine
            try:
                rows = [unpack(record, *shape, machine.index, bias, machine.block) for record in held]
            except ValueError as error:
                raise self.broken(one, str(error)) from None
            self.decoded = content, KeptBlocks.of(rows)
        return self.decoded[1]

    def compute(self, one: Instruction, k: int, part: int) -> None:
        """The outputs of an iteration from what the buffers hold."""
        machine, operands = self.machine, 2 if one.op == "add" else 1
        turn, way = (k * one.parts + part) % len(one.core), k % len(one.out)
        start, size = one.core[turn], operands * math.prod(one.reads)
        self.drain(one, one.lock[turn], start, size)
        inputs = self.cores[:, :, start : start + size]
        tile, kernel = (one.makes[0], one.makes[1], one.makes[2]), (one.kernel[0], one.kernel[1])
        cycles: float = math.ceil(math.prod(one.reads) / machine.macs)
        if one.op == "conv":
            blocks, (outs, ins) = self.blocks(one, part == 0), machine.block
            image = inputs[:, 0].reshape(machine.columns, *one.reads)
            sums = compute(image, blocks, kernel, one.stride, tile, machine.block)
            pixels = tile[0] * tile[1]
            self.tally.blocks += machine.columns * pixels * len(blocks.values)
            most = int(blocks.kept.sum(axis=(1, 2)).max())
            cycles = -(-pixels // PIXELS) * math.prod(kernel) * most * PIXELS * outs * ins / machine.macs
            made = self._accumulated(one, sums, part, way)
        else:
            split = inputs.reshape(*inputs.shape[:2], operands, *one.reads)
            made = pooled(split, one.op, kernel, one.stride, tile, one.relu)
        self.count(one, cycles)
        if made is not None:
            flat, to = made.reshape(machine.columns, machine.rows, -1), one.out[way]
            self.fill(one, one.out_lock[way], to, flat.shape[2], machine.outputs)
            self.cores[:, :, to : to + flat.shape[2]] = flat

    def _accumulated(self, one: Instruction, sums: Array, part: int, way: int) -> Array | None:
        """int8 outputs after the last part; partial sums stay in both output buffers as int32."""
        at, size = one.out[way], 4 * math.prod(one.makes)
        if one.parts > 1:
            self.fill(one, "partial sums", at, size, 2 * self.machine.outputs)
            held = self.cores[:, :, at : at + size]
            if part:
                sums = sums + held.copy().view(np.int32).reshape(sums.shape)
            words = np.ascontiguousarray(sums.astype(np.int32)).reshape(*held.shape[:2], -1)
            held[...] = words.view(np.int8)
        if part < one.parts - 1:
            return None
        self.used.pop("partial sums", None)
        return quantised(sums, self.weights[one.layer].shift, one.relu)

    def write_outputs(self, one: Instruction, k: int) -> None:
        """The outputs of all cores to the memory tiles that have their columns."""
        turn, tensor = k % len(one.core), one.tensor[0]
        tile = one.rows[1], one.columns[1], one.channels[1]
        size, at = math.prod(tile), one.core[turn]
        self.drain(one, one.lock[turn], at, size)
        data = self.cores[:, :, at : at + size].reshape(self.machine.columns, self.machine.rows, *tile)
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
        self.count(one, size * one.cores)
