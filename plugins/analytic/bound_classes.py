"""Classes of designs for searchers: a tile of the level next to the outermost, and the loop innermost around it."""

from __future__ import annotations

from functools import partial

import attrs
import numpy as np

from sparsemap.pieces.contracts import Classes
from sparsemap.pieces.contracts.base import Array
from sparsemap.primes import Divisors
from sparsemap.problem.designs import Designs
from sparsemap.problem.evaluation import Evaluation

from .bound import LowerBound
from .bound_tiles import OuterTiles, TileGrid
from .bound_words import LeastWords
from .inner import functions
from .layout import Layout

DRAWN = 512
"""Number of random tiles of the children, of which the cheapest is used."""


def classes_of(found: LowerBound, least: Evaluation) -> Classes | None:
    """Classes of the bound, with `least` as costs by class; None where the bound has not tried tiles."""
    if found.outer.grid is None:
        return None
    tiles = ClassTable.of(found.words, found.outer, found.outer.grid)
    promising = None
    if found.links.promise is not None:
        way = (least.energy_pj * least.cycles).reshape(-1, len(found.outer.tile)).argmin(axis=0)
        promising = partial(tiles.promising, *found.links.promise, np.minimum(way, len(found.links.promise[0]) - 1))
    return Classes(least, tiles.of_designs, tiles.moved, tiles.holds, ("bounds", "order"), tiles.labels(), promising)


@attrs.frozen(eq=False)
class ClassTable:
    """The class of a design, and moves of designs into classes."""

    layout: Layout
    least: LeastWords
    outer: OuterTiles
    grid: TileGrid
    index: Array
    """(n, D) class of a tile with an innermost loop; -1: the tile fits no level."""
    options: tuple[Array, Array]
    """Options of all dimensions in a row, and the end of each dimension's options; `primes` likewise."""
    primes: tuple[Array, Array]
    inside: tuple[Array, Array, Array]
    """Per option: the places of its divisors among the dimension's options, then of the others; the number of divisors.
    Per dimension: the number of options."""

    @classmethod
    def of(cls, least: LeastWords, outer: OuterTiles, grid: TileGrid) -> ClassTable:
        layout = least.layout
        index = np.full((grid.extents.shape[1], layout.D), -1, dtype=np.int64)
        index[outer.tile, outer.loop] = np.arange(len(outer.tile))
        options = np.concatenate(grid.options), np.cumsum([len(option) for option in grid.options])
        powers = [Divisors.of(int(size)).powers for size in layout.sizes]
        primes = np.array([each[1] for own in powers for each in own], np.int64), np.cumsum([*map(len, powers)])
        divide = [option[:, None] % option == 0.0 for option in grid.options]
        ordered = [np.argsort(~each, axis=1, kind="stable").ravel() for each in divide]
        counts = np.concatenate([each.sum(axis=1) for each in divide])
        inside = np.concatenate(ordered), counts, np.array(grid.shape, np.int64)
        return cls(layout, least, outer, grid, index, options, primes, inside)

    def labels(self) -> dict[str, Array]:
        """Extents of the tile of each class, and the dimension of the innermost loop around the tile."""
        extents, dims = self.grid.extents[:, self.outer.tile].astype(np.int64), self.layout.dims
        return {**dict(zip(dims, extents, strict=True)), "innermost": np.array(dims)[self.outer.loop]}

    def of_designs(self, designs: Designs) -> Array:
        """(B,) class of each design."""
        bounds, order = designs.columns["bounds"], designs.columns["order"]
        found = np.empty(bounds.shape[-1], dtype=np.int64)
        given = np.ascontiguousarray(bounds), np.ascontiguousarray(order), self.layout.sizes
        functions.classes(*given, *self.options, self.index, found)
        return found

    def holds(self, number: int) -> bool:
        """Whether the tile of a class may fit."""
        return self.least.fits(1, self.grid.extents[:, self.outer.tile[number]])

    def moved(self, designs: Designs, classes: Array) -> dict[str, Array]:
        """Bounds and order of designs moved to the tile and loop of `classes`."""
        return self._exchanged(designs, 0, self.grid.extents[:, self.outer.tile[classes]], self.outer.loop[classes])

    def promising(
        self, energy: Array, loops: Array, way: Array, designs: Designs, classes: Array, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Bounds and order of designs moved to promising tiles of the children: the cheapest of random tiles inside the
        tile of the class. `energy`, `loops` (K, n) come from `InnerTiles.promise`; `way` (N,) is the row K of a class."""
        mine, tiles = way[classes], self.outer.tile[classes]
        at = [np.searchsorted(option, self.grid.extents[d, tiles]) for d, option in enumerate(self.grid.options)]
        given = rng.random((self.layout.D, len(tiles), DRAWN)), np.array(at), *self.inside, energy, mine
        found = np.empty(len(tiles), dtype=np.int64)
        functions.cheapest(*given, found)
        fits = np.isfinite(energy[mine, found])
        wanted, loop = self.grid.extents[:, found], loops[mine, found].astype(np.int64)
        columns = self._exchanged(designs, 1, wanted, loop)
        return {name: np.where(fits, column, designs.columns[name]) for name, column in columns.items()}

    def _exchanged(self, designs: Designs, outer: int, wanted: Array, loop: Array) -> dict[str, Array]:
        """Bounds and order with extents `wanted` (D, B) inside mapping level `outer`, and `loop` (B,) innermost around
        them. Added factors go to the first temporal loops inside. Removed factors come from these loops first, then
        from temporal loops further in, then from spatial loops."""
        bounds, order = designs.columns["bounds"].copy(), designs.columns["order"].copy()
        part, turns = bounds[outer:], order[outer:]
        spatial = [m.spatial for m in self.layout.problem.mapping_levels[outer:]]
        giving = sorted(range(1, len(part)), key=lambda group: (spatial[group], group))
        whole = part.prod(axis=0)
        given = part, turns, whole, np.ascontiguousarray(wanted), loop, *self.primes, np.array(giving)
        functions.move(*given, np.empty((3, len(part)), dtype=np.int64))
        return {"bounds": bounds, "order": order}
