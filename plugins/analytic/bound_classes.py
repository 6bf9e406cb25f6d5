"""Classes of designs for searchers: a tile of the level next to the outermost one, and the loop innermost around it."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.pieces.contracts import Classes
from sparsemap.pieces.contracts.base import Array
from sparsemap.primes import Divisors
from sparsemap.problem.designs import Designs
from sparsemap.problem.evaluation import Evaluation

from . import native
from .bound import LowerBound
from .bound_tiles import OuterTiles, TileGrid
from .bound_words import LeastWords
from .layout import Layout


def classes_of(found: LowerBound, least: Evaluation) -> Classes | None:
    """`least`: rows for every class; None where the bound has tried no tiles."""
    if found.outer.grid is None:
        return None
    tiles = ClassTable.of(found.words, found.outer, found.outer.grid)
    return Classes(least, tiles.of_designs, tiles.moved, tiles.holds, ("bounds", "order"), tiles.labels())


@attrs.frozen(eq=False)
class ClassTable:
    """Which class a design is in, and how it gets into one."""

    layout: Layout
    least: LeastWords
    outer: OuterTiles
    grid: TileGrid
    index: Array
    """(n, D) the class of a tile with an innermost loop; -1: it fits no level."""
    options: tuple[Array, Array]
    """Those of the grid one after the other, and where each dimension's end; the same of primes:"""
    primes: tuple[Array, Array]

    @classmethod
    def of(cls, least: LeastWords, outer: OuterTiles, grid: TileGrid) -> ClassTable:
        layout = least.layout
        index = np.full((grid.extents.shape[1], layout.D), -1, dtype=np.int64)
        index[outer.tile, outer.loop] = np.arange(len(outer.tile))
        options = np.concatenate(grid.options), np.cumsum([len(option) for option in grid.options])
        powers = [Divisors.of(int(size)).powers for size in layout.sizes]
        primes = np.array([each[1] for own in powers for each in own], np.int64), np.cumsum([*map(len, powers)])
        return cls(layout, least, outer, grid, index, options, primes)

    def labels(self) -> dict[str, Array]:
        """Extents of the tile, and the dimension of the innermost loop around it."""
        extents, dims = self.grid.extents[:, self.outer.tile].astype(np.int64), self.layout.dims
        return {**dict(zip(dims, extents, strict=True)), "innermost": np.array(dims)[self.outer.loop]}

    def of_designs(self, designs: Designs) -> Array:
        """(B,) class of each design."""
        bounds, order = designs.columns["bounds"], designs.columns["order"]
        found = np.empty(bounds.shape[-1], dtype=np.int64)
        given = found, bounds, order, self.layout.sizes, *self.options, self.index
        if native.fast is not None and native.fast.classes(*given) is not None:
            return found
        inside = self.layout.sizes[:, None] / bounds[0]
        place = np.zeros(bounds.shape[-1], dtype=np.int64)
        right = np.ones(bounds.shape[-1], dtype=bool)
        for d, option in enumerate(self.grid.options):
            at = np.minimum(np.searchsorted(option, inside[d]), len(option) - 1)
            right &= option[at] == inside[d]
            place = place * len(option) + at
        busy = np.take_along_axis(bounds[0], order[0].astype(np.intp), axis=0) > 1.0  # by position
        last = self.layout.D - 1 - busy[::-1].argmax(axis=0)
        loop = np.where(busy.any(axis=0), order[0][last, np.arange(len(last))], 0)
        return np.where(right, self.index[place, loop], -1)

    def holds(self, number: int) -> bool:
        """Whether the tile may fit."""
        return self.least.fits(1, self.grid.extents[:, self.outer.tile[number]])

    def moved(self, designs: Designs, classes: Array) -> dict[str, Array]:
        """Bounds and order with this tile and this loop. Factors that come go to the loops in time next to the outermost
        level; of those that go, the ones there go first, then those further in, then those over instances."""
        lay, wanted = self.layout, self.grid.extents[:, self.outer.tile[classes]]
        bounds, order = designs.columns["bounds"].copy(), designs.columns["order"].copy()
        spatial = [m.spatial for m in lay.problem.mapping_levels]
        giving = sorted(range(1, len(bounds)), key=lambda group: (spatial[group], group))
        loop = self.outer.loop[classes]
        given = bounds, order, lay.sizes, wanted, loop, *self.primes, np.array(giving)
        if native.fast is not None and native.fast.moved(*given) is not None:
            return {"bounds": bounds, "order": order}
        for d, size in enumerate(lay.sizes):
            divisors = Divisors.of(int(size))
            held = divisors.within(bounds[:, d])  # (primes, L, B)
            spare = held[:, 1:].sum(axis=1) - divisors.within(wanted[d])
            held[:, giving[0]] += np.maximum(-spare, 0)
            np.maximum(spare, 0, out=spare)
            for group in giving:
                gone = np.minimum(spare, held[:, group])
                held[:, group] -= gone
                spare -= gone
            bounds[1:, d] = 1.0
            for powers, count in zip(divisors.powers, held, strict=True):
                bounds[1:, d] *= powers[count[1:]]
            bounds[0, d] = size / bounds[1:, d].prod(axis=0)
        position = np.where(order[0] == loop, lay.D, np.arange(lay.D)[:, None])
        order[0] = np.take_along_axis(order[0], np.argsort(position, axis=0, kind="stable"), axis=0)
        return {"bounds": bounds, "order": order}
