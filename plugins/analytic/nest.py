"""The loop nest of a batch of designs: extents, tile boxes, and loops in their order (sections 3 and 4 of the model)."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from .layout import Layout

Array = np.ndarray


@attrs.define(eq=False, slots=False)
class Nest:
    """All arrays have the batch B last."""

    layout: Layout
    bounds: Array
    """(L, D, B) float64."""
    order: Array
    """(L, D, B), dimension index outer to inner."""

    @property
    def batch(self) -> int:
        return self.bounds.shape[-1]

    @cached_property
    def extents(self) -> list[Array]:
        """Per storage level, then compute: (D, B) extents of the tile, all loops of the level's block inwards."""
        lay = self.layout
        extent = np.ones(self.bounds.shape[1:])
        found = [extent]
        for s in range(lay.S - 1, -1, -1):
            extent = extent * self.bounds[lay.temporal[s]]
            group = lay.spatial[s]
            if group is not None:
                extent = extent * self.bounds[group]
            found.append(extent)
        return found[::-1]

    def spatial_bounds(self, s: int) -> Array | None:
        group = self.layout.spatial[s]
        return None if group is None else self.bounds[group]

    @cached_property
    def below_spatial(self) -> list[Array]:
        """Per storage level: (D, B) extents below its temporal loops, that is with its spatial loops."""
        found = []
        for s in range(self.layout.S):
            inner, spatial = self.extents[s + 1], self.spatial_bounds(s)
            found.append(inner if spatial is None else inner * spatial)
        return found

    def box(self, t: int, extent: Array) -> list[Array]:
        """Words per rank of tensor t for extents (D, B): 1 + sum of c * (E - 1) (section 1)."""
        widths = []
        for rank in self.layout.ranks[t]:
            (dim, c), *rest = rank
            width = extent[dim] if c == 1 else c * (extent[dim] - 1.0) + 1.0
            for other, coefficient in rest:
                width = width + coefficient * (extent[other] - 1.0)
            widths.append(width)
        return widths or [np.ones(extent.shape[-1])]

    def volume(self, t: int, extent: Array) -> Array:
        widths = self.box(t, extent)
        volume = widths[0]
        for width in widths[1:]:
            volume = volume * width
        return volume

    @cached_property
    def boxes(self) -> list[list[list[Array]]]:
        """[t][s] words per rank of the tile."""
        return [[self.box(t, self.extents[s]) for s in range(self.layout.S)] for t in range(self.layout.T)]

    @cached_property
    def tile_words(self) -> Array:
        """(T, S + 1, B) words of the tile of one instance; the last is the single word at the compute unit."""
        lay = self.layout
        words = np.ones((lay.T, lay.S + 1, self.batch))
        for t in range(lay.T):
            for s in range(lay.S):
                for width in self.boxes[t][s]:
                    words[t, s] *= width
        return words

    @cached_property
    def loop_bounds(self) -> Array:
        """(L, D, B) loop bounds by position, outer to inner."""
        return np.take_along_axis(self.bounds, self.order, axis=1)

    @cached_property
    def group_products(self) -> Array:
        """(L, B) product of the bounds of each group."""
        return self.bounds.prod(axis=1)

    @cached_property
    def instances_used(self) -> Array:
        """(S + 1, B) instances in use per storage level, then compute units in use."""
        lay = self.layout
        used = np.ones((lay.S + 1, self.batch))
        for s in range(lay.S):
            group = lay.spatial[s]
            used[s + 1] = used[s] if group is None else used[s] * self.group_products[group]
        return used

    @cached_property
    def steps(self) -> Array:
        """(S, B) temporal iterations of all blocks up to and including the block of level s, from the outside."""
        lay = self.layout
        return np.cumprod(self.group_products[lay.temporal], axis=0)
