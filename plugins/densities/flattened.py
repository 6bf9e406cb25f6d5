"""The nonzeros of a tensor some of whose ranks are seen as one (5.8)."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.errors import SpecError

from .common import by
from .crisp import Crisp
from .data import DataOccupancy


@attrs.frozen(kw_only=True)
class Flattened(DensityModel):
    """A tensor of another shape whose last ranks are one rank here, the first of them fastest: weights of convolutions as
    matrices, whose columns run over the kernel and then over the channels.

    Where the model tells tiles of one volume apart, the ranks of a drawn tensor are flattened: for actual data and masks,
    of which there is one only, that is exact.
    """

    type_name: ClassVar[str] = "flattened"

    of: DensityModel
    """The density of the tensor."""
    shape: tuple[int, ...]
    """Its words per rank."""

    @property
    def nominal(self) -> DensityModel:
        return self.of

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
        """Of a tensor that may be padded: the rest is zeros."""
        kept = len(shape) - 1
        joined = math.prod(self.shape[kept:])
        given = (*self.shape[:kept], joined)
        if any(have > words for have, words in zip(given, shape, strict=True)):
            raise SpecError.at("", "", f"flattened: a tensor of {by(given)} does not fit in one of {by(shape)}")
        own = self.of.occupancy(self.shape)
        if not own.by_shape or (isinstance(self.of, Crisp) and kept == 1):
            return self.of.occupancy(shape)
        drawn = own.draw(np.random.default_rng(0))
        order = (*range(kept), *range(kept + 1, drawn.ndim), kept)
        matrix = drawn.transpose(order).reshape(given)
        return DataOccupancy(tuple(int(words) for words in shape), np.array(np.nonzero(matrix)), "the flattened tensor")
