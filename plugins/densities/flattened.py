"""Other views of tensors: ranks merged into one (5.8), or stored with N:M multiplexers whatever the pattern (5.9)."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array

from .common import by, expanded
from .crisp import Crisp
from .data import DataOccupancy
from .structured import NOfM


@attrs.frozen(kw_only=True)
class Flattened(DensityModel):
    """A tensor with its last ranks merged into one, the first of these fastest: weights of convolutions as matrices,
    with columns running over the kernel and then over the channels.

    If the density model distinguishes tiles of one volume, the ranks of a drawn tensor are merged. This is exact for
    actual data and masks."""

    type_name: ClassVar[str] = "flattened"

    of: DensityModel
    """Density of the original tensor."""
    shape: tuple[int, ...]
    """Words per rank of the original tensor."""

    @property
    def nominal(self) -> DensityModel:
        return self.of

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
        """Occupancy of a possibly padded tensor; the padding is zero."""
        kept = len(shape) - 1
        joined = math.prod(self.shape[kept:])
        given = (*self.shape[:kept], joined)
        if len(given) != len(shape) or any(have > words for have, words in zip(given, shape, strict=True)):
            raise SpecError.at("", "", f"flattened: a tensor of {by(given)} does not fit in one of {by(shape)}")
        own = self.of.occupancy(self.shape)
        if not own.by_shape or (isinstance(self.of, Crisp) and kept == 1):
            return self.of.occupancy(shape)
        drawn = own.draw(np.random.default_rng(0))
        order = (*range(kept), *range(kept + 1, drawn.ndim), kept)
        matrix = drawn.transpose(order).reshape(given)
        return DataOccupancy(tuple(int(words) for words in shape), np.array(np.nonzero(matrix)), "the flattened tensor")


def _both(_: object, __: object, block: tuple[int, int]) -> None:
    if min(block) < 0 or any(block) != all(block):
        raise ValueError(f"is {by(block)}, expected two sizes, or two zeros")


@attrs.frozen(kw_only=True)
class Grouped(DensityModel):
    """N of M words of every group, N being the smallest allowed number not exceeded by any group; dense if no allowed
    number suffices.

    With `block`, blocks without nonzeros are left out. Every other group stores N words, padded with zeros if
    necessary. A space sets `of` and `rank` (see its key `stored`). Where tiles of one volume differ, groups come from a
    drawn tensor; for actual data and masks, this is exact."""

    type_name: ClassVar[str] = "grouped"

    n: tuple[int, ...] = attrs.field(validator=attrs.validators.min_len(1))
    """Allowed values of N."""
    m: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Words of a group, along the summed rank."""
    block: tuple[int, int] = attrs.field(default=(0, 0), validator=_both)
    """Rows and summed words of a block, left out if all zero; 0: no blocks."""
    of: DensityModel
    """Density of the tensor."""
    rank: int
    """Index of the summed rank."""

    @property
    def nominal(self) -> DensityModel:
        return self.of.nominal

    def at(self, density: float) -> DensityModel:
        return attrs.evolve(self, of=self.of.at(density))

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
        if not 0 <= self.rank < len(shape) or (any(self.block) and len(shape) < 2):
            blocks = " with blocks of rows" if any(self.block) else ""
            raise SpecError.at("", "", f"grouped: has no rank {self.rank}{blocks} in a tensor of {by(shape)}")
        own = self.of.occupancy(shape)
        if own.density == 1:
            return own
        if isinstance(self._pattern, NOfM | Crisp):
            least = self._least(min(self._pattern.n * -(-self.m // self._pattern.m), self.m))
            if isinstance(self._pattern, Crisp) and any(self.block):
                rows, words = self._pattern.sides
                if least == self._pattern.n and rows % self.block[0] == 0 == words % self.block[1]:
                    return own
            elif isinstance(self._pattern, NOfM):
                return NOfM(n=least, m=self.m).occupancy(shape)
        elif not own.by_shape:
            tile = tuple(self.m if rank == self.rank else 1 for rank in range(len(shape)))
            return NOfM(n=self._least(int(own.largest(tile))), m=self.m).occupancy(shape)
        drawn = np.moveaxis(own.draw(np.random.default_rng(0)), self.rank, -1)
        return DataOccupancy(shape, np.array(np.nonzero(np.moveaxis(self._kept(drawn), -1, self.rank))), "the groups")

    @property
    def _pattern(self) -> DensityModel:
        return self.of.of if isinstance(self.of, Flattened) else self.of

    def _least(self, most: int) -> int:
        """N for groups with at most `most` nonzeros; all M words if no allowed N suffices."""
        return min((n for n in self.n if n >= most), default=self.m)

    def _kept(self, drawn: Array) -> Array:
        """(..., rows, summed words) bool: the stored words of a tensor."""
        words = drawn.shape[-1]
        whole = np.pad(drawn, [(0, 0)] * (drawn.ndim - 1) + [(0, -words % self.m)])
        groups = whole.reshape(*whole.shape[:-1], -1, self.m)
        least = self._least(int(groups.sum(axis=-1).max()))
        # nonzeros first, then zeros until there are N of them
        kept = (np.argsort(np.argsort(~groups, axis=-1, kind="stable"), axis=-1) < least).reshape(whole.shape)[
            ..., :words
        ]
        if not any(self.block):
            return kept
        rows, columns = self.block
        edge = [(0, 0)] * (drawn.ndim - 2) + [(0, -drawn.shape[-2] % rows), (0, -words % columns)]
        padded = np.pad(drawn, edge)
        cells = padded.reshape(*padded.shape[:-2], padded.shape[-2] // rows, rows, -1, columns)
        blocks = np.any(cells, axis=(-3, -1))
        return kept & expanded(blocks, (*(1,) * (drawn.ndim - 2), rows, columns), drawn.shape)
