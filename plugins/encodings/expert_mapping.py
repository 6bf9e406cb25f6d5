"""One mapping that an expert would defend: what stays fixed while only formats are searched (SAGE-like, Section V-D).

It is found from sizes and hardware alone, as if all tensors were dense, so that it does not change with sparsity:

1. Fan-outs, from the innermost: the bounds that use most instances; among those within a tenth of the best, the ones
   that need the fewest words per step. Outer fan-outs take dimensions of the stationary tensor, so that no partial sums
   (or copies) cross processing elements, unless that leaves more than half of them idle.
2. Loop orders: the dimensions that do not move the stationary tensor are innermost on every level.
3. Tiles: prime factors move between the temporal levels, one at a time, whichever lowers the energy of dense traffic
   most, as long as the tiles fill no more than a share of any buffer; the rest is room for metadata or a second buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array
from sparsemap.problem.primes import divisors, prime_factors

from .constant import Constant
from .dense_traffic import DenseTraffic
from .prime_factors import PrimeFactors

if TYPE_CHECKING:
    from sparsemap.problem.problem import Problem

NEAR_BEST = 0.9
"""Share of the best use of a fan-out from which on fewer words count more."""


@attrs.frozen(kw_only=True)
class ExpertMapping(Constant):
    """No genes; provides `order` and `bounds` of a mapping with one stationary tensor."""

    type_name: ClassVar[str] = "expert-mapping"
    provides: ClassVar[tuple[str, ...]] = ("order", "bounds")

    stationary: str = "role:Z"
    """The tensor that stays in place longest, by role or name: `role:Z` output stationary, `role:Q` weight stationary."""
    fill: float = attrs.field(default=0.5, validator=[attrs.validators.gt(0), attrs.validators.le(1)])
    """Largest share of a buffer that dense tiles fill; more only if a single step needs it."""
    padding: str = attrs.field(default="prime", validator=attrs.validators.in_(("prime", "smooth", "none")))
    """Padding of sizes, as in `prime-factors`."""

    def padded_sizes(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        return PrimeFactors(padding=self.padding).padded_sizes(sizes)

    def constants(self, problem: Problem) -> dict[str, Array]:
        stays = problem.tensor(self.stationary, problem.files.get("space", ""), self._path("stationary"))
        moving = problem.tensors[stays].dims
        inside = [i for i, dim in enumerate(problem.dims) if dim not in moving]
        outside = [i for i, dim in enumerate(problem.dims) if dim in moving]
        order = np.array([*outside, *inside], dtype=np.int8)
        dense = DenseTraffic(problem, order)
        bounds = self._spread(problem, dense, outside)
        return {"order": np.tile(order, (len(bounds), 1)), "bounds": self._tiled(problem, dense, bounds)}

    def _spread(self, problem: Problem, dense: DenseTraffic, relevant: list[int]) -> Array:
        """(L, D) with the spatial bounds set, and all that is left in the outermost level."""
        sizes = np.array([problem.sizes[dim] for dim in problem.dims], dtype=np.float64)
        bounds = np.ones((len(problem.mapping_levels), len(sizes)))
        spatial = [i for i, level in enumerate(problem.mapping_levels) if level.spatial]
        for place in reversed(spatial):
            left = sizes / bounds.prod(axis=0)
            found = spatial_bounds(left, problem.mapping_levels[place].limit)
            trials = np.repeat(bounds[:, :, None], len(found), axis=2)
            trials[place] = found.T
            fits = dense.fits(trials, self.fill)
            fits = fits if fits.any() else dense.fits(trials, 1.0)
            fits[0] |= not fits.any()  # the first uses one instance: nothing smaller is left to try
            found, trials = found[fits], trials[:, :, fits]
            used = found.prod(axis=1)
            if place != spatial[-1]:
                fixed = np.delete(found, relevant, axis=1).prod(axis=1) == 1
                if used[fixed].max() > 0.5 * used.max():
                    used = np.where(fixed, used, 0.0)
            words = np.where(used >= NEAR_BEST * used.max(), dense.words(trials, place), np.inf)
            bounds = trials[:, :, int(np.lexsort((-used, words))[0])]
        bounds[0] *= sizes / bounds.prod(axis=0)
        return bounds

    def _tiled(self, problem: Problem, dense: DenseTraffic, bounds: Array) -> Array:
        """Moves prime factors between temporal levels until no single move helps."""
        temporal = [i for i, level in enumerate(problem.mapping_levels) if not level.spatial]
        best = dense.energy(bounds[:, :, None])[0]
        while True:
            trials = []
            for source in temporal:
                for dim, bound in enumerate(bounds[source].tolist()):
                    for prime in dict.fromkeys(prime_factors(round(bound))):
                        for target in temporal:
                            trial = bounds.copy()
                            trial[source, dim] /= prime
                            trial[target, dim] *= prime
                            trials.append(trial)
            if not trials:
                return bounds
            moved = np.stack(trials, axis=2)
            energy = np.where(dense.fits(moved, self.fill), dense.energy(moved), np.inf)
            chosen = int(energy.argmin())
            if not energy[chosen] < best * (1 - 1e-9):
                return bounds
            best, bounds = energy[chosen], moved[:, :, chosen]


def spatial_bounds(sizes: Array, limit: int) -> Array:
    """All bounds that divide the sizes, with a product of up to `limit`, (n, D) float64; the first is all ones."""
    found = np.ones((1, 0))
    for size in sizes.astype(np.int64).tolist():
        factors = np.array([divisor for divisor in divisors(size) if divisor <= limit], dtype=np.float64)
        found = np.concatenate([np.repeat(found, len(factors), axis=0), np.tile(factors, len(found))[:, None]], axis=1)
        found = found[found.prod(axis=1) <= limit]
    return found
