"""Storage levels of a hardware with units resolved, and their groups of loops and S/G places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..errors import Mistake, SpecError
from ..pieces.contracts import MemoryLevel, Technology
from ..pieces.data_specs import Hardware
from ..pieces.registry import Registry
from ..spec import units
from ..spec.structuring import LARGEST, collecting

FASTEST = "max"
"""The clock of a hardware that follows its technology."""
BEYOND = 3.5
"""Largest clock over the technology's: the fastest processor at 12 nm has 4.35 GHz (Ryzen 7 2700X, WikiChip)."""


@attrs.frozen
class Level:
    """A storage level with units resolved; all figures are per instance."""

    name: str
    memory: MemoryLevel
    index: int
    """0 is the outermost level."""
    instances: int
    fanout: int
    """Instances of the next inner level (or of the compute unit) per instance."""
    word_bits: int
    metadata_width: int
    capacity_bits: float | None
    """None: unlimited."""
    metadata_capacity_bits: float | None
    """Capacity of a separate metadata memory; None: unlimited."""
    shared_capacity: bool
    """Whether data and metadata share `capacity_bits`."""
    read_bandwidth: float | None
    """Words per cycle; None: unlimited."""
    write_bandwidth: float | None
    bandwidth: float | None
    """Reads and writes together, words per cycle."""
    gate_skip: bool
    clock_hz: float

    @property
    def words_per_cycle(self) -> float:
        """Words read and written per cycle; 0: unlimited."""
        if self.bandwidth is not None:
            return self.bandwidth
        return (self.read_bandwidth or 0.0) + (self.write_bandwidth or 0.0)

    @property
    def memory_class(self) -> str:
        return self.memory.type_name

    @property
    def part(self) -> str:
        """Name of its area on the chip: an unlimited level has an interface there."""
        return self.name if self.capacity_bits is not None else f"{self.name} interface"


@attrs.frozen
class MappingLevel:
    """A group of loops: `L{i}_T` (temporal) or `L{i}_S` (spatial) of storage level i, 1 being the outermost."""

    name: str
    storage: int
    """Index of the storage level, 0 being the outermost."""
    spatial: bool
    limit: int
    """Largest product of the bounds of a spatial group; 0 for temporal groups."""


@attrs.frozen
class Place:
    """Place of a skip/gate mechanism: a storage level, or the compute unit (`storage` is None)."""

    name: str
    storage: int | None


def clock_of(hardware: Hardware, technology: Technology | None = None) -> float:
    """Hz of all levels and compute units; `SpecError` for a clock far above the technology's."""
    highest = technology.clock_hz() if technology else None
    name = technology.label if technology else ""
    if hardware.clock == FASTEST:
        if highest:
            return highest
        raise SpecError.at(
            "", "", f"is {FASTEST!r}, but technology {name!r} gives no clock; expected a number with a unit"
        )
    clock = units.frequency_hz(hardware.clock)
    if highest and clock > BEYOND * highest:
        text = f"is {clock / 1e9:g} GHz, expected at most {BEYOND * highest / 1e9:.3g} GHz"
        raise SpecError.at("", "", f"{text}, {BEYOND:g} times the clock of compute units in {name}; or {FASTEST!r}")
    return clock


def levels_of(hardware: Hardware, registry: Registry, technology: Technology | None = None) -> tuple[Level, ...]:
    """Storage levels, outermost first. `SpecError` with every mistake of the clock and the levels."""
    mistakes: list[Mistake] = []
    clock = 1.0
    with collecting(mistakes, "clock"):
        clock = clock_of(hardware, technology)
    levels: list[Level] = []
    instances = 1
    for index, table in enumerate(hardware.levels):
        with collecting(mistakes, f"levels[{index}]"):
            memory = _memory(table, registry)
            own = memory.word_bits if isinstance(memory.word_bits, int) else hardware.word_bits
            level = _level(index, memory, instances, clock, own)
            if any(level.name == other.name for other in levels):
                raise SpecError.at("", "name", f"'{level.name}' names two levels")
            levels.append(level)
            instances *= level.fanout
    if instances >= LARGEST:
        mistakes.append(Mistake("", "levels", "fan-outs multiply up to 2^63 or more, too large to be counted"))
    if mistakes:
        raise SpecError(mistakes)
    return tuple(levels)


def _memory(table: Mapping[str, Any], registry: Registry) -> MemoryLevel:
    """The memory of a level; a level's key `class` is the memory's `type`."""
    entries = dict(table)
    if "class" in entries:
        entries["type"] = entries.pop("class")
    try:
        return registry.build("memory-level", entries)
    except SpecError as error:
        raise SpecError(
            attrs.evolve(item, path="class") if (item.file, item.path) == ("", "type") and "class" in table else item
            for item in error.mistakes
        ) from error


def _level(index: int, memory: MemoryLevel, instances: int, clock_hz: float, word_bits: int) -> Level:
    mistakes: list[Mistake] = []

    def in_units(key: str) -> float | None:
        with collecting(mistakes, key):
            if key.endswith("bandwidth"):
                return units.bandwidth_words_per_cycle(getattr(memory, key), clock_hz, word_bits, memory.fanout or 1)
            return memory.usable_bits(units.capacity_bits(getattr(memory, key), word_bits))
        return None

    level = Level(
        name=memory.name or f"L{index + 1}",
        memory=memory,
        index=index,
        instances=instances,
        fanout=memory.fanout or 1,
        word_bits=word_bits,
        metadata_width=memory.metadata_width,
        capacity_bits=in_units("capacity"),
        metadata_capacity_bits=in_units("metadata_capacity"),
        shared_capacity=memory.metadata_capacity is None,
        read_bandwidth=in_units("read_bandwidth"),
        write_bandwidth=in_units("write_bandwidth"),
        bandwidth=in_units("bandwidth"),
        gate_skip=memory.gate_skip,
        clock_hz=clock_hz,
    )
    if mistakes:
        raise SpecError(mistakes)
    return level
