"""Costs by name: the costs from a cost model, and the costs derived from these and the chip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..pieces.contracts.base import Array, Rows
from .chip import Chip

BASIC = ("energy_pj", "cycles")
"""Costs common to all cost models."""
PICO = 1e-12


@attrs.frozen
class Derived:
    """A cost derived from others."""

    unit: str
    of: Callable[[Costs, Any], Array]
    """Formula over the other costs and the chip."""


DERIVED: dict[str, Derived] = {
    "edp": Derived("pJ * cycles", lambda costs, chip: costs["energy_pj"] * costs["cycles"]),
    "seconds": Derived("s", lambda costs, chip: costs["cycles"] / chip.clock_hz),
    "power_w": Derived("W", lambda costs, chip: costs["energy_pj"] * PICO / costs["seconds"]),
    "edp_js": Derived("J * s", lambda costs, chip: costs["energy_pj"] * PICO * costs["seconds"]),
    "area_mm2": Derived("mm2", lambda costs, chip: costs["cycles"] * 0.0 + chip.total_area_mm2),
}
"""Derived costs by name. All but `edp` need the chip: power is the mean over the time of the workload, area covers all
instances."""
FALLING = ("power_w",)
"""Derived costs not monotone in energy and cycles."""
ALIASES = {"energy": "energy_pj", "delay": "cycles", "power": "power_w", "area": "area_mm2"}
"""Costs by the names of objectives."""
UNITS = {"energy_pj": "pJ", "cycles": "cycles"} | {name: derived.unit for name, derived in DERIVED.items()}


class Costs(Mapping[str, Any]):
    """Costs of B designs, (B,) float64 each, infinity for invalid designs; or of a single design, a float each.

    `own` holds the costs of the cost model, `energy_pj` and `cycles` among them. Costs in `DERIVED` are derived unless
    the model gives them."""

    __slots__ = ("chip", "own")

    def __init__(self, own: Mapping[str, Any], chip: Chip | None = None) -> None:
        self.own, self.chip = own, chip

    def __getitem__(self, name: str) -> Any:
        name = name if name in self.own else ALIASES.get(name, name)
        if name in self.own:
            return self.own[name]
        if name not in DERIVED or (self.chip is None and name != "edp"):
            raise KeyError(name)
        with np.errstate(all="ignore"):
            return DERIVED[name].of(self, self.chip)

    def __iter__(self) -> Iterator[str]:
        more = DERIVED if self.chip is not None else ("edp",)
        return iter((*self.own, *(name for name in more if name not in self.own)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Costs({', '.join(self)})"

    def on(self, chip: Chip) -> Costs:
        """The same costs on a chip, for the costs derived from the chip."""
        return Costs(self.own, chip)

    def each(self, change: Callable[[Array], Any]) -> Costs:
        """Costs with `change` applied to every array of the cost model."""
        return Costs({name: change(column) for name, column in self.own.items()}, self.chip)

    def take(self, rows: Rows | slice) -> Costs:
        return self.each(lambda column: column[rows])

    def of(self, row: int) -> Costs:
        """Costs of a single design, as floats."""
        return self.each(lambda column: float(column[row]))

    def floats(self) -> dict[str, float]:
        """All costs of a single design by name."""
        return {name: float(value) for name, value in self.items()}

    @staticmethod
    def join(parts: Sequence[Costs]) -> Costs:
        """Concatenated costs of several batches with the same names."""
        own = {name: np.concatenate([part.own[name] for part in parts]) for name in parts[0].own}
        return Costs(own, parts[0].chip)


def costs_of(given: Any) -> Any:
    """A mapping as `Costs`; anything else unchanged, to be checked by the caller."""
    return Costs(given) if isinstance(given, Mapping) and not isinstance(given, Costs) else given
