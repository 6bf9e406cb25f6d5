"""Words stored by the formats for a real tensor, rank by rank: whole blocks, whole dense parts, fibers of equal length.

A fiber is stored if the rank above keeps its position. Above all compressed ranks, addresses are computed. There, a
fiber is stored if it holds a nonzero, or if it leads to padded fibers, since empty rows store padding as well."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np

from sparsemap import Format
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.streams import TileLayout, lay_out

from .nest import Boxes


def store_zeros(formats: Sequence[Format]) -> bool:
    """Whether a hierarchy of formats, outer to inner, may store zeros."""
    first = next((i for i, form in enumerate(formats) if form.compressed), len(formats))
    return any(not form.compressed or form.padded or form.block > 1 for form in formats[first:])


def units_of(lengths: Sequence[int], formats: Sequence[Format]) -> Array:
    """(L1, .., LR) unit numbers; words of a unit are stored together or not at all."""
    at = max(rank for rank, form in enumerate(formats) if form.compressed)
    form = formats[at]
    index = np.indices(lengths)[: at + 1]
    index[at] = 0 if form.padded else index[at] // form.block
    return np.ravel_multi_index(tuple(index), tuple(lengths[: at + 1]))


@attrs.frozen(eq=False, slots=False)
class Contents:
    """A tensor in a trial, with sums over boxes of nonzeros, of stored words and of words visible in metadata."""

    mask: Array
    formats: Sequence[Format] = ()
    """Formats of the ranks; empty if the tensor is uncompressed, or if its fibers form no tree."""
    order: Array = attrs.field(factory=lambda: np.zeros(0, dtype=np.int64))
    """(L1, .., LR) numbers of the words, rank by rank."""

    @cached_property
    def tree(self) -> Array:
        """(1, L1, .., LR) the mask, rank by rank."""
        return self.mask.reshape(-1)[self.order][None]

    @cached_property
    def layout(self) -> TileLayout | None:
        """Layout of the stored words; None: only nonzeros are stored."""
        return lay_out(self.tree, self.formats) if store_zeros(self.formats) else None

    @cached_property
    def written(self) -> TileLayout:
        """Layout written by an encoder."""
        return lay_out(self.tree, self.formats, every_fiber=True)

    @cached_property
    def nonzero(self) -> Boxes:
        return Boxes(self.mask)

    @cached_property
    def stored(self) -> Boxes:
        return self.nonzero if self.layout is None else self._boxes(self.layout)

    @cached_property
    def seen(self) -> Boxes:
        """Words possibly nonzero by the metadata: blocks count as a whole, padding does not."""
        unpadded = self.layout and lay_out(self.tree, self.formats, padding=False)
        return self.nonzero if unpadded is None else self._boxes(unpadded)

    @cached_property
    def kept(self) -> Array:
        """(words,) bool: stored."""
        return self.stored.values.reshape(-1) > 0

    def _boxes(self, layout: TileLayout) -> Boxes:
        words = np.empty(self.mask.size, dtype=bool)
        words[self.order] = layout.words[0]
        return Boxes(words.reshape(self.mask.shape))
