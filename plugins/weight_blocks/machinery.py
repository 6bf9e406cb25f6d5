"""The memories of a mesh while a schedule runs: arrays of bytes that know which tensor wrote each of them."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from .instructions import Instruction
from .layers import BLOCK
from .schedule_file import Compiled


class Broken(SparseMapError):
    """A schedule that hardware could not execute as it stands."""


@attrs.define
class Tally:
    """What was moved and computed, by layer."""

    volumes: dict[str, Counter[str]] = attrs.field(factory=dict)
    """Bytes by kind of step, of the memory tile, column or row of cores that moves most."""
    blocks: int = 0
    """Blocks times pixels that were multiplied."""
    records: Counter[tuple[str, int, int]] = attrs.field(factory=Counter)
    """Reads of each record, by layer, chunk and part."""
    peak: int = 0
    """The largest address in a memory tile that was written, plus one."""
    reach: int = 0
    """How many columns away from its own a core read inputs at most."""

    def add(self, layer: str, step: str, volume: int) -> None:
        self.volumes.setdefault(layer, Counter())[step] += volume


@attrs.define(slots=False)
class Machinery:
    """The memories while a schedule runs."""

    compiled: Compiled
    seed: int = 0
    tally: Tally = attrs.field(factory=Tally)

    def __attrs_post_init__(self) -> None:
        machine = self.compiled.machine
        self.tiles = np.zeros((machine.columns, machine.memtile), np.int8)
        self.owner = np.zeros((machine.columns, machine.memtile), np.int16)
        self.cores = np.zeros((machine.columns, machine.rows, machine.core), np.int8)
        self.ddr: dict[str, Array] = {}
        self.tags = {name: number for number, name in enumerate(self.compiled.shapes, 1)}
        self.full = [False] * 4
        """By lock: whether the buffer that it guards holds something."""

    @cached_property
    def shapes(self) -> dict[str, tuple[int, int, int]]:
        """Of all tensors, those that slices are of included."""
        found = dict(self.compiled.shapes)
        for name, part in self.compiled.slices.items():
            _, width, channels = self.compiled.shapes[name]
            height = max(p.first + p.rows for p in self.compiled.slices.values() if p.tensor == part.tensor)
            found.setdefault(part.tensor, (height, width, channels))
        return found

    @cached_property
    def columns(self) -> int:
        return self.compiled.machine.columns

    def row_bytes(self, tensor: str) -> int:
        _, width, channels = self.compiled.shapes[tensor]
        return -(-width // self.columns) * (-(-channels // BLOCK) * BLOCK)

    def view(self, memory: Array, tensor: str, address: int) -> Array:
        """(memory tiles, rows, columns, channels) of a tensor whose first row is at an address."""
        _, width, channels = self.compiled.shapes[tensor]
        size = self.row_bytes(tensor)
        rows = (memory.shape[1] - address) // size
        shape = self.columns, rows, -(-width // self.columns), -(-channels // BLOCK) * BLOCK
        return memory[:, address : address + rows * size].reshape(shape)

    def whole(self, tensor: str) -> Array:
        """A tensor in DDR; made at its first use. A slice is the rows of the tensor that it is of."""
        if (part := self.compiled.slices.get(tensor)) is not None:
            return self.whole(part.tensor)[part.first : part.first + part.rows]
        if tensor not in self.ddr:
            height, width, channels = self.shapes[tensor]
            self.ddr[tensor] = np.zeros((height, width, -(-channels // BLOCK) * BLOCK), np.int8)
        return self.ddr[tensor]

    # -------------------------------------------------------------------------------------------- between DDR and tiles

    def load(self, one: Instruction) -> None:
        source = self.whole(one.tensor)[one.row : one.row + one.rows]
        data, owner = (self.view(memory, one.tensor, one.address[0]) for memory in (self.tiles, self.owner))
        self.check_end(one, one.address[0] + one.rows * self.row_bytes(one.tensor))
        width = data.shape[2]
        for tile in range(self.columns):
            part = source[:, tile * width : (tile + 1) * width]
            data[tile, : one.rows, : part.shape[1]] = part
            owner[tile, : one.rows, : part.shape[1]] = self.tags[one.tensor]
        self.tally.add(one.layer, one.type, source[:, :width].size)

    def write(self, one: Instruction) -> None:
        data, owner = (self.view(memory, one.tensor, one.address[0]) for memory in (self.tiles, self.owner))
        width = data.shape[2]
        rows = one.rows or self.compiled.shapes[one.tensor][0]
        target = self.whole(one.tensor)[one.row : one.row + rows]
        first = one.row - one.origin
        self.check_rows(one, one.tensor, one.address[0], np.arange(first, first + rows))
        for tile in range(self.columns):
            part = target[:, tile * width : (tile + 1) * width]
            held = slice(first, first + rows), slice(0, part.shape[1])
            self.check_owner(one, owner[tile][held], one.tensor)
            part[...] = data[tile][held]
        self.tally.add(one.layer, one.type, target[:, :width].size)

    def load_weights(self, one: Instruction, stored: list[Array], offset: int) -> int:
        """Copies the next bytes of the weights of every memory tile; returns where they end."""
        size, at = one.bytes[0], one.address[0]
        self.check_end(one, at + size)
        for tile, own in enumerate(stored):
            part = own[offset : offset + size]
            self.tiles[tile, at : at + len(part)] = part
            self.owner[tile, at : at + len(part)] = -1
        self.tally.add(one.layer, one.type, len(stored[0][offset : offset + size]))
        return offset + size

    def check_end(self, one: Instruction, end: int) -> None:
        if end > self.compiled.machine.memtile or one.address[0] < 0:
            raise Broken(f"{one.layer}: {one.type} of {one.tensor} ends at {end}, beyond the memory tile")
        self.tally.peak = max(self.tally.peak, end)

    def check_rows(self, one: Instruction, tensor: str, address: int, rows: Array) -> None:
        """Raises Broken unless rows, counted from the one at an address, lie in a memory tile."""
        size = self.row_bytes(tensor)
        ends = address + (rows.max(initial=-1) + 1) * size
        if address < 0 or rows.min(initial=0) < 0 or ends > self.compiled.machine.memtile:
            raise Broken(f"{one.layer}: {one.type} of {tensor} at 0x{address:05X} leaves the memory tile")

    def check_owner(self, one: Instruction, owners: Array, tensor: str) -> None:
        if (owners != self.tags[tensor]).any():
            found = owners[owners != self.tags[tensor]].ravel()[0]
            names = {number: name for name, number in self.tags.items()}
            what = names.get(int(found), "weights") if found else "nothing"
            raise Broken(f"{one.layer}: {one.type} reads {tensor} where {what} was written")

    # ---------------------------------------------------------------------------------------------------------- locks

    def fill(self, one: Instruction, lock: int) -> None:
        if self.full[lock]:
            raise Broken(f"{one.layer}: {one.type} fills a buffer (lock {lock}) that is not empty")
        self.full[lock] = True

    def drain(self, one: Instruction, lock: int) -> None:
        if not self.full[lock]:
            raise Broken(f"{one.layer}: {one.type} reads a buffer (lock {lock}) that is not full")
        self.full[lock] = False
