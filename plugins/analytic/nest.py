"""The loop nest of a batch of designs: extents, tile boxes, and loops in their order (sections 3 and 4 of the model); and
what designs choose besides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array, LoopBounds, PerDesign, PerTensor, PerTile, Rows
from sparsemap.problem.chip import Chip

from .layout import Layout

if TYPE_CHECKING:
    from .remainders import Remainders


@attrs.frozen(eq=False, slots=False)
class Nest:
    """The first link of the chain. All arrays have the batch B last; each is made once, when it is read first."""

    layout: Layout
    bounds: LoopBounds
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

    @cached_property
    def moves(self) -> Array:
        """(T, S, B) bool: temporal loops between a level and the next inner one that stores the tensor move its tile there;
        towards the compute units, every word is another one."""
        lay = self.layout
        found = np.ones((lay.T, lay.S, self.batch), dtype=bool)
        for t in range(lay.T):
            for s in range(lay.S):
                child = lay.child(t, s)
                if child is not None:
                    blocks = [self.bounds[lay.temporal[block]][lay.relevant[t]] for block in range(s, child)]
                    found[t, s] = (np.concatenate(blocks) > 1.0).any(axis=0)
        return found

    def box(self, t: int, extent: Array | Sequence[PerDesign]) -> list[PerDesign]:
        """Words per rank of tensor t for extents (D, B) (section 1); one word for a tensor without ranks."""
        return list(box(self.layout.ranks[t], extent)) or [np.ones(extent[0].shape[-1])]

    def volume(self, t: int, extent: Array | Sequence[PerDesign]) -> PerDesign:
        widths = self.box(t, extent)
        volume = widths[0]
        for width in widths[1:]:
            volume = volume * width
        return volume

    @cached_property
    def boxes(self) -> list[list[list[PerDesign]]]:
        """[t][s] words per rank of the tile."""
        lay = self.layout
        return [[self.box(t, self.extents[lay.spans(t, s)]) for s in range(lay.S)] for t in range(lay.T)]

    @cached_property
    def tile_words(self) -> Array:
        """(T, S + 1, B) words of the tile of one instance; the last is the single word at the compute unit."""
        lay = self.layout
        words = np.ones((lay.T, lay.S + 1, self.batch))
        for t in range(lay.T):
            for s in range(lay.S):
                first, *rest = self.boxes[t][s]
                for width in rest:
                    first = first * width
                words[t, s] = first
        return words

    @cached_property
    def loop_bounds(self) -> LoopBounds:
        """By position, outer to inner."""
        return np.take_along_axis(self.bounds, self.order, axis=1)

    def loops(self, groups: list[int], rows: Rows) -> tuple[Array, Array]:
        """Dimension index and bound of the loops of some groups, (P, n), the innermost first, for the designs `rows`.

        `groups` are in the order of `Layout.inwards`.
        """
        D, inwards = self.layout.D, self.layout.inwards
        which = np.concatenate([np.arange(D) + inwards.index(group) * D for group in groups])
        dims, bounds = (np.take(np.take(loops, rows, axis=1), which, axis=0) for loops in self._inwards)
        return dims, bounds

    @cached_property
    def _inwards(self) -> tuple[Array, Array]:
        """Dimension index and bound of all loops, (L * D, B), the innermost first."""
        groups = self.layout.inwards
        return (
            np.concatenate([self.order[group][::-1] for group in groups]),
            np.concatenate([self.loop_bounds[group][::-1] for group in groups]),
        )

    @cached_property
    def group_products(self) -> Array:
        """(L, B) product of the bounds of each group."""
        return self.bounds.prod(axis=1)

    @cached_property
    def instances_used(self) -> Array:
        """(S + 1, B) instances in use per storage level, then compute units in use."""
        lay = self.layout
        used = [np.ones(self.batch)]
        for s in range(lay.S):
            group = lay.spatial[s]
            used.append(used[s] if group is None else used[s] * self.group_products[group])
        return np.stack(used)

    @cached_property
    def computes(self) -> PerDesign:
        """(B,) dense computes."""
        if self.layout.ragged:
            return np.full(self.batch, self.layout.ends.prod())
        return self.instances_used[self.layout.S] * self.steps[-1]

    @cached_property
    def remainders(self) -> Remainders | None:
        """Where loops end before the bounds of all of them; None: nowhere."""
        if not self.layout.ragged:
            return None
        from .remainders import Remainders

        return Remainders(self)

    @property
    def turns(self) -> PerDesign:
        """(B,) temporal iterations that take place."""
        return self.steps[-1] if self.remainders is None else self.remainders.turns

    def units_of(self, units: PerDesign) -> PerDesign:
        """Compute units at work, on average over these iterations, of so many in use."""
        return units if self.remainders is None else units * (self.computes / (self.turns * self.instances_used[-1]))

    @cached_property
    def steps(self) -> Array:
        """(S, B) temporal iterations of all blocks up to and including the block of level s, from the outside."""
        lay = self.layout
        return np.cumprod(np.stack([self.group_products[group] for group in lay.temporal]), axis=0)


@attrs.frozen(eq=False)
class DesignChoices:
    """What designs choose besides their loops."""

    slots: Array
    """(T, R, B) candidate of each slot of the formats."""
    genes: Array
    """(A, B) candidate of each S/G place."""
    packed: PerTile
    """bool: the tensor has metadata at the level, or would have if it stored the tensor."""
    decoded: PerTensor | None
    """int64: the level that holds the tensor uncompressed, as all inside do; S: none. None: so for all."""
    chip: Chip
    """The chip of all designs, or one for each."""

    def take(self, rows: Rows) -> DesignChoices:
        chip = self.chip if self.chip.batch is None else self.chip.take(rows)
        # in one piece by quantity, which indexing would not make
        decoded = None if self.decoded is None else np.take(self.decoded, rows, axis=-1)
        slots, genes, packed = (np.take(part, rows, axis=-1) for part in (self.slots, self.genes, self.packed))
        return DesignChoices(slots, genes, packed, decoded, chip)

    def inside(self, layout: Layout) -> PerTensor:
        """bool: the compute units get metadata of the tensor."""
        return np.stack([self.packed[t, layout.innermost(t)] for t in range(layout.T)])
