"""The layers of a network for the compiler: operation, shapes, and inputs."""

from __future__ import annotations

import math

import attrs

from sparsemap.pieces.contracts.base import Array

Block = tuple[int, int]
BLOCK: Block = (8, 8)
"""Output and input channels of a block of weights, the unit of pruning, unless the hardware has another size."""


def round_up(value: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-value // step) * step


def channel_divisors(channels: int, grain: int) -> list[int]:
    """Divisors of a number of channels, multiples of `grain` like the number, descending."""
    return [d for d in range(channels, 0, -grain) if channels % d == 0]


@attrs.frozen(eq=False, slots=False)
class MeshLayer:
    """An operation. Tensors are int8 in the order rows, columns, channels; a layer has the name of its output."""

    name: str
    op: str
    """conv, maxpool, avgpool, add or concat; a fully connected layer is a conv."""
    inputs: tuple[str, ...]
    height: int
    width: int
    channels: int
    """Of the input; of a concatenation, of all inputs."""
    out_height: int
    out_width: int
    out_channels: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    """Rows above and columns to the left; the output's size gives the padding below and to the right."""
    density: float = 1.0
    """Share of the kept blocks; without a mask, of every block row."""
    mask: Array | None = None
    """(blocks of output channels, blocks of input channels) bool, True = kept."""
    repeats: int = 1
    """How often the paper's estimator counts the layer."""
    relu: bool = True
    """Whether negative outputs of a convolution or a sum become zero."""
    returned: bool = False
    """Whether the network returns the output, although layers read it."""
    block: Block = BLOCK

    @property
    def grain(self) -> int:
        """Unit of the channels of tensors and chunks."""
        return math.lcm(*self.block)

    @property
    def padded_channels(self) -> int:
        """Input channels, rounded up to whole blocks."""
        return round_up(self.channels, self.grain)

    @property
    def padded_out_channels(self) -> int:
        return round_up(self.out_channels, self.grain)

    @property
    def taps(self) -> int:
        """Positions of the kernel."""
        return math.prod(self.kernel)

    @property
    def weights(self) -> int:
        """Weights of the dense convolution; 0 for other operations."""
        return self.out_channels * self.channels * self.taps if self.op == "conv" else 0

    @property
    def macs(self) -> int:
        """Multiply-adds of the dense convolution; 0 for other operations."""
        return self.out_height * self.out_width * self.weights

    @property
    def is_global(self) -> bool:
        """Whether the operation reduces the whole image to a single pixel."""
        return self.op == "avgpool" and self.out_height == self.out_width == 1 and self.kernel[0] > 1

    @property
    def top_rows(self) -> int:
        """Rows of the output with a window above the input."""
        return min(self.out_height, -(-self.padding[0] // self.stride))

    @property
    def bottom_rows(self) -> int:
        """Rows of the output with a window below the input."""
        inside = (self.height + self.padding[0] - self.kernel[0]) // self.stride + 1
        return max(0, self.out_height - max(0, inside))

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks of output and of input channels."""
        return self.padded_out_channels // self.block[0], self.padded_channels // self.block[1]

    def kept(self, parts: int) -> Array | int:
        """(block rows, parts) kept blocks in equal parts of the input channels; a number without a mask, as all rows
        then are alike."""
        if self.mask is not None:
            return self.mask.reshape(len(self.mask), parts, -1).sum(axis=2)
        blocks = self.blocks[1] // parts
        return blocks - math.floor((1.0 - self.density) * blocks + 1e-9)

    def input_rows(self, start: int, stop: int) -> tuple[int, int]:
        """The rows of the input, clipped at its borders, for output rows [start, stop)."""
        low = start * self.stride - self.padding[0]
        high = (stop - 1) * self.stride - self.padding[0] + self.kernel[0]
        return max(0, low), max(0, min(self.height, high))
