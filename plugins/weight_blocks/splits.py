"""Sub-volumes: what of a layer a core works on at a time, and the rules that choose it.

The columns of the image are split over the columns of cores, the output channels over their rows. A core then takes a
chunk of weights (`co` output by `ci` input channels) and goes down the image in steps of `rows` output rows. A memory
tile that cannot hold a layer takes it in `tiles` of rows, and its weights in `passes` over the output channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .layers import BLOCK, Layer, channel_divisors, round_up
from .machine import Machine
from .record import ChunkProfile, record_bytes

MOST_TILES = 64
PASSES = (1, 2, 4, 8, 16)


@attrs.frozen(eq=False, slots=False)
class Splits:
    """The sub-volume of a layer, or (B,) of them: channels of a chunk, output rows, tiles of rows, passes."""

    co: Any
    ci: Any
    rows: Any
    tiles: Any = 1
    passes: Any = 1

    @cached_property
    def pairs(self) -> tuple[list[tuple[int, int]], Array]:
        """The distinct pairs of channels of a chunk, and which of them each sub-volume has, (B,) flat."""
        co, ci = (np.asarray(part, np.int64).reshape(-1) for part in np.broadcast_arrays(self.co, self.ci))
        codes, inverse = np.unique(co << 32 | ci, return_inverse=True)
        return [(code >> 32, code & 0xFFFFFFFF) for code in codes.tolist()], inverse.reshape(-1)


def by_pair(splits: Splits, value: Callable[[int, int], float]) -> Any:
    """A value that depends on the channels of a chunk alone, in the shape of the sub-volumes."""
    pairs, inverse = splits.pairs
    return np.array([value(*pair) for pair in pairs])[inverse].reshape(np.shape(splits.co))


@attrs.frozen(eq=False, slots=False)
class Cut:
    """A layer on a machine: what its division over the cores gives, under some quirks."""

    layer: Layer
    machine: Machine
    """With the rates that the quirks ask for."""
    quirks: frozenset[str] = frozenset()
    index: str = "u16"

    @property
    def taps(self) -> int:
        return self.layer.kernel[0] * self.layer.kernel[1]

    @property
    def operands(self) -> int:
        return 2 if self.layer.op == "add" else 1

    @cached_property
    def out_columns(self) -> int:
        """Columns of the output per core."""
        width, columns = self.layer.out_width, self.machine.columns
        if width < columns and "narrow-images" in self.quirks:
            return width
        return -(-width // columns)

    @cached_property
    def in_columns(self) -> int:
        """Columns of the input that a core reads, halo included."""
        return (self.out_columns - 1) * self.layer.stride + self.layer.kernel[1]

    @cached_property
    def row_channels(self) -> int:
        """Output channels per row of cores, in whole blocks; of a global average, per core."""
        alone = self.layer.op != "conv" and "one-row-pools" in self.quirks
        shares = (1 if alone else self.machine.rows) * (self.machine.columns if self.layer.is_global else 1)
        return round_up(-(-self.layer.out_channels // shares))

    @property
    def busy_rows(self) -> int:
        """Rows of cores that have output channels."""
        shares = -(-self.layer.padded_out_channels // self.row_channels)
        return min(self.machine.rows, -(-shares // self.machine.columns) if self.layer.is_global else shares)

    @property
    def channels(self) -> int:
        return self.layer.padded_channels

    def chunk_bytes(self, co: int, ci: int) -> float:
        """Bytes of a record by the paper's formula, where the kept share of any chunk is the layer's density."""
        density = self.layer.density
        return record_bytes(co, ci, density * (co // BLOCK) * (ci // BLOCK), self.taps, self.index)

    def profile(self, co: int, ci: int) -> ChunkProfile:
        """What the chunks of a split keep; kept in a table."""
        key = co, ci
        if key not in self._profiles:
            self._profiles[key] = ChunkProfile.of(self.layer, self.machine.rows, self.row_channels, co, ci)
        return self._profiles[key]

    @cached_property
    def _profiles(self) -> dict[tuple[int, int], ChunkProfile]:
        return {}

    # ------------------------------------------------------------------------------------------------- the paper's rule

    def rule(self) -> Splits:
        """The largest sub-volume that fits, as the paper's compiler chooses it; tiles and passes are the memory's."""
        if self.layer.op != "conv":
            return self._rule_of_pools()
        co, ci = self._rule_of_weights()
        rows = min(self.layer.out_height, self._rule_of_rows(), self.input_tile[2])
        return Splits(co, ci, rows)

    def _rule_of_weights(self) -> tuple[int, int]:
        layer, limit = self.layer, self.machine.weights
        if layer.out_channels % self.row_channels == 0:
            candidates = channel_divisors(self.row_channels)
        else:
            candidates = [self.row_channels]
            while candidates[-1] % (2 * BLOCK) == 0:
                candidates.append(candidates[-1] // 2)
        for co in candidates:
            if self.chunk_bytes(co, self.channels) <= limit:
                return co, self.channels
        co = candidates[-1]
        fits = [ci for ci in channel_divisors(self.channels) if self.chunk_bytes(co, ci) <= limit]
        return co, fits[0] if fits else BLOCK

    @cached_property
    def charged_channels(self) -> int:
        """The output channels that one output buffer is charged with."""
        width = round_up(self.out_columns) * self.layer.stride
        charged = [self.layer.padded_out_channels, *channel_divisors(self.layer.padded_out_channels)]
        return next((c for c in charged if width * c <= self.machine.outputs), BLOCK)

    def _rule_of_rows(self) -> int:
        stride = self.layer.stride if "stride-output" in self.quirks else 1
        return max(1, self.machine.outputs // (round_up(self.out_columns) * stride * self.charged_channels))

    @cached_property
    def input_tile(self) -> tuple[int, int, int]:
        """Columns and channels of the input that a core takes, and the output rows that follow."""
        layer = self.layer
        channels = self.channels
        charged = 16 if channels == BLOCK else 0  # the first layer's three channels are charged as sixteen
        split = self.out_columns < layer.out_width or self.machine.columns == 1
        without_halo = -(-layer.width // self.machine.columns) if split else layer.width
        choices = [(self.in_columns, channels), *((without_halo, c) for c in channel_divisors(channels))]
        for width, count in choices:
            held = self.machine.inputs // (round_up(width) * (charged or count))
            rows = -(-(held - layer.kernel[0]) // layer.stride) + 1
            if held and rows >= 1:
                return width, count, rows
        return without_halo, BLOCK, 1

    def _rule_of_pools(self) -> Splits:
        layer, machine = self.layer, self.machine
        if layer.is_global:
            channels = min(256, self.row_channels)
            return Splits(channels, channels, layer.out_height)
        limit = machine.outputs if layer.op == "add" else 2 * machine.inputs
        for channels in channel_divisors(self.row_channels):
            rows = self._most_rows(channels, limit)
            if rows:
                return Splits(channels, channels, min(rows, layer.out_height))
        return Splits(BLOCK, BLOCK, 1)

    def _most_rows(self, channels: int, limit: int) -> int:
        """Output rows whose inputs of so many channels fit in a buffer."""
        layer = self.layer
        if layer.op == "add":
            return limit // (self.out_columns * channels)
        held = limit // (self.in_columns * channels)
        return (held - layer.kernel[0]) // layer.stride + 1 if held >= layer.kernel[0] else 0

    # ---------------------------------------------------------------------------------------------------- sound choices

    def chunk_choices(self) -> list[int]:
        """Output channels that a chunk may have."""
        return list(range(BLOCK, self.row_channels + 1, BLOCK))

    def part_choices(self) -> list[int]:
        """Input channels that a chunk may have; operations without weights take those of the output."""
        return channel_divisors(self.channels)[::-1] if self.layer.op == "conv" else [self.channels]

    def candidates(self, tile_rows: int) -> Splits:
        """(B,) all sub-volumes whose buffers a core has, for tiles of so many output rows."""
        co, ci, rows = (
            np.array(
                [
                    (co, ci, rows)
                    for co in self.chunk_choices()
                    for ci in self.part_choices()
                    for rows in self._row_steps(co, ci, tile_rows)
                ],
                np.int64,
            )
            .reshape(-1, 3)
            .T
        )
        found = Splits(co, ci, rows)
        keep = ~np.logical_or.reduce(list(self.overflows(found).values()))
        return Splits(co[keep], ci[keep], rows[keep])

    def _row_steps(self, co: int, ci: int, tile_rows: int) -> Sequence[int]:
        """Steps in rows, up to those that fit in the buffers of inputs and outputs."""
        layer, machine = self.layer, self.machine
        if layer.op == "conv":
            held = machine.inputs // (self.in_columns * ci)
            most = (held - layer.kernel[0]) // layer.stride + 1 if held >= layer.kernel[0] else 0
        else:
            most = self._most_rows(co, machine.inputs // self.operands)
        steps = range(1, min(most, machine.outputs // (self.out_columns * co), tile_rows) + 1)
        if layer.op == "add":  # its output takes the place of an operand, so no row may be done twice
            return [rows for rows in steps if tile_rows % rows == 0]
        return steps

    def overflows(self, splits: Splits) -> dict[str, Any]:
        """(B,) bool by buffer: which sub-volumes a core cannot hold."""
        layer, machine = self.layer, self.machine
        rows = splits.rows
        in_rows = (rows - 1) * layer.stride + layer.kernel[0]
        outputs = rows * self.out_columns * splits.co
        if layer.op != "conv":
            return {
                "core-input": in_rows * self.in_columns * splits.co * self.operands > machine.inputs,
                "core-output": outputs > machine.outputs,
            }
        held = by_pair(splits, lambda co, ci: float(self.chunk_sizes(co, ci).max()))
        return {
            "core-input": in_rows * self.in_columns * splits.ci > machine.inputs,
            "core-output": outputs > machine.outputs,
            "core-weights": held > machine.weights,
            "partial-sums": (splits.ci < self.channels) & (4 * outputs > 2 * machine.outputs),
        }

    def chunk_sizes(self, co: int, ci: int) -> Any:
        """(Q, N) bytes of the records of a core, padding to the fullest row of cores included; kept in a table."""
        key = co, ci
        if key not in self._sizes:
            self._sizes[key] = self._chunk_sizes(co, ci)
        return self._sizes[key]

    @cached_property
    def _sizes(self) -> dict[tuple[int, int], Any]:
        return {}

    def _chunk_sizes(self, co: int, ci: int) -> Any:
        profile = self.profile(co, ci)
        bias = np.arange(profile.kept.shape[1]) == 0 if "bias-per-part" not in self.quirks else True
        return record_bytes(profile.co[:, None], ci, profile.kept, self.taps, self.index, bias)
