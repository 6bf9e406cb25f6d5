"""Tensors seen in another way: some of their ranks as one (5.8), or as hardware with N:M multiplexers keeps them, whatever
their own pattern (5.9)."""

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


@attrs.frozen(kw_only=True)
class Grouped(DensityModel):
    """N of M words of every group, N the least that no group of the tensor exceeds; dense where it is more than allowed.

    With `block`, groups of blocks without nonzeros are left out. Otherwise every group takes N words, also one with fewer
    nonzeros: what is stored is padded. For a space, which gives `of` and `rank` (see its key `stored`). Where tiles of one
    volume differ, groups are those of a drawn tensor: of actual data and masks there is one only.
    """

    type_name: ClassVar[str] = "grouped"

    n: tuple[int, ...] = attrs.field(validator=attrs.validators.min_len(1))
    """What N may be."""
    m: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Words of a group, along the rank that is summed."""
    block: tuple[int, int] = (0, 0)
    """Rows and summed words of a block that is left out if it holds zeros only; 0: none are."""
    of: DensityModel
    """The tensor's own."""
    rank: int
    """Its rank that is summed."""

    @property
    def nominal(self) -> DensityModel:
        return self.of.nominal

    def at(self, density: float) -> DensityModel:
        return attrs.evolve(self, of=self.of.at(density))

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
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
        """The N for groups of which the fullest has so many nonzeros; all words if none will do."""
        return min((n for n in self.n if n >= most), default=self.m)

    def _kept(self, drawn: Array) -> Array:
        """(..., rows, summed words) bool: what is kept of a tensor."""
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
