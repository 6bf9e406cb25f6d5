"""Tables of a technology: published energies by capacity, DRAM channel and word width, scaled to one process node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import attrs

from sparsemap.inner.arrays import exp, log
from sparsemap.pieces.contracts import unit

KIB_BITS = 8 * 1024
positive: Any = attrs.validators.gt(0)
share: Any = attrs.validators.and_(attrs.validators.ge(0), attrs.validators.le(1))


FARTHEST = log(1 << 20)
"""Largest capacity over the last row of a table, as a logarithm; larger memories cost the same."""


def on_line(x: float, xs: Sequence[float], ys: Sequence[float]) -> float:
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


def either(own: float | None, usual: float) -> float:
    return usual if own is None else own


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


@attrs.frozen(kw_only=True)
class ClockTable:
    """Highest clock of compute units by supply voltage, at one node."""

    source: str = ""
    """Origin of the table."""
    node_nm: float = attrs.field(validator=positive)
    """The process node; a technology of another node knows no clock."""
    voltage: tuple[float, ...] = attrs.field(validator=_ascending, metadata=unit("V"))
    """Supply voltage by row."""
    ghz: tuple[float, ...] = attrs.field(validator=_along("voltage"))
    """Highest clock by row."""


@lru_cache(maxsize=256)
def scaled(scaling: tuple[ScalingRow, ...], nm: float, voltage: float) -> float:
    """Relative energy at a node and voltage."""
    rows = sorted(scaling, key=lambda row: row.node_nm)
    return on_line(nm, [row.node_nm for row in rows], [row.a * voltage**2 + row.b * voltage + row.c for row in rows])


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
        return exp(on_line(wanted, log_kib, [log(value) for value in column]))

    def pj_per_bit(self, capacity_bits: float | None, write: bool, factor: float) -> float:
        """Energy per bit of a capacity: the minimum over all rows from this capacity on, times a factor, plus
        `access_pj`. Where a larger array needs less energy, a smaller memory can be built as this array."""
        rows = self.write_pj if write else self.read_pj
        pj = self.by_capacity([min(rows[i:]) for i in range(len(rows))], capacity_bits) / self.access_bits
        share = 1.0 if capacity_bits is None else min(1.0, math.sqrt(capacity_bits / (8 * KIB_BITS)))
        return pj * factor + self.access_pj * share / self.access_bits


@attrs.frozen(kw_only=True)
class ChannelTable:
    """Power and interface of an off-chip memory channel: open banks during transfers, a state of less power between transfers."""

    source: str = ""
    """Source of the figures."""
    gigabytes_per_s: float = attrs.field(validator=positive)
    """Bandwidth of a channel, in 10^9 bytes per second."""
    phy_mm2: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    """Area of a channel's interface on the chip, not scaled: drivers and pads hardly shrink. Absent: unknown, no area."""
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
        return max(0.0, on_line(bits, self.bits, self.add_pj))

    def area_um2(self, bits: int) -> float:
        """Area of a multiplier and an adder in um2; 0 if unknown."""
        return self._both(bits, self.multiply_um2, self.add_um2) if self.multiply_um2 and self.add_um2 else 0.0

    def pj(self, bits: int) -> float:
        """pJ of one multiplication and one addition."""
        return self._both(bits, self.multiply_pj, self.add_pj)

    def _both(self, bits: int, multiply: Sequence[float], add: Sequence[float]) -> float:
        """Sum for a multiplier, linear in the square of the width, and an adder, linear in the width."""
        squares = [width**2 for width in self.bits]
        return on_line(bits**2, squares, multiply) + on_line(bits, self.bits, add)


@attrs.frozen(kw_only=True)
class WireTable:
    """Energy of wires, proportional to the square of the supply voltage."""

    source: str = ""
    """Source of the figure."""
    pj_per_bit_mm: float = attrs.field(validator=positive)
    """pJ to send one bit over one millimetre."""
    voltage: float = attrs.field(validator=positive)
    """Supply voltage of the source, in volts."""
