"""Technologies with memories by estimators of the package `hwcomponents`, such as CACTI, and tables for all else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import attrs

from sparsemap.errors import SpecError
from sparsemap.extras import need
from sparsemap.problem.levels import Level

from .technologies import TableTechnology
from .technology_tables import MemoryTable, positive

FIGURES: Mapping[str, tuple[str, tuple[Any, ...], Callable[[Any], float]]] = {
    "read": ("get_action_cost", ("read", {}), lambda cost: 1e12 * cost.energy),
    "write": ("get_action_cost", ("write", {}), lambda cost: 1e12 * cost.energy),
    "leakage": ("get_leak_power", (), lambda watts: 1e3 * watts),
    "area": ("get_area", (), lambda m2: 1e6 * m2),
}
"""Functions of `hwcomponents` with their arguments behind name and attributes; results in pJ, mW and mm2."""


@attrs.frozen(kw_only=True)
class EstimatedMemory:
    """A component of `hwcomponents`. Its attribute `width` is the bits of an access, its attribute `size` the capacity
    in bits."""

    name: str
    """Name of the component, such as `SRAM` (hwcomponents-cacti)."""
    access_bits: int = attrs.field(default=64, validator=positive)
    """Bits of an access."""
    attributes: Mapping[str, Any] = attrs.field(factory=dict)
    """Further attributes, such as `tech_node = 22e-9`."""


@attrs.frozen(kw_only=True, slots=False)
class EstimatedTechnology(TableTechnology):
    """Energies, leakage and areas of memories by estimators of `hwcomponents`; tables for all other figures."""

    type_name: ClassVar[str] = "hwcomponents"

    components: Mapping[str, EstimatedMemory] = attrs.field(validator=attrs.validators.min_len(1))
    """Components by memory class, such as `sram`, or by the `standard` of off-chip levels (energy alone)."""

    def _component(self, level: Level) -> EstimatedMemory | None:
        return self.components.get(getattr(level.memory, "standard", None) or level.memory_class)

    def _on_chip(self, level: Level) -> EstimatedMemory | None:
        """The component of a level on chip; off-chip levels have area and leakage from the tables."""
        return None if getattr(level.memory, "standard", None) else self._component(level)

    def _arrays(self, level: Level) -> list[tuple[MemoryTable, float]]:
        return [] if self._component(level) else super()._arrays(level)

    def _pj_per_bit(self, level: Level, capacity_bits: float | None, write: bool) -> float:
        if (one := self._component(level)) is None:
            return super()._pj_per_bit(level, capacity_bits, write)
        return self._figure(one, capacity_bits, "write" if write else "read") / one.access_bits

    def leakage_mw(self, level: Level) -> float:
        one = self._on_chip(level)
        own = sum(self._figure(one, bits, "leakage") for bits in self._sizes(level)) if one else 0.0
        return super().leakage_mw(level) + own

    def area_mm2(self, level: Level) -> float:
        """Each array serves an access per cycle: as many arrays as the bandwidth takes."""
        if (one := self._on_chip(level)) is None:
            return super().area_mm2(level)
        count = max(1, math.ceil(level.words_per_cycle * level.word_bits / one.access_bits - 1e-9))
        return sum(
            max(self._figure(one, bits, "area"), count * self._figure(one, bits / count, "area"))
            for bits in self._sizes(level)
        )

    @cached_property
    def _figure(self) -> Callable[[EstimatedMemory, float | None, str], float]:
        return lambda one, bits, what: _estimated(
            self.name, one.name, (("width", one.access_bits), *sorted(one.attributes.items())), bits, what
        )


@lru_cache(maxsize=1 << 12)
def _estimated(
    technology: str, name: str, attributes: tuple[tuple[str, Any], ...], size_bits: float | None, what: str
) -> float:
    """A figure of a component, in pJ, mW or mm2; SpecError where no estimator has one."""
    hwcomponents = need("hwcomponents", f"technology '{technology}'", "estimators")
    function, arguments, convert = FIGURES[what]
    given = dict(attributes) | ({} if size_bits is None else {"size": round(size_bits)})
    try:
        found = convert(getattr(hwcomponents, function)(name, given, *arguments))
    except Exception as error:
        why = [line.strip(" |") for line in str(error).splitlines() if "Exception:" in line or "Error:" in line][:1]
        text = f"no estimator has the {what} of {name} with {given}: {(why or str(error).splitlines())[0]}"
        raise SpecError.at(f"technology '{technology}'", "components", text) from error
    if not math.isfinite(found) or found < 0:
        raise SpecError.at(
            f"technology '{technology}'", "components", f"the {what} of {name} with {given} is {found:g}"
        )
    return found
