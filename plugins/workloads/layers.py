"""Layers in the terms of frameworks; each becomes an einsum with P the input, Q the weights, Z the output.

```toml
kind = "workload"
name = "conv2_1b"
type = "conv2d"
k = 64
c = 64
p = 56
q = 56
r = 3
s = 3
padding = 1
density = { P = 0.5, Q = { type = "n-of-m", n = 2, m = 4 } }
```"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Loops, Shape, Tensor, Workload, naming

from .windows import Sides, one_of, pair, sides, windows

POSITIVE = attrs.validators.ge(1)


@attrs.frozen(kw_only=True)
class LayerWorkload(Workload):
    """A workload given by the einsum of its `table`."""

    weights: ClassVar[str] = "Q"

    batch: int = attrs.field(default=1, validator=POSITIVE)
    """Samples at a time."""
    density: Mapping[str, Any] = attrs.field(factory=dict, metadata=naming("density"))
    """By tensor P, Q, Z, as for an einsum; operands without an entry are dense."""

    def loops(self, registry: Any) -> Loops:
        einsum, dims = self.terms()
        return self._parsed(einsum, dims, {"P": 1.0, "Q": 1.0, **self.density}, registry)

    @staticmethod
    def _parsed(einsum: str, dims: Mapping[str, int], density: Mapping[str, Any], registry: Any) -> Loops:
        """The loops of an einsum; cached for plain densities, since variants of a layer request them repeatedly."""

        def parsed() -> Loops:
            return registry.build("workload", {"einsum": einsum, "dims": dims, "density": density}).loops(registry)

        if not all(isinstance(value, int | float) for value in density.values()):
            return parsed()
        return registry.remember((LayerWorkload, einsum, *dims.items(), *density.items()), parsed)

    def terms(self) -> tuple[str, dict[str, int]]:
        """The einsum, and the size of every dimension."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Window(LayerWorkload):
    """A window sliding over an image, the common part of convolutions."""

    p: int = attrs.field(validator=POSITIVE)
    """Rows of the output."""
    q: int = attrs.field(validator=POSITIVE)
    """Columns of the output."""
    r: int = attrs.field(default=1, validator=POSITIVE)
    """Rows of the window."""
    s: int = attrs.field(default=1, validator=POSITIVE)
    """Columns of the window."""
    stride: tuple[int, int] = attrs.field(default=(1, 1), converter=pair)
    """A number, or a number for rows and another for columns."""
    dilation: tuple[int, int] = attrs.field(default=(1, 1), converter=pair)
    """Distance between neighbouring taps of the window: a number, or a number for rows and another for columns."""
    padding: Sides = attrs.field(default=((0, 0), (0, 0)), converter=sides)
    """Zeros around the image: a number, a number for rows and another for columns, [[top, bottom], [left, right]],
    "same" or "valid". The einsum is independent of padding: the halo belongs to P's box with P's density, but is no
    data (charge `holes`)."""
    image: tuple[int, int] | None = attrs.field(default=None, converter=attrs.converters.optional(pair))
    """Rows and columns of the input, if windows do not reach all of the padding; set by a network. Absent: windows
    reach all."""
    view: Literal["convolution", "matrix-product"] = "convolution"
    """Whether the layer is searched as a convolution or as `Z[m, n] = P[m, k] * Q[n, k]`, with m windows of k words
    written out: a word shared by windows is stored and moved with each window."""

    def loops(self, registry: Any) -> Loops:
        if self.view == "convolution":
            found = super().loops(registry)
            return attrs.evolve(found, tensors=tuple(self._padded(t, t.shape(found.sizes)) for t in found.tensors))
        density = dict(self.density)
        seen = super().loops(registry)  # as a convolution
        for tensor in seen.tensors:
            if tensor.name not in density:
                continue
            shape = tensor.shape(seen.sizes)
            if tensor.density.occupancy(shape).by_shape:
                if tensor.name != self.weights:
                    text = f"of type '{tensor.density.type_name}' is of an image, not of the windows written out"
                    raise SpecError.at("", f"density.{tensor.name}", f"a density {text}")
                table = {"type": "flattened", "of": tensor.density, "shape": list(shape)}
                density[tensor.name] = registry.build("density", table)
        return self._parsed(*self.product(), {"P": 1.0, "Q": 1.0, **density}, registry)

    def product(self) -> tuple[str, dict[str, int]]:
        """The einsum as a product of matrices, and the size of every dimension."""
        raise NotImplementedError

    def slid(self, inputs: Sequence[Shape], channels: int, out: int) -> Shape:
        """The output's shape for an image with `channels` and an output of p x q, or for a batch of frames."""
        given = one_of(inputs)
        found = windows(given, (self.r, self.s), self.stride, self.dilation, self.padding)
        if given[-3] != channels:
            raise ValueError(f"expected {channels} channels")
        if given[:-3] not in ((), (self.batch,)):
            raise ValueError(f"expected {self.batch} images at a time")
        if found != (self.p, self.q):
            raise ValueError(f"which gives an output of {found[0]} x {found[1]}, not p = {self.p}, q = {self.q}")
        return (*given[:-3], out, *found)

    def placed(self, inputs: Sequence[Shape]) -> Workload:
        placed = attrs.evolve(self, image=inputs[0][-2:])
        return self if placed.inside == self.inside else placed

    def _padded(self, tensor: Tensor, shape: Shape) -> Tensor:
        """The tensor with the range of data in its ranks, without padding."""
        inside = (*((0, size) for size in shape[: -len(self.inside)]), *self.inside)
        same = tensor.name != "P" or all(end - first == size for (first, end), size in zip(inside, shape, strict=True))
        return tensor if same else attrs.evolve(tensor, inside=inside)

    @property
    def inside(self) -> tuple[tuple[int, int], ...]:
        """Begin and end of the image within the rows and the columns covered by windows."""
        found = []
        for axis, (steps, taps) in enumerate(((self.p, self.r), (self.q, self.s))):
            stride, reach = self.stride[axis], (taps - 1) * self.dilation[axis] + 1
            covered = stride * (steps - 1) + reach
            if self.padding == "same":
                size = self.image[axis] if self.image else steps * stride
                before = max(0, covered - size) // 2
            else:
                before, after = (0, 0) if isinstance(self.padding, str) else self.padding[axis]
                size = self.image[axis] if self.image else max(1, covered - before - after)
            found.append((min(before, covered - 1), max(1, min(covered, before + size))))
        return tuple(found)

    @property
    def index(self) -> str:
        """The last two indices of P."""
        return ", ".join(
            f"{times(stride)}{out} + {times(dilation)}{window}"
            for out, window, stride, dilation in zip("pq", "rs", self.stride, self.dilation, strict=True)
        )


def _several(dim: str, size: int) -> tuple[str, dict[str, int]]:
    """An index and its size, empty for size 1."""
    return (f"{dim}, ", {dim: size}) if size > 1 else ("", {})


def times(count: int) -> str:
    return f"{count}*" if count > 1 else ""


@attrs.frozen(kw_only=True)
class Conv2d(Window):
    """A convolution over images: `Z[k, p, q] = P[c, p + r, q + s] * Q[k, c, r, s]`.

    A batch adds the dimension b, groups the dimension g. As a matrix product (im2col), rows of P are windows."""

    type_name: ClassVar[str] = "conv2d"

    k: int = attrs.field(validator=POSITIVE)
    """Channels of the output, of all groups together."""
    c: int = attrs.field(validator=POSITIVE)
    """Channels of the input, of all groups together."""
    groups: int = attrs.field(default=1, validator=POSITIVE)
    """Groups of channels: an output is a sum over the inputs of its group."""

    def __attrs_post_init__(self) -> None:
        if self.k % self.groups or self.c % self.groups:
            text = f"groups = {self.groups} does not divide the channels: k = {self.k}, c = {self.c}"
            raise ValueError(text)

    def terms(self) -> tuple[str, dict[str, int]]:
        k, c = self.k // self.groups, self.c // self.groups
        g, groups = _several("g", self.groups)
        b, samples = _several("b", self.batch)
        dims = {"k": k, "c": c, "p": self.p, "q": self.q, "r": self.r, "s": self.s}
        text = f"Z[{b}{g}k, p, q] = P[{b}{g}c, {self.index}] * Q[{g}k, c, r, s]"
        return text, {**samples, **groups, **dims}

    def product(self) -> tuple[str, dict[str, int]]:
        g, groups = _several("g", self.groups)
        k, n = self.c // self.groups * self.r * self.s, self.k // self.groups
        dims = {"m": self.batch * self.p * self.q, "k": k, "n": n}
        return f"Z[{g}m, n] = P[{g}m, k] * Q[{g}n, k]", {**groups, **dims}

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return self.slid(inputs, self.c, self.k)


@attrs.frozen(kw_only=True)
class Depthwise(Window):
    """A convolution with a separate window for every channel: `Z[c, p, q] = P[c, p + r, q + s] * Q[c, r, s]`."""

    type_name: ClassVar[str] = "depthwise"

    c: int = attrs.field(validator=POSITIVE)
    """Channels."""

    def terms(self) -> tuple[str, dict[str, int]]:
        b, samples = _several("b", self.batch)
        dims = {"c": self.c, "p": self.p, "q": self.q, "r": self.r, "s": self.s}
        return f"Z[{b}c, p, q] = P[{b}c, {self.index}] * Q[c, r, s]", {**samples, **dims}

    def product(self) -> tuple[str, dict[str, int]]:
        dims = {"g": self.c, "m": self.batch * self.p * self.q, "k": self.r * self.s}
        return "Z[g, m] = P[g, m, k] * Q[g, k]", dims

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        return self.slid(inputs, self.c, self.c)


@attrs.frozen(kw_only=True)
class Linear(LayerWorkload):
    """A fully connected layer: `Z[m, n] = P[m, k] * Q[k, n]`; samples of a batch are further rows."""

    type_name: ClassVar[str] = "linear"

    m: int = attrs.field(default=1, validator=POSITIVE)
    """Rows of a sample, such as the words of a sentence; with groups, rows per group."""
    k: int = attrs.field(validator=POSITIVE)
    """Inputs of a row."""
    n: int = attrs.field(validator=POSITIVE)
    """Outputs of a row."""
    groups: int = attrs.field(default=1, validator=POSITIVE)
    """Parallel layers, such as experts, each with rows and weights of its own."""

    def terms(self) -> tuple[str, dict[str, int]]:
        g, groups = _several("g", self.groups)
        dims = {"m": self.batch * self.m, "k": self.k, "n": self.n}
        return f"Z[{g}m, n] = P[{g}m, k] * Q[{g}k, n]", {**groups, **dims}

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        groups = (self.groups,) if self.groups > 1 else ()
        _words(one_of(inputs), (*groups, self.m, self.k))
        return (*groups, *((self.m,) if self.m > 1 else ()), self.n)


@attrs.frozen(kw_only=True)
class MatMul(LayerWorkload):
    """Matrix products of two inputs, such as in attention: `Z[h, m, n] = P[h, m, k] * Q[h, k, n]`."""

    type_name: ClassVar[str] = "matmul"
    weights: ClassVar[str] = ""

    h: int = attrs.field(default=1, validator=POSITIVE)
    """Independent products, such as heads, multiplied by the samples of a batch; left out of the einsum for a single
    product."""
    m: int = attrs.field(validator=POSITIVE)
    """Rows of the first operand and of the output."""
    k: int = attrs.field(validator=POSITIVE)
    """The summed dimension."""
    n: int = attrs.field(validator=POSITIVE)
    """Columns of the second operand and of the output."""

    def terms(self) -> tuple[str, dict[str, int]]:
        h, heads = _several("h", self.batch * self.h)
        dims = {"m": self.m, "k": self.k, "n": self.n}
        return f"Z[{h}m, n] = P[{h}m, k] * Q[{h}k, n]", {**heads, **dims}

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        if len(inputs) != 2:
            raise ValueError("expected two inputs, P and Q")
        _words(inputs[0], (self.h, self.m, self.k))
        _words(inputs[1], (self.h, self.k, self.n))
        return (self.h, self.m, self.n) if self.h > 1 else (self.m, self.n)


def _words(given: Shape, expected: Shape) -> None:
    """Raise ValueError unless both have equally many words: an image may be taken as a row, a row as rows of many
    heads."""
    if math.prod(given) != math.prod(expected):
        text = " x ".join(map(str, expected))
        raise ValueError(f"expected {math.prod(expected):,} words ({text}), found {math.prod(given):,}")
