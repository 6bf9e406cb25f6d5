"""Weights pruned in blocks of output and input channels by a mask, all taps of the kernel at once."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array

from .common import by, expanded, need_two_ranks, padded
from .data import DataOccupancy
from .tensor_files import Limits, read_nonzeros


@attrs.frozen(kw_only=True)
class Gamma(DensityModel):
    """Blocks of the first two ranks, outputs and inputs, from a mask: a NumPy array (.npy), nonzero for a kept block."""

    type_name: ClassVar[str] = "gamma"

    file: Path
    """Relative to the spec that names it, or else to the working directory."""
    block: tuple[int, int] = attrs.field(
        default=(8, 8), validator=attrs.validators.deep_iterable(attrs.validators.ge(1))
    )
    """Outputs and inputs of a block."""

    @cached_property
    def mask(self) -> Array:
        """(blocks of outputs, blocks of inputs) bool mask, also used by the compiler of weight blocks."""
        size: list[int] = []

        def expect(found: tuple[int, ...]) -> None:
            if len(found) != 2:
                raise SpecError.at(self.file, "", f"holds {len(found)} ranks, expected a matrix of blocks")
            size[:] = found

        kept = read_nonzeros(self.file, Limits(expect, "512 MB"))
        mask = np.zeros(size, bool)
        mask[tuple(kept)] = True
        return mask

    def occupancy(self, shape: tuple[int, ...]) -> DataOccupancy:
        """Occupancy of a tensor of this shape; beyond the mask, the tensor is zero (`padded`)."""
        need_two_ranks(self, shape)
        blocks = tuple(-(-int(words) // size) for words, size in zip(shape, self.block, strict=False))
        more = [own - held for own, held in zip(blocks, self.mask.shape, strict=True)]
        held = [count * size for count, size in zip(self.mask.shape, self.block, strict=True)]
        if min(more) < 0 or not padded(held, shape[:2]):
            text = f"holds {by(self.mask.shape)} blocks, and the workload's tensor has {by(blocks)}"
            raise SpecError.at(self.file, "", text)
        mask = np.pad(self.mask, [(0, count) for count in more])
        whole = expanded(mask, self.block, tuple(int(words) for words in shape))
        return DataOccupancy(whole.shape, np.array(np.nonzero(whole)), str(self.file))
