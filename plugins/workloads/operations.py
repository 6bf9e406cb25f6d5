"""What stands between the layers of networks: pooling, additions, concatenations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from sparsemap.pieces.contracts import Operation, Shape

from .windows import Sides, one_of, pair, sides, windows


@attrs.frozen(kw_only=True)
class Pool(Operation):
    """A value for every window of every channel."""

    r: int = attrs.field(validator=attrs.validators.ge(1))
    """Rows of the window."""
    s: int = attrs.field(validator=attrs.validators.ge(1))
    """Columns of the window."""
    stride: tuple[int, int] = attrs.field(default=(1, 1), converter=pair)
    """One number, or one for rows and one for columns."""
    padding: Sides = attrs.field(default=((0, 0), (0, 0)), converter=sides)
    """As a `conv2d` has it."""

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        given = one_of(inputs)
        return (given[0], *windows(given, (self.r, self.s), self.stride, (1, 1), self.padding))


@attrs.frozen(kw_only=True)
class MaxPool(Pool):
    """The largest value of every window."""

    type_name: ClassVar[str] = "max-pool"


@attrs.frozen(kw_only=True)
class AveragePool(Pool):
    """The mean of every window."""

    type_name: ClassVar[str] = "average-pool"


@attrs.frozen(kw_only=True)
class GlobalAverage(Operation):
    """The mean of every channel."""

    type_name: ClassVar[str] = "global-average"

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return (one_of(inputs)[0], 1, 1)


@attrs.frozen(kw_only=True)
class Add(Operation):
    """The sum of inputs of one shape, as at the end of a residual block."""

    type_name: ClassVar[str] = "add"

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        if len(inputs) < 2 or len(set(inputs)) > 1:
            raise ValueError("expected two inputs or more, of one shape")
        return inputs[0]


@attrs.frozen(kw_only=True)
class Concat(Operation):
    """Inputs one behind the other along the first axis, which are the channels of images."""

    type_name: ClassVar[str] = "concat"

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        if len(inputs) < 2 or len({shape[1:] for shape in inputs}) > 1:
            raise ValueError("expected two inputs or more that differ in their first axis only")
        return (sum(shape[0] for shape in inputs), *inputs[0][1:])


@attrs.frozen(kw_only=True)
class Cache(Operation):
    """Rows kept from earlier steps, then those of the input: the keys or values of a decoder that writes word by word."""

    type_name: ClassVar[str] = "cache"

    rows: int = attrs.field(validator=attrs.validators.ge(1))
    """Rows from earlier steps."""

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        given = one_of(inputs)
        if len(given) > 2:
            raise ValueError("expected rows x columns, or one row")
        rows = given[0] if len(given) == 2 else 1
        return (self.rows + rows, given[-1])
