"""Technologies as tables: published energies by capacity, DRAM standard and word width, scaled to one process node."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from sparsemap.errors import SpecError, nearest
from sparsemap.pieces.contracts import Technology, unit
from sparsemap.problem.levels import Level
from sparsemap.spec.units import format_bits

from .technology_tables import (
    KIB_BITS,
    ChannelTable,
    ClockTable,
    MacTable,
    MemoryTable,
    ScalingRow,
    WireTable,
    either,
    on_line,
    positive,
    scaled,
    share,
)  # fmt: skip

GHZ = 1e9
WRITES = ("write", "fill", "update")
MOST_TURNS = 64
"""Most cycles between two accesses to a bank."""
BANKS = 4
"""Banks accessed in turn without a doubt."""


@attrs.frozen(kw_only=True)
class TableTechnology(Technology):
    """Energies from published tables, each scaled from the source's node and voltage to the technology's."""

    type_name: ClassVar[str] = "table"

    node_nm: float = attrs.field(validator=positive)
    """The process node of the technology."""
    voltage: float = attrs.field(validator=positive, metadata=unit("V"))
    """The supply voltage of the technology."""
    scaling: tuple[ScalingRow, ...] = attrs.field(validator=attrs.validators.min_len(1))
    """Scaling equations by node (Stillmaker & Baas, Integration 58, 2017)."""
    memories: Mapping[str, MemoryTable] = attrs.field(factory=dict)
    """On-chip energies by memory class, such as `sram`; a level with `cells = "hp"` uses `sram-hp`."""
    off_chip_pj_per_bit: Mapping[str, float] = attrs.field(factory=dict)
    """Energies by the `standard` of an off-chip level, such as `lpddr4`; not scaled with the node."""
    off_chip_channels: Mapping[str, ChannelTable] = attrs.field(factory=dict)
    """Power and interfaces of the channels of off-chip levels by `standard`; absent: none."""
    mac: MacTable
    """Energies of a multiply-accumulate."""
    gated_fraction: float = attrs.field(default=0.0, validator=share)
    """Energy of a gated access or MAC, as a share of a full access or MAC."""
    skipped_fraction: float = attrs.field(default=0.0, validator=share)
    """Energy of a skipped access or MAC, as a share of a full access or MAC."""
    gated_residual: float = attrs.field(default=0.0, validator=share)  # type: ignore[misc]
    """Minimum energy of a gated access or MAC under the charge `gated`, as a share of a full access or MAC."""
    ends: tuple[str, ...] = ()
    """Technologies with the lowest and the highest published figures; a comparison has to hold in each."""
    queues: str = ""
    """Memory class of the queues of compute units (`shared_words`), sized by their words; absent: queues are free."""
    clocks: ClockTable | None = None
    """Highest clocks of compute units; absent: unknown."""
    wires: WireTable | None = None
    """Wires between levels, for the charge `network`."""
    cell_um2: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    """Area of one bit's cell at `node_nm`: the minimum area per bit of all memory rows. Absent: areas are not checked."""

    def __attrs_post_init__(self) -> None:
        if self.cell_um2 is None:
            return
        for name, table in self.memories.items():
            for kib, area_mm2 in zip(table.capacity_kib, table.area_mm2, strict=False):
                per_bit_um2 = 1e6 * area_mm2 * self._area_factor(table) / (kib * KIB_BITS)
                if per_bit_um2 < self.cell_um2:
                    least = f"the cell's {self.cell_um2:g} (cell_um2) or more"
                    said = f"{kib:g} KiB take {per_bit_um2:.3g} um2 a bit, expected {least}"
                    raise SpecError.at(f"technology '{self.name}'", f"memories.{name}.area_mm2", said)

    def _area_factor(self, table: MemoryTable) -> float:
        return either(table.area_factor, (self.node_nm / table.node_nm) ** 2)

    def scale(self, from_nm: float, from_voltage: float) -> float:
        """Factor for energies given at another node and voltage."""
        return self._relative_energy(self.node_nm, self.voltage) / self._relative_energy(from_nm, from_voltage)

    def energy_pj(self, level: Level, action: str) -> float:
        state, base = self._split(action)
        metadata = base.startswith("metadata_")
        write = base.removeprefix("metadata_") in WRITES
        bits = level.metadata_width if metadata else level.word_bits
        capacity = level.capacity_bits
        if metadata and not level.shared_capacity and level.metadata_capacity_bits is not None:
            capacity = level.metadata_capacity_bits
        return state * bits * self._pj_per_bit(level, capacity, write)

    def mac_pj(self, bits: int, action: str) -> float:
        shares = {"compute": 1.0, "gated": self.gated_fraction, "skipped": self.skipped_fraction}
        if action not in shares:
            raise ValueError(f"'{action}' is no action of a compute unit; expected one of {', '.join(shares)}")
        return shares[action] * self.mac.pj(bits) * self.scale(self.mac.node_nm, self.mac.voltage)

    @property
    def wire_pj_per_bit_mm(self) -> float:  # type: ignore[override]
        return self.wires.pj_per_bit_mm * (self.voltage / self.wires.voltage) ** 2 if self.wires else 0.0

    def clock_hz(self) -> float | None:
        if self.clocks is None or self.clocks.node_nm != self.node_nm:
            return None
        low, *_, high = voltages = self.clocks.voltage
        if not low <= self.voltage <= high:
            text = f"is {self.voltage:g} V, expected {low:g} to {high:g} V, the range of clocks.voltage"
            raise SpecError.at(f"technology '{self.name}'", "voltage", text)
        return GHZ * on_line(self.voltage, voltages, self.clocks.ghz)

    def add_pj(self, bits: int) -> float:
        return self.mac.add(bits) * self.scale(self.mac.node_nm, self.mac.voltage)

    def queue_pj(self, words: int, bits: int) -> float:
        if not (self.queues and words):
            return 0.0
        table = self._known("memories", self.queues, "named by 'queues'")
        factor = either(table.energy_factor, self.scale(table.node_nm, table.voltage))
        return bits * sum(table.pj_per_bit(words * bits, write, factor) for write in (False, True))

    def queue_mm2(self, words: int, bits: int) -> float:
        if not (self.queues and words):
            return 0.0
        table = self._known("memories", self.queues, "named by 'queues'")
        return table.by_capacity(table.area_mm2, words * bits) * self._area_factor(table) if table.area_mm2 else 0.0

    def leakage_mw(self, level: Level) -> float:
        """Static power of a level in mW. A table without a `leakage_factor` scales with the device width, so with the
        node, and with the voltage: the current per width of a device class hardly changes between nodes. An off-chip
        level has the power of its channels between transfers."""
        channel, count = self._channels(level)
        if channel:
            return count * channel.idle_mw(getattr(level.memory, "idle", "open"))
        return sum(
            table.by_capacity(table.leakage_mw, bits)
            * either(table.leakage_factor, (self.node_nm / table.node_nm) * (self.voltage / table.voltage))
            for table, bits in self._arrays(level)
            if table.leakage_mw
        )

    def _channels(self, level: Level) -> tuple[ChannelTable | None, int]:
        """Channel of an off-chip level, and how many its bandwidth takes, at least one; None if not known."""
        channel = self.off_chip_channels.get(getattr(level.memory, "standard", None) or "")
        words = max(level.bandwidth or 0.0, level.read_bandwidth or 0.0, level.write_bandwidth or 0.0)
        gigabytes_per_s = words * level.word_bits / 8 * level.clock_hz / GHZ
        return channel, max(1, math.ceil(gigabytes_per_s / channel.gigabytes_per_s - 1e-9)) if channel else 0

    def doubts(self, level: Level) -> list[str]:
        known = {name for name, one in self.off_chip_channels.items() if one.phy_mm2}
        standard = getattr(level.memory, "standard", None) or ""
        text = f"the interface of {standard} takes no area (off_chip_channels.{standard}.phy_mm2 is unknown)"
        found = [text] if standard and known and standard not in known else []
        for table, bits in self._arrays(level):
            last_bits = table.capacity_kib[-1] * KIB_BITS
            if bits > last_bits:
                text = "{} are beyond the table of {}, up to {}; energy and area follow its last two rows"
                found.append(text.format(format_bits(bits), level.memory_class, format_bits(last_bits)))
            turns = self._cycles(table, bits, level.clock_hz)
            if turns > BANKS:
                text = "two accesses to an array are {:.0f} cycles apart at {:g} GHz; more than {} banks in turn are no memory"
                found.append(text.format(turns, level.clock_hz / 1e9, BANKS))
        return found

    def area_mm2(self, level: Level) -> float:
        """Area of the memories of a level, in as many banks as its ports take: at least the area of one array; of an
        off-chip level, the interfaces of its channels."""
        channel, count = self._channels(level)
        interface_mm2 = count * (channel.phy_mm2 or 0.0) if channel else 0.0
        return interface_mm2 + sum(
            self._banked_mm2(level, table, bits) for table, bits in self._arrays(level) if table.area_mm2
        )

    def _banked_mm2(self, level: Level, table: MemoryTable, bits: float) -> float:
        """Each bank serves `access_bits` per cycle of its own: the fewest banks that serve the bandwidth."""
        ports = level.words_per_cycle * level.word_bits / table.access_bits
        turns = (float(n) for n in range(1, MOST_TURNS + 1))
        slow = next(
            (n for n in turns if self._cycles(table, bits / max(1.0, ports * n), level.clock_hz) <= n), MOST_TURNS
        )
        banks = max(1.0, math.ceil(ports * slow - 1e-9))
        whole_mm2, banked_mm2 = (table.by_capacity(table.area_mm2, bits / n) * n for n in (1.0, banks))
        return max(whole_mm2, banked_mm2) * self._area_factor(table)

    def _cycles(self, table: MemoryTable, bits: float, clock_hz: float) -> float:
        """Clock cycles between two accesses to an array."""
        if not table.cycle_ns:
            return 1.0
        cycle_ns = table.by_capacity(table.cycle_ns, bits) * self.node_nm / table.node_nm
        return max(1.0, math.ceil(cycle_ns * clock_hz * 1e-9 - 1e-9))

    def mac_area_mm2(self, bits: int) -> float:
        return self.mac.area_um2(bits) * 1e-6 * (self.node_nm / self.mac.node_nm) ** 2

    def _arrays(self, level: Level) -> list[tuple[MemoryTable, float]]:
        """Limited on-chip memories of one instance, with their bits."""
        if getattr(level.memory, "standard", None) is not None:
            return []
        table = self._table(level)
        return [(table, bits) for bits in self._sizes(level)]

    def _sizes(self, level: Level) -> list[float]:
        """Bits of the limited memories of one instance."""
        sizes = [level.capacity_bits] if level.shared_capacity else [level.capacity_bits, level.metadata_capacity_bits]
        return [bits for bits in sizes if bits is not None]

    def _relative_energy(self, nm: float, voltage: float) -> float:
        nodes = [row.node_nm for row in self.scaling]
        if not min(nodes) <= nm <= max(nodes):
            span = f"{min(nodes):g} to {max(nodes):g} nm"
            raise SpecError.at(f"technology '{self.name}'", "scaling", f"spans {span}, which leaves out {nm:g} nm")
        return scaled(tuple(self.scaling), nm, voltage)

    def _split(self, action: str) -> tuple[float, str]:
        """Share of a full access for an action, and the access: read, write, or with prefix metadata_."""
        state, base = 1.0, action
        for prefix, fraction in (("gated_", self.gated_fraction), ("skipped_", self.skipped_fraction)):
            if action.startswith(prefix):
                state, base = fraction, action.removeprefix(prefix)
        if base.removeprefix("metadata_") not in ("read", *WRITES):
            raise ValueError(f"'{action}' is no action of a memory level")
        return state, base

    def _pj_per_bit(self, level: Level, capacity_bits: float | None, write: bool) -> float:
        standard = getattr(level.memory, "standard", None)
        if standard is not None:
            channel, _ = self._channels(level)
            more = channel.transfer_pj_per_bit(getattr(level.memory, "idle", "open")) if channel else 0.0
            return float(self._given("off_chip_pj_per_bit", "standard", standard, level)) + more
        table = self._table(level)
        factor = either(table.energy_factor, self.scale(table.node_nm, table.voltage))
        return table.pj_per_bit(capacity_bits, write, factor)

    def _table(self, level: Level) -> MemoryTable:
        cells = level.memory.cells
        name = f"{level.memory_class}-{cells}" if cells else level.memory_class
        return self._given("memories", "class and cells" if cells else "class", name, level)

    def _given(self, field: str, what: str, name: str, level: Level) -> Any:
        return self._known(field, name, f"but level '{level.name}' is of this {what}")

    def _known(self, field: str, name: str, why: str) -> Any:
        known = getattr(self, field)
        if name not in known:
            guess = nearest(name, known)
            text = f"not given, {why}; {f'did you mean {guess!r}? T' if guess else 't'}here is {', '.join(known) or 'none'}"
            raise SpecError.at(f"technology '{self.name}'", f"{field}.{name}", text)
        return known[name]
