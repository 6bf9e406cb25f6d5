"""Weights in blocks, the unit of pruning.

The weights of a layer are an array (S, height, width, C): outputs, kernel, input channels; a fully connected layer has
a kernel of 1 x 1. Pruning sees a matrix (S, K) with K = height * width * C, in one of two orders of columns: `hwc`, the
input channel fastest, or `chw`, the kernel fastest."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array

Shape = tuple[int, int, int, int]
"""Outputs, height and width of the kernel, input channels."""
ORDERS = ("hwc", "chw")
UNITS = ("words", "channels")


@attrs.frozen
class BlockShape:
    """The size of a block; columns count words of the reduction, or whole input channels, by `unit`.

    A block of 8 x 8 channels is 8 x height x width x 8 words, contiguous in the order `chw`."""

    rows: int = attrs.field(validator=attrs.validators.ge(1))
    columns: int = attrs.field(validator=attrs.validators.ge(1))
    unit: str = attrs.field(default="words", validator=attrs.validators.in_(UNITS))
    order: str = attrs.field(default="hwc", validator=attrs.validators.in_(ORDERS))

    def grid(self, shape: Shape) -> BlockGrid:
        """The blocks of a layer of this shape."""
        by_channel = self.unit == "channels"
        columns = self.columns * shape[1] * shape[2] if by_channel else self.columns
        return BlockGrid(shape, self.rows, columns, "chw" if by_channel else self.order)

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}" + (" channels" if self.unit == "channels" else "")


@attrs.frozen(slots=False)
class BlockGrid:
    """The matrix of a layer, cut into R x C blocks of `rows` x `columns` words; blocks at the edges are cut off."""

    shape: Shape
    rows: int
    columns: int
    order: str = "hwc"

    @property
    def size(self) -> tuple[int, int]:
        """(S, K)."""
        outputs, height, width, channels = self.shape
        return outputs, height * width * channels

    @cached_property
    def counts(self) -> tuple[int, int]:
        """(R, C)."""
        return -(-self.size[0] // self.rows), -(-self.size[1] // self.columns)

    @property
    def blocks(self) -> int:
        return self.counts[0] * self.counts[1]

    @property
    def whole(self) -> bool:
        """Whether no block is cut off."""
        return self.size[0] % self.rows == 0 and self.size[1] % self.columns == 0

    def matrix(self, tensor: Array) -> Array:
        """(S, height, width, C) -> (S, K)."""
        if tensor.shape != self.shape:
            raise SpecError.at("", "", f"weights have the shape {tensor.shape}, expected {self.shape}")
        return (tensor if self.order == "hwc" else tensor.transpose(0, 3, 1, 2)).reshape(self.size)

    def tensor(self, matrix: Array) -> Array:
        """(S, K) -> (S, height, width, C)."""
        outputs, height, width, channels = self.shape
        if self.order == "hwc":
            return matrix.reshape(self.shape)
        return np.ascontiguousarray(matrix.reshape(outputs, channels, height, width).transpose(0, 2, 3, 1))

    def sums(self, values: Array) -> Array:
        """Sums over the words of every block: (S, K) -> (R, C) float64."""
        below = np.add.reduceat(np.asarray(values, np.float64), np.arange(0, self.size[0], self.rows), axis=0)
        return np.add.reduceat(below, np.arange(0, self.size[1], self.columns), axis=1)

    def expand(self, blocks: Array) -> Array:
        """A value per block as a value per word: (R, C) -> (S, K)."""
        return np.repeat(np.repeat(blocks, self._lengths(0), axis=0), self._lengths(1), axis=1)

    @cached_property
    def words(self) -> Array:
        """Words of every block, (R, C)."""
        return np.outer(self._lengths(0), self._lengths(1))

    def _lengths(self, axis: int) -> Array:
        size, step = self.size[axis], (self.rows, self.columns)[axis]
        return np.minimum(step, size - np.arange(0, size, step))
