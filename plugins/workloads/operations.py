"""Operations between the layers of networks: pooling, additions, concatenations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    """A number, or a number for rows and another for columns."""
    padding: Sides = attrs.field(default=((0, 0), (0, 0)), converter=sides)
    """As for a `conv2d`."""

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        given = one_of(inputs)
        return (*given[:-2], *windows(given, (self.r, self.s), self.stride, (1, 1), self.padding))

    def windows(self, ranks: int) -> tuple[tuple[int, int], ...]:
        return (*((1, 1),) * (ranks - 2), (self.stride[0], self.r), (self.stride[1], self.s))


class MaxPool(Pool):
    """The largest value of every window."""

    type_name: ClassVar[str] = "max-pool"


class AveragePool(Pool):
    """The mean of every window."""

    type_name: ClassVar[str] = "average-pool"


class GlobalAverage(Operation):
    """The mean of every channel, or of every column of rows."""

    type_name: ClassVar[str] = "global-average"

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        given = one_of(inputs)
        return (*given[:-2], 1, 1) if len(given) > 2 else given[-1:]


class Wordwise(Operation):
    """A value for every word of inputs of the same shape, or broadcast to a common shape."""

    wordwise: ClassVar[bool] = True

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return alike(inputs)

    def windows(self, ranks: int) -> tuple[tuple[int, int], ...]:
        return ((1, 1),) * ranks


@attrs.frozen(kw_only=True)
class Add(Wordwise):
    """The sum or difference of inputs, as at the end of a residual block."""

    type_name: ClassVar[str] = "add"

    scaled: bool = False
    """Whether an input is multiplied by a value per row first, as earlier sums of an online softmax."""

    def vector_steps(self, shape: Shape) -> Mapping[str, float]:
        return {"other": 1.0 + self.scaled}


class Gelu(Wordwise):
    """x / (1 + exp(-x (a + b x^2))) of every word x: the tanh form of Hendrycks and Gimpel, Gaussian Error Linear
    Units, 2016."""

    type_name: ClassVar[str] = "gelu"

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return one_of(inputs)

    def vector_steps(self, shape: Shape) -> Mapping[str, float]:
        """Square, scaled sum, product and sum with 1 beside the exponential and the division."""
        return {"exponential": 1.0, "division": 1.0, "other": 4.0}


class Concat(Operation):
    """Inputs concatenated along the first axis, the channels of images."""

    type_name: ClassVar[str] = "concat"
    moves: ClassVar[bool] = False

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        if len(inputs) < 2 or len({shape[1:] for shape in inputs}) > 1:
            raise ValueError("expected two inputs or more that differ in their first axis only")
        return (sum(shape[0] for shape in inputs), *inputs[0][1:])


@attrs.frozen(kw_only=True)
class Multiply(Wordwise):
    """The elementwise product or quotient of inputs, such as a gate per channel."""

    type_name: ClassVar[str] = "multiply"

    silu: bool = False
    """Whether one input is x / (1 + exp(-x)) of its words x, as in a gated feed-forward network."""

    def vector_steps(self, shape: Shape) -> Mapping[str, float]:
        return {"exponential": 1.0, "division": 1.0, "other": 2.0} if self.silu else {"other": 1.0}


@attrs.frozen(kw_only=True)
class Rowwise(Operation):
    """A value for every word, dependent on all words of the row: the word is read once, waits for the row, and is
    written."""

    axes: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Number of last axes that form a row."""

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return one_of(inputs)

    def vector_steps(self, shape: Shape) -> Mapping[str, float]:
        """Four steps per word and a division per row: of a norm square, sum, share and weight."""
        return {"other": 4.0, "division": 1.0 / math.prod(shape[-self.axes :])}

    def windows(self, ranks: int) -> tuple[tuple[int, int], ...]:
        whole = min(self.axes, ranks)
        return (*((1, 1),) * (ranks - whole), *((0, 0),) * whole)


class Softmax(Rowwise):
    """Shares of a row, as of the scores of attention."""

    type_name: ClassVar[str] = "softmax"

    def vector_steps(self, shape: Shape) -> Mapping[str, float]:
        """Maximum, difference, sum and share beside the exponential."""
        return {"exponential": 1.0, **super().vector_steps(shape)}


class Norm(Rowwise):
    """A row over its deviation or its root mean square, with or without its mean."""

    type_name: ClassVar[str] = "norm"


@attrs.frozen(kw_only=True)
class Prepend(Operation):
    """Rows before the input's rows: keys of earlier words kept by a decoder, or the class token of an image. The new
    rows live in the outermost level, and are read from there unless the output lives there, too."""

    type_name: ClassVar[str] = "prepend"
    moves: ClassVar[bool] = False

    rows: int = attrs.field(validator=attrs.validators.ge(1))
    """Number of prepended rows."""

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        rows, columns = as_rows(one_of(inputs))
        return (self.rows + rows, columns)


@attrs.frozen(kw_only=True)
class Take(Operation):
    """Some rows of the input, such as the class token."""

    type_name: ClassVar[str] = "take"
    moves: ClassVar[bool] = False

    rows: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Number of rows taken."""

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        rows, columns = as_rows(one_of(inputs))
        if self.rows > rows:
            raise ValueError(f"expected {self.rows} rows or more")
        return (self.rows, columns) if self.rows > 1 else (columns,)


@attrs.frozen(kw_only=True)
class Shaped(Operation):
    """An operation with the shape of its output in the spec."""

    shape_: tuple[int, ...] = attrs.field(validator=attrs.validators.min_len(1))
    """Shape of the output, without the batch."""
    factor: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Output words per live word: copies, as in an image enlarged to the nearest pixel, or successive words of a
    `transform`, as the states of a recurrent layer."""

    def __attrs_post_init__(self) -> None:
        if (words := math.prod(self.shape_)) % self.factor:
            raise ValueError(f"factor = {self.factor} does not divide the {words:,} words of its shape")

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return self.shape_

    def live(self, words: int) -> int:
        return words // self.factor


class View(Shaped):
    """Some or all words of the inputs, unchanged but in another order: split, sliced, transposed or joined. Words
    without an input live in the outermost level."""

    type_name: ClassVar[str] = "view"
    moves: ClassVar[bool] = False

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        expected = self.live(math.prod(self.shape_))
        if self.factor > 1 and sum(map(math.prod, inputs)) != expected:
            raise ValueError(f"expected {expected:,} words, of which its shape has {self.factor} copies")
        return self.shape_


class Outside(View):
    """Words from outside the network, such as a further input or the output of an unknown operation."""

    type_name: ClassVar[str] = "outside"

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        if inputs:
            raise ValueError(f"expected no input, found {len(inputs)}")
        return self.shape_


class Transform(Shaped):
    """Words computed from the inputs: enlarged or padded images, sums along an axis, a choice between two."""

    type_name: ClassVar[str] = "transform"


def alike(inputs: Sequence[Shape]) -> Shape:
    """The common shape of all inputs, by broadcasting: along an axis of one word, or of a row to all rows or pixels.

    An image mixed with rows counts as rows, a row for every pixel."""
    image = any(len(shape) == 3 for shape in inputs)
    shapes = [(*shape, 1, 1) if image and len(shape) == 1 else shape for shape in inputs]
    ranks = max(map(len, shapes), default=0)
    if ranks > 3:
        shapes = [(*(1,) * (ranks - len(shape)), *shape) for shape in shapes]
    if len(set(map(len, shapes))) > 1:
        shapes = [as_rows(shape) for shape in shapes]
    sizes = [set(axis) - {1} for axis in zip(*shapes, strict=True)]
    if len(inputs) < 2 or any(len(axis) > 1 for axis in sizes):
        raise ValueError("expected two inputs or more, of one shape or broadcast to it")
    return tuple(max(axis, default=1) for axis in sizes)


def as_rows(given: Shape) -> tuple[int, int]:
    """Rows and columns; an image has a row for every pixel."""
    if len(given) == 3:
        return (given[1] * given[2], given[0])
    return (given[0] if len(given) == 2 else 1, given[-1])
