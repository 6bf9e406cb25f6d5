"""Technologies as tables: published energies by capacity, DRAM standard and word width, scaled to one process node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import attrs

from sparsemap.errors import SpecError
from sparsemap.inner.arrays import exp, log
from sparsemap.pieces.contracts import Technology, unit
from sparsemap.problem.levels import Level
from sparsemap.spec.units import bandwidth_words_per_cycle, format_bits

KIB_BITS = 8 * 1024
GHZ = 1e9
WRITES = ("write", "fill", "update")
positive: Any = attrs.validators.gt(0)
share: Any = attrs.validators.and_(attrs.validators.ge(0), attrs.validators.le(1))


FARTHEST = log(1 << 20)
"""Largest capacity over the last row of a table, as a logarithm; larger memories cost the same."""
MOST_TURNS = 64
"""Most cycles between two accesses to a bank."""
BANKS = 4
"""Banks accessed in turn without a doubt."""


def _on_line(x: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    """Piecewise linear interpolation at x (xs ascending), extrapolated beyond both ends."""
    if len(xs) == 1:
        return ys[0]
    right = next((i for i in range(1, len(xs) - 1) if x < xs[i]), len(xs) - 1)
    slope = (ys[right] - ys[right - 1]) / (xs[right] - xs[right - 1])
    return ys[right - 1] + slope * (x - xs[right - 1])


def _ascending(instance: Any, attribute: Any, value: Sequence[float]) -> None:
    if not value or any(b <= a for a, b in pairwise(value)):
        raise ValueError(f"'{attribute.name}' must be ascending and not empty")
    if value[0] <= 0:
        raise ValueError(f"'{attribute.name}' must be positive")


def _along(rows: str) -> Callable[[Any, Any, Any], None]:
    """Validator: a positive value for each of the rows, or no values if the column has a default."""

    def check(instance: Any, attribute: Any, value: Sequence[float]) -> None:
        count = len(getattr(instance, rows))
        if not value and attribute.default == ():
            return
        if len(value) != count:
            raise ValueError(f"'{attribute.name}' has {len(value)} values, '{rows}' has {count}")
        if min(value, default=1) <= 0:
            raise ValueError(f"'{attribute.name}' must be positive")

    return check


def _or(own: float | None, usual: float) -> float:
    return usual if own is None else own


def _gigabytes_per_s(level: Level) -> float:
    """Bandwidth of a level in 10^9 bytes per second, with words per cycle at 1 GHz; 0 if unlimited."""
    rates = [level.memory.bandwidth, level.memory.read_bandwidth, level.memory.write_bandwidth]
    words = max(bandwidth_words_per_cycle(rate, GHZ, level.word_bits) or 0.0 for rate in rates)
    return words * level.word_bits / 8


@attrs.frozen(kw_only=True)
class ScalingRow:
    """Energy at a node is proportional to a V^2 + b V + c, with V the supply voltage in volts."""

    node_nm: float = attrs.field(validator=positive)
    """The process node of the row."""
    a: float
    """Coefficient of the square of the voltage."""
    b: float
    """Coefficient of the voltage."""
    c: float
    """The constant part."""


@lru_cache(maxsize=256)
def _scaled(scaling: tuple[ScalingRow, ...], nm: float, voltage: float) -> float:
    """Relative energy at a node and voltage."""
    rows = sorted(scaling, key=lambda row: row.node_nm)
    return _on_line(nm, [row.node_nm for row in rows], [row.a * voltage**2 + row.b * voltage + row.c for row in rows])


@attrs.frozen(kw_only=True)
class MemoryTable:
    """Dynamic energy of one access of `access_bits`, by capacity, as published for one node."""

    source: str = ""
    node_nm: float = attrs.field(validator=positive)
    """The process node of the published energies."""
    voltage: float = attrs.field(validator=positive, metadata=unit("V"))
    """The supply voltage of the published energies."""
    access_bits: int = attrs.field(validator=positive)
    """Bits of one access."""
    extrapolate_down: bool = False
    """Whether memories smaller than the first row follow the line through the first two rows; else they cost the first
    row."""
    capacity_kib: tuple[float, ...] = attrs.field(validator=_ascending)
    """Capacities of the rows, ascending."""
    read_pj: tuple[float, ...] = attrs.field(validator=_along("capacity_kib"))
    """Energy of one read, a number per capacity."""
    write_pj: tuple[float, ...] = attrs.field(validator=_along("capacity_kib"))
    """Energy of one write, a number per capacity."""
    leakage_mw: tuple[float, ...] = attrs.field(default=(), validator=_along("capacity_kib"))
    """Static power by capacity, at the node and voltage of the table; absent: unknown."""
    area_mm2: tuple[float, ...] = attrs.field(default=(), validator=_along("capacity_kib"))
    """Area by capacity; absent: unknown."""
    access_ns: tuple[float, ...] = attrs.field(default=(), validator=_along("capacity_kib"))
    """Time from address to data, at the node of the table; absent: unknown."""
    cycle_ns: tuple[float, ...] = attrs.field(default=(), validator=_along("capacity_kib"))
    """Time between two accesses to one bank."""
    energy_factor: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    """Factor on energies, in place of `scaling`."""
    access_pj: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    """Additional energy of every access for clock, control and latches, at the node of the technology; below 8 KiB,
    times the square root of capacity / 8 KiB."""
    leakage_factor: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    """Factor on leakage; absent: the ratio of nodes times the ratio of voltages."""
    area_factor: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    """Factor on areas; absent: the square of the ratio of nodes."""

    def by_capacity(self, column: Sequence[float], capacity_bits: float | None) -> float:
        """A column at the node of the table, interpolated log-log, beyond the last row along the last two rows; the last
        row for None (unlimited)."""
        log_kib = [log(kib) for kib in self.capacity_kib]
        wanted = log_kib[-1] if capacity_bits is None else log(max(capacity_bits, 1) / KIB_BITS)
        wanted = min(wanted, log_kib[-1] + FARTHEST)
        if not self.extrapolate_down:
            wanted = max(wanted, log_kib[0])
        return exp(_on_line(wanted, log_kib, [log(value) for value in column]))

    def pj_per_bit(self, capacity_bits: float | None, write: bool, factor: float) -> float:
        """Energy per bit of a capacity: the minimum over all rows from this capacity on, times a factor, plus
        `access_pj`. Where a larger array needs less energy, a smaller memory can be built as this array."""
        rows = self.write_pj if write else self.read_pj
        pj = self.by_capacity([min(rows[i:]) for i in range(len(rows))], capacity_bits) / self.access_bits
        share = 1.0 if capacity_bits is None else min(1.0, math.sqrt(capacity_bits / (8 * KIB_BITS)))
        return pj * factor + self.access_pj * share / self.access_bits


@attrs.frozen(kw_only=True)
class ChannelTable:
    """Power of an off-chip memory channel: open banks during transfers, a state of less power between transfers."""

    source: str = ""
    """Source of the figures."""
    gigabytes_per_s: float = attrs.field(validator=positive)
    """Bandwidth of a channel, in 10^9 bytes per second."""
    open_mw: float = attrs.field(validator=attrs.validators.ge(0))
    """Power with open banks."""
    refresh_mw: float = attrs.field(validator=attrs.validators.ge(0))
    """Average power of refreshing."""
    power_down_mw: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(0)))
    """Power in power-down, without refreshing; absent: banks stay open."""
    self_refresh_mw: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(0))
    )
    """Power in self-refresh, refreshing included; absent: power-down."""

    def idle_mw(self, state: str) -> float:
        """Power of a channel between transfers in a state of `Dram.idle`."""
        down = self.open_mw if self.power_down_mw is None or state == "open" else self.power_down_mw
        refreshing = down + self.refresh_mw
        return self.self_refresh_mw if state == "self-refresh" and self.self_refresh_mw is not None else refreshing

    def transfer_pj_per_bit(self, state: str) -> float:
        """Energy of open banks during transfers above the idle state, at the channel's bandwidth."""
        return max(0.0, self.open_mw + self.refresh_mw - self.idle_mw(state)) / (8.0 * self.gigabytes_per_s)


@attrs.frozen(kw_only=True)
class MacTable:
    """Integer multiplication and addition by word width, as published for one node."""

    source: str = ""
    node_nm: float = attrs.field(validator=positive)
    """The process node of the published energies."""
    voltage: float = attrs.field(validator=positive, metadata=unit("V"))
    """The supply voltage of the published energies."""
    bits: tuple[float, ...] = attrs.field(metadata=unit("bit"), validator=_ascending)
    """Widths of the operands, ascending."""
    multiply_pj: tuple[float, ...] = attrs.field(validator=_along("bits"))
    """Energy of one multiplication, a number per width."""
    add_pj: tuple[float, ...] = attrs.field(validator=_along("bits"))
    """Energy of one addition, a number per width."""
    multiply_um2: tuple[float, ...] = attrs.field(default=(), validator=_along("bits"))
    """Area of a multiplier by width; absent: unknown."""
    add_um2: tuple[float, ...] = attrs.field(default=(), validator=_along("bits"))
    """Area of an adder by width."""

    def add(self, bits: int) -> float:
        """pJ of one addition, linear in the width."""
        return max(0.0, _on_line(bits, self.bits, self.add_pj))

    def area_um2(self, bits: int) -> float:
        """Area of a multiplier and an adder in um2; 0 if unknown."""
        return self._both(bits, self.multiply_um2, self.add_um2) if self.multiply_um2 and self.add_um2 else 0.0

    def pj(self, bits: int) -> float:
        """pJ of one multiplication and one addition."""
        return self._both(bits, self.multiply_pj, self.add_pj)

    def _both(self, bits: int, multiply: Sequence[float], add: Sequence[float]) -> float:
        """Sum for a multiplier, linear in the square of the width, and an adder, linear in the width."""
        squares = [width**2 for width in self.bits]
        return _on_line(bits**2, squares, multiply) + _on_line(bits, self.bits, add)


@attrs.frozen(kw_only=True)
class WireTable:
    """Energy of wires, proportional to the square of the supply voltage."""

    source: str = ""
    """Source of the figure."""
    pj_per_bit_mm: float = attrs.field(validator=positive)
    """pJ to send one bit over one millimetre."""
    voltage: float = attrs.field(validator=positive)
    """Supply voltage of the source, in volts."""


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
    """Power of the channels of off-chip levels by `standard`, for the charge `leakage`; absent: none."""
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
        return _or(table.area_factor, (self.node_nm / table.node_nm) ** 2)

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

    def add_pj(self, bits: int) -> float:
        return self.mac.add(bits) * self.scale(self.mac.node_nm, self.mac.voltage)

    def queue_pj(self, words: int, bits: int) -> float:
        if not (self.queues and words):
            return 0.0
        table = self._known("memories", self.queues, "named by 'queues'")
        factor = _or(table.energy_factor, self.scale(table.node_nm, table.voltage))
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
        standard = getattr(level.memory, "standard", None)
        if standard is not None and standard in self.off_chip_channels:
            channel = self.off_chip_channels[standard]
            count = max(1, math.ceil(_gigabytes_per_s(level) / channel.gigabytes_per_s - 1e-9))
            return count * channel.idle_mw(getattr(level.memory, "idle", "open"))
        return sum(
            table.by_capacity(table.leakage_mw, bits)
            * _or(table.leakage_factor, (self.node_nm / table.node_nm) * (self.voltage / table.voltage))
            for table, bits in self._arrays(level)
            if table.leakage_mw
        )

    def doubts(self, level: Level, clock_hz: float) -> list[str]:
        found = []
        for table, bits in self._arrays(level):
            last_bits = table.capacity_kib[-1] * KIB_BITS
            if bits > last_bits:
                text = "{} are beyond the table of {}, up to {}; energy and area follow its last two rows"
                found.append(text.format(format_bits(bits), level.memory_class, format_bits(last_bits)))
            turns = self._cycles(table, bits, clock_hz)
            if turns > BANKS:
                text = (
                    "two accesses to an array are {:.0f} cycles apart at {:g} GHz; so many banks in turn are no memory"
                )
                found.append(text.format(turns, clock_hz / 1e9))
        return found

    def area_mm2(self, level: Level) -> float:
        """Area of the memories of a level, in as many banks as its ports take: at least the area of one array."""
        return sum(self._banked_mm2(level, table, bits) for table, bits in self._arrays(level) if table.area_mm2)

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
        sizes = [level.capacity_bits] if level.shared_capacity else [level.capacity_bits, level.metadata_capacity_bits]
        return [(table, bits) for bits in sizes if bits is not None]

    def _relative_energy(self, nm: float, voltage: float) -> float:
        nodes = [row.node_nm for row in self.scaling]
        if not min(nodes) <= nm <= max(nodes):
            span = f"{min(nodes):g} to {max(nodes):g} nm"
            raise SpecError.at(f"technology '{self.name}'", "scaling", f"spans {span}, which leaves out {nm:g} nm")
        return _scaled(tuple(self.scaling), nm, voltage)

    def _split(self, action: str) -> tuple[float, str]:
        """Energy of an action as a share of a full access, and the access: read, write, or the same with prefix
        metadata_."""
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
            channel = self.off_chip_channels.get(standard)
            more = channel.transfer_pj_per_bit(getattr(level.memory, "idle", "open")) if channel else 0.0
            return float(self._given("off_chip_pj_per_bit", "standard", standard, level)) + more
        table = self._table(level)
        factor = _or(table.energy_factor, self.scale(table.node_nm, table.voltage))
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
            text = f"not given, {why}; there is {', '.join(known) or 'none'}"
            raise SpecError.at(f"technology '{self.name}'", f"{field}.{name}", text)
        return known[name]
