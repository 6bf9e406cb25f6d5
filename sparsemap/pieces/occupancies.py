"""Occupancies of densities, with every answer checked: errors against the contract name the method, file and line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import Mistake, PluginError
from .boundary import guarded

if TYPE_CHECKING:
    from .contracts.base import Array, Nonzeros, Probabilities
    from .contracts.workload import DensityModel, Occupancy

Tile = tuple[int, ...]
NEAR = 1e-9
"""Tolerance of probabilities."""
SUM = 1e-6
"""Tolerance of a sum of probabilities."""
TWICE = 1 << 12
"""Largest tile, in words, for asking the first distribution twice."""
SHARES = ("empty_within", "empty_within_many", "empty_within_real", "timeloop_empty_within")


def checked(density: DensityModel, shape: Tile) -> Any:
    """The `Occupancy` of a tensor of this shape, with checked results."""
    with guarded(density, "occupancy"):
        own = density.occupancy(shape)
    return CheckedOccupancy(own, f"density '{density.name or density.type_name}'")


@attrs.define(slots=False, unsafe_hash=True)
class CheckedOccupancy:
    """An occupancy with checks; all other methods and attributes are unchanged."""

    own: Occupancy
    density_name: str = attrs.field(eq=False)
    _repeated: bool = attrs.field(default=False, init=False, eq=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.own, name)
        if name not in SHARES:
            return found

        def shares(*given: Any) -> Array:
            with guarded(self.density_name, name):
                value = np.asarray(found(*given), dtype=np.float64)
            if value.size and not (value.min() >= -NEAR and value.max() <= 1.0 + NEAR):
                raise self._wrong(name, f"{_strange(value, 1.0 + NEAR):g}, expected probabilities")
            return value

        return shares

    def distribution(self, tile: Tile) -> tuple[Nonzeros, Probabilities]:
        k, p = self._distribution(tile)
        if not self._repeated and math.prod(tile) <= TWICE:
            self._repeated = True
            again = self._distribution(tile)
            if not (np.array_equal(k, again[0]) and np.array_equal(p, again[1])):
                raise self._wrong("distribution", f"other values when asked again for a tile of {_size(tile)}")
        return k, p

    def _distribution(self, tile: Tile) -> tuple[Nonzeros, Probabilities]:
        with guarded(self.density_name, "distribution"):
            k, p = (np.asarray(part, dtype=np.float64) for part in self.own.distribution(tile))
        words, of = math.prod(tile), f"for a tile of {_size(tile)}"
        if k.ndim != 1 or k.shape != p.shape or not k.size:
            raise self._wrong("distribution", f"arrays of shapes {k.shape} and {p.shape} {of}, expected (K,) twice")
        if not (k[0] >= 0.0 and k[-1] <= words and (k.size == 1 or (k[1:] > k[:-1]).all())):
            raise self._wrong(
                "distribution", f"occupancies {k[0]:g} to {k[-1]:g} {of}, expected 0 to {words}, ascending"
            )
        if not (k == np.floor(k)).all():
            raise self._wrong("distribution", f"occupancy {k[k != np.floor(k)][0]:g} {of}, expected whole numbers")
        if not (p.min() >= -NEAR and abs(p.sum() - 1.0) <= SUM):
            found = f"{_strange(p, math.inf):g}" if not p.min() >= -NEAR else f"a sum of {p.sum():.9g}"
            raise self._wrong("distribution", f"{found} {of}, expected probabilities that add up to 1")
        return k, p

    def empty(self, tile: Tile) -> float:
        return self._number("empty", tile, 1.0)

    def largest(self, tile: Tile) -> float:
        return self._number("largest", tile, float(math.prod(tile)))

    def _number(self, method: str, tile: Tile, most: float) -> float:
        with guarded(self.density_name, method):
            value = float(getattr(self.own, method)(tile))
        if not -NEAR <= value <= most * (1.0 + NEAR):
            raise self._wrong(method, f"{value:g} for a tile of {_size(tile)}, expected 0 to {most:g}")
        return value

    def _wrong(self, method: str, found: str) -> PluginError:
        from .faults import definition

        return PluginError([Mistake(definition(self.own, method), self.density_name, f"{method} returned {found}")])


def _strange(values: Array, most: float) -> float:
    """The first value outside 0 to `most`."""
    return float(values[~((values >= -NEAR) & (values <= most))].flat[0])


def _size(tile: Tile) -> str:
    return " x ".join(map(str, tile))
