"""Sub-volumes: the work of a core at a time, and the rules for its choice.

The columns of the image are split over the columns of cores, the output channels over their rows. A core then takes a
chunk of weights (`co` output by `ci` input channels) and goes down the image in steps of `rows` output rows. A memory
tile without room for a layer takes `tiles` of rows, and the weights in `passes` over the output channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import product
from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .layers import MeshLayer, channel_divisors, round_up
from .machine import CoreMesh
from .record import ChunkProfile, record_bytes

MOST_TILES = 64
WIDTH = 8
"""Unit of columns in the paper's tiles."""
PASSES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


@attrs.frozen(eq=False, slots=False)
class Splits:
    """The sub-volume of a layer, or (B,) sub-volumes: channels of a chunk, output rows, tiles of rows, passes."""

    co: Any
    ci: Any
    rows: Any
    tiles: Any = 1
    passes: Any = 1

    @cached_property
    def pairs(self) -> tuple[list[tuple[int, int]], Array]:
        """The distinct pairs of channels of a chunk, and the pair of each sub-volume, (B,) flat."""
        co, ci = (np.asarray(part, np.int64).reshape(-1) for part in np.broadcast_arrays(self.co, self.ci))
        codes, inverse = np.unique(co << 32 | ci, return_inverse=True)
        return [(code >> 32, code & 0xFFFFFFFF) for code in codes.tolist()], inverse.reshape(-1)


def by_pair(splits: Splits, value: Callable[[int, int], float]) -> Any:
    """A function of the channels of a chunk, in the shape of the sub-volumes."""
    pairs, inverse = splits.pairs
    return np.array([value(*pair) for pair in pairs])[inverse].reshape(np.shape(splits.co))


@attrs.frozen(eq=False, slots=False)
class Cut:
    """A layer divided over the cores of a machine."""

    layer: MeshLayer
    machine: CoreMesh

    @property
    def convolves(self) -> bool:
        return self.layer.op == "conv"

    @property
    def operands(self) -> int:
        return 2 if self.layer.op == "add" else 1

    @cached_property
    def out_columns(self) -> int:
        """Columns of the output per core."""
        width, columns = self.layer.out_width, self.machine.columns
        return width if width < columns and self.machine.listed else -(-width // columns)

    @cached_property
    def in_columns(self) -> int:
        """Columns of the input for a core, halo included."""
        return (self.out_columns - 1) * self.layer.stride + self.layer.kernel[1]

    @cached_property
    def row_channels(self) -> int:
        """Output channels per row of cores, in whole blocks; for a global average, per core."""
        alone = not self.convolves and self.machine.listed
        shares = (1 if alone else self.machine.rows) * (self.machine.columns if self.layer.is_global else 1)
        return round_up(-(-self.layer.out_channels // shares), self.layer.grain)

    @property
    def busy_rows(self) -> int:
        """Rows of cores with output channels."""
        shares = -(-self.layer.padded_out_channels // self.row_channels)
        return min(self.machine.rows, -(-shares // self.machine.columns) if self.layer.is_global else shares)

    @property
    def channels(self) -> int:
        return self.layer.padded_channels

    def in_rows(self, rows: Any) -> Any:
        """Rows of the input for rows of the output."""
        return (rows - 1) * self.layer.stride + self.layer.kernel[0]

    def parts(self, ci: Any) -> Any:
        """Number of parts of the input channels."""
        return -(-self.channels // ci) if self.convolves else 1

    def chunk_bytes(self, co: int, ci: int) -> float:
        """Bytes of a record by the paper's formula, with the layer's density as the kept share of every chunk."""
        outs, ins = self.layer.block
        kept = self.layer.density * (co // outs) * (ci // ins)
        return record_bytes(co, ci, kept, self.layer.taps, self.machine.index, block=self.layer.block)

    @cached_property
    def profile(self) -> Callable[[int, int], ChunkProfile]:
        """Kept blocks of chunks by output and input channels; remembered."""
        rows, index = self.machine.rows, self.machine.index
        return cache(lambda co, ci: ChunkProfile.of(self.layer, rows, self.row_channels, co, ci, index))

    # ------------------------------------------------------------------------------------------------- the paper's rule

    def rule(self) -> Splits:
        """The largest sub-volume with room, the choice of the paper's compiler; tiles and passes are the memory's."""
        layer, machine = self.layer, self.machine
        if self.convolves:
            rows = machine.outputs // (round_up(self.out_columns, WIDTH) * layer.stride * self.charged_channels)
            return Splits(*self._rule_of_weights(), min(layer.out_height, max(1, rows), self.input_tile[2]))
        if layer.is_global:
            channels = min(256, self.row_channels)
            return Splits(channels, channels, layer.out_height)
        limit = machine.outputs if layer.op == "add" else 2 * machine.inputs
        for channels in channel_divisors(self.row_channels, self.layer.grain):
            if rows := self._most_rows(channels, limit):
                return Splits(channels, channels, min(rows, layer.out_height))
        return Splits(self.layer.grain, self.layer.grain, 1)

    def _rule_of_weights(self) -> tuple[int, int]:
        candidates = channel_divisors(self.row_channels, self.layer.grain)
        if self.layer.out_channels % self.row_channels:
            candidates = [self.row_channels]
            while candidates[-1] % (2 * self.layer.grain) == 0:
                candidates.append(candidates[-1] // 2)
        least = candidates[-1]
        parts = channel_divisors(self.channels, self.layer.grain)
        pairs = [*((co, self.channels) for co in candidates), *((least, ci) for ci in parts)]
        fits = (pair for pair in pairs if self.chunk_bytes(*pair) <= self.machine.weights)
        return next(fits, (least, self.layer.grain))

    @cached_property
    def charged_channels(self) -> int:
        """The output channels in an output buffer by the rule."""
        width = round_up(self.out_columns, WIDTH) * self.layer.stride
        charged = channel_divisors(self.layer.padded_out_channels, self.layer.grain)
        return next((c for c in charged if width * c <= self.machine.outputs), self.layer.grain)

    @cached_property
    def input_tile(self) -> tuple[int, int, int]:
        """Columns and channels of the input for a core, and the output rows that follow."""
        layer, channels = self.layer, self.channels
        charged = 16 if channels == WIDTH else 0  # the first layer's three channels are charged as sixteen
        split = self.out_columns < layer.out_width or self.machine.columns == 1
        without_halo = -(-layer.width // self.machine.columns) if split else layer.width
        strided = layer.kernel == (1, 1) and layer.stride > 1 and self.charged_channels < layer.padded_out_channels
        first = without_halo if strided else self.in_columns
        fewer = ((without_halo, c) for c in channel_divisors(channels, self.layer.grain))
        for width, count in [(first, channels), *fewer]:
            held = self.machine.inputs // (round_up(width, WIDTH) * (charged or count))
            rows = -(-(held - layer.kernel[0]) // layer.stride) + 1
            if held and rows >= 1:
                return width, count, rows
        return without_halo, self.layer.grain, 1

    def _most_rows(self, channels: int, limit: int) -> int:
        """Output rows with room for their inputs of so many channels."""
        held = limit // (self.in_columns * channels)
        kernel = self.layer.kernel[0]
        return (held - kernel) // self.layer.stride + 1 if held >= kernel else 0

    # ---------------------------------------------------------------------------------------------------- sound choices

    @cached_property
    def chunk_choices(self) -> list[int]:
        """Output channels of a chunk, ascending."""
        grain = self.layer.grain
        return list(range(grain, self.row_channels + 1, grain))

    @cached_property
    def part_choices(self) -> list[int]:
        """Input channels of a chunk, ascending; operations without weights take the output's."""
        return channel_divisors(self.channels, self.layer.grain)[::-1] if self.convolves else [self.channels]

    def candidates(self, tile_rows: int) -> Splits:
        """(B,) all sub-volumes with room in a core's buffers, for tiles of so many output rows."""
        pairs = product(self.chunk_choices, self.part_choices)
        every = [(*pair, rows) for pair in pairs for rows in self.row_choices(*pair, tile_rows)]
        found = Splits(*np.array(every, np.int64).reshape(-1, 3).T)
        keep = ~np.logical_or.reduce(list(self.overflows(found).values()))
        return Splits(found.co[keep], found.ci[keep], found.rows[keep])

    def row_choices(self, co: int, ci: int, tile_rows: int) -> Sequence[int]:
        """Steps in rows, up to the room of the buffers of inputs and outputs."""
        machine = self.machine
        most = self._most_rows(ci if self.convolves else co, machine.inputs // self.operands)
        steps = range(1, min(most, machine.outputs // (self.out_columns * co), tile_rows) + 1)
        if self.layer.op == "add":  # its output takes the place of an operand, so no row may be done twice
            return [rows for rows in steps if tile_rows % rows == 0]
        return steps

    def overflows(self, splits: Splits) -> dict[str, Any]:
        """(B,) bool by buffer: sub-volumes too large for a core."""
        machine, channels = self.machine, splits.ci if self.convolves else splits.co * self.operands
        outputs = splits.rows * self.out_columns * splits.co
        inputs = self.in_rows(splits.rows) * self.in_columns * channels
        found = {"core-input": inputs > machine.inputs, "core-output": outputs > machine.outputs}
        if self.convolves:
            held = by_pair(splits, lambda co, ci: float(self.profile(co, ci).bytes.max()))
            found["core-weights"] = held > machine.weights
            found["partial-sums"] = (splits.ci < self.channels) & (4 * outputs > 2 * machine.outputs)
        return found
