"""Convolutions over frames of images, for videos or volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from sparsemap.pieces.contracts import Shape

from .layers import POSITIVE, Conv2d, times
from .windows import one_of, pair


@attrs.frozen(kw_only=True)
class Conv3d(Conv2d):
    """A convolution over frames of images: `Z[k, d, p, q] = P[c, d + t, p + r, q + s] * Q[k, c, t, r, s]`; stride,
    dilation and padding apply to the images."""

    type_name: ClassVar[str] = "conv3d"

    d: int = attrs.field(validator=POSITIVE)
    """Frames of the output."""
    t: int = attrs.field(default=1, validator=POSITIVE)
    """Frames of the window."""
    stride_t: int = attrs.field(default=1, validator=POSITIVE)
    """Frames between successive windows."""
    dilation_t: int = attrs.field(default=1, validator=POSITIVE)
    """Distance between neighbouring frames of the window."""
    padding_t: tuple[int, int] = attrs.field(default=(0, 0), converter=lambda value: pair(value, 0))
    """Frames of zeros before and after."""

    def terms(self) -> tuple[str, dict[str, int]]:
        text, dims = super().terms()
        frames = f"{times(self.stride_t)}d + {times(self.dilation_t)}t, "
        for found, made in (
            ("k, p", "k, d, p"),
            ("c, " + self.index, "c, " + frames + self.index),
            ("c, r", "c, t, r"),
        ):
            text = text.replace(found, made)
        return text, {**dims, "d": self.d, "t": self.t}

    def product(self) -> tuple[str, dict[str, int]]:
        text, dims = super().product()
        return text, {**dims, "m": dims["m"] * self.d, "k": dims["k"] * self.t}

    @property
    def covered(self) -> int:
        """Frames covered by windows, including padding."""
        return self.stride_t * (self.d - 1) + (self.t - 1) * self.dilation_t + 1

    @property
    def inside(self) -> tuple[tuple[int, int], ...]:
        first = min(self.padding_t[0], self.covered - 1)
        return ((first, max(first + 1, self.covered - self.padding_t[1])), *super().inside)

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        given = one_of(inputs)
        if len(given) != 4:
            raise ValueError("expected channels x frames x height x width")
        rest = given[1] + sum(self.padding_t) - self.covered
        if not 0 <= rest < self.stride_t:
            raise ValueError(f"which has {given[1]} frames, and d = {self.d} takes {self.covered} with their padding")
        k, *found = self.slid([(given[0], *given[2:])], self.c, self.k)
        return (k, self.d, *found)
