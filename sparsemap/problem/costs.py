"""Costs by name: those that a cost model gives, and those that follow from them and the chip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..pieces.contracts.base import Array, Rows
from .chip import Chip

BASIC = ("energy_pj", "cycles")
"""Costs that every cost model gives."""
PICO = 1e-12


@attrs.frozen
class Derived:
    """A cost that follows from others."""

    unit: str
    of: Callable[[Costs, Any], Array]
    """From the other costs and the chip."""


DERIVED: dict[str, Derived] = {
    "edp": Derived("pJ * cycles", lambda costs, chip: costs["energy_pj"] * costs["cycles"]),
    "seconds": Derived("s", lambda costs, chip: costs["cycles"] / chip.clock_hz),
    "power_w": Derived("W", lambda costs, chip: costs["energy_pj"] * PICO / costs["seconds"]),
    "edp_js": Derived("J * s", lambda costs, chip: costs["energy_pj"] * PICO * costs["seconds"]),
    "area_mm2": Derived("mm2", lambda costs, chip: costs["cycles"] * 0.0 + chip.total_area_mm2),
}
"""By name. All but `edp` need the chip: power is the mean over the time of the workload, area that of all instances."""
FALLING = ("power_w",)
"""Those that may fall when energy or cycles grow."""
ALIASES = {"energy": "energy_pj", "delay": "cycles", "power": "power_w", "area": "area_mm2"}
"""Costs by the names of objectives."""
UNITS = {"energy_pj": "pJ", "cycles": "cycles"} | {name: derived.unit for name, derived in DERIVED.items()}


class Costs(Mapping[str, Any]):
    """Costs of B designs, (B,) float64 each, infinity where the design is invalid; or of one design, a float each.

    `own` are those of the cost model, `energy_pj` and `cycles` among them; what is in `DERIVED` follows, unless the model
    gives it.
    """

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
        """The same designs on a chip, from which other costs follow."""
        return Costs(self.own, chip)

    def each(self, change: Callable[[Array], Any]) -> Costs:
        """These costs with every array of the cost model changed."""
        return Costs({name: change(column) for name, column in self.own.items()}, self.chip)

    def take(self, rows: Rows | slice) -> Costs:
        return self.each(lambda column: column[rows])

    def of(self, row: int) -> Costs:
        """Those of one design, as floats."""
        return self.each(lambda column: float(column[row]))

    def floats(self) -> dict[str, float]:
        """Of one design, all that are known by name."""
        return {name: float(value) for name, value in self.items()}

    @staticmethod
    def join(parts: Sequence[Costs]) -> Costs:
        """Costs of one batch after the other; all name the same."""
        own = {name: np.concatenate([part.own[name] for part in parts]) for name in parts[0].own}
        return Costs(own, parts[0].chip)


def costs_of(given: Any) -> Any:
    """Costs as such, from a mapping; anything else as it is, for whoever checks it."""
    return Costs(given) if isinstance(given, Mapping) and not isinstance(given, Costs) else given
