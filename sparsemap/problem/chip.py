"""The chip of a hardware in numbers: sizes, speeds, energies, leakage and area per instance of every storage level."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, SupportsFloat

import attrs
import numpy as np

from ..errors import Mistake, SpecError, unknown
from ..pieces.contracts import Technology
from ..pieces.contracts.base import Array, Rows
from ..pieces.contracts.hardware import LEVEL_ACTIONS, RECODE_ACTIONS
from ..pieces.data_specs import MAC_ACTIONS, Hardware, MacMode
from ..pieces.registry import Registry
from ..spec.structuring import collecting, join
from .levels import Level
from .tables import content_of

FIGURES = {"fanout": np.int64, "word_bits": np.int64, "metadata_width": np.int64, "shared_capacity": np.bool_}
LIMITS = ("capacity_bits", "metadata_capacity_bits", "read_bandwidth", "write_bandwidth", "bandwidth")
"""Figures of a `Level` copied to a chip; limits of None become infinity."""
QUEUES = 3
"""Queues of a compute unit (`shared_words`): two operands and the result."""
LARGEST_FIGURE = 1e18
"""Limit of energies, powers and areas; products of larger figures with counts could overflow."""


@attrs.frozen(eq=False)
class Chip:
    """A chip, or B chips.

    An array per storage level is (S,), outermost level first; with a chip per design it is (S, B). A scalar figure is
    (), or (B,). All figures are per instance; inf: unlimited."""

    names: tuple[str, ...]
    """Names of the S storage levels."""
    instances: Array
    """(S + 1,) int64, instances on the whole chip; the last entry counts compute units."""
    fanout: Array
    """(S,) int64, instances of the next inner level, or compute units, per instance."""
    word_bits: Array
    """(S,) int64, bits per data word."""
    access_words: Array
    """(S,) int64, words per access."""
    metadata_width: Array
    """(S,) int64, bits per metadata access."""
    capacity_bits: Array
    metadata_capacity_bits: Array
    """(S,) float64, capacity of a separate metadata memory."""
    shared_capacity: Array
    """(S,) bool, whether data and metadata share `capacity_bits`."""
    read_bandwidth: Array
    """(S,) float64, words per cycle."""
    write_bandwidth: Array
    bandwidth: Array
    """(S,) float64, reads and writes together, words per cycle."""
    lookahead: Array
    """(S + 1,) float64, positions examined per cycle by a skipping unit, per child; the last: at the compute units."""
    energy_pj: Mapping[str, Array]
    """(S,) float64 pJ by action: `LEVEL_ACTIONS`, `RECODE_ACTIONS`."""
    mac_pj: Mapping[str, Array]
    """() float64 pJ by action: compute, gated, skipped."""
    add_pj: Array
    """(S + 1,) float64 pJ of an addition of words, at the compute units last."""
    unit_pj: Array
    """() float64 pJ of a cycle of a sparse unit as large as a 16-bit MAC (`unit_macs` 1)."""
    queue_pj: Array
    """(S,) float64 pJ of a word passing the queue of a compute unit (`shared_words`)."""
    leakage_mw: Array
    asleep: Array
    """(S,) leakage share of an unused instance; 1 where instances cannot be switched off."""
    area_mm2: Array
    """(S,) float64, area without the levels below."""
    mac_area_mm2: Array
    units_area_mm2: Array
    """Total area of all decoders and skipping units, if the hardware lists `units`, of the converter and of the vector unit."""
    wire_pj_per_bit_mm: Array
    gated_residual: Array
    """Least cost of a gated access or compute, as a share of a full one."""
    clock_hz: Array

    def __len__(self) -> int:
        """S, the number of storage levels."""
        return len(self.names)

    @property
    def batch(self) -> int | None:
        """B with a chip per design; None: a single chip for all designs."""
        return self.fanout.shape[1] if self.fanout.ndim == 2 else None

    @property
    def digest(self) -> str:
        """Digest, equal for equal chips."""
        arrays = {field.name: getattr(self, field.name) for field in attrs.fields(Chip)}
        return hashlib.sha256(repr(content_of(arrays)).encode()).hexdigest()

    @property
    def total_area_mm2(self) -> Array:
        """() or (B,) float64: all instances of all levels, the compute units, and the sparse units."""
        levels = (self.instances[:-1] * self.area_mm2).sum(axis=0)
        return levels + self.instances[-1] * self.mac_area_mm2 + self.units_area_mm2

    @property
    def interface_mm2(self) -> Array:
        """() or (B,) float64, part of `total_area_mm2`: unlimited levels, the interfaces of off-chip memory."""
        return (self.instances[:-1] * self.area_mm2 * np.isinf(self.capacity_bits)).sum(axis=0)

    def take(self, rows: Rows | int) -> Chip:
        """Chips of the B designs in `rows`; for a single row, one chip for all designs."""
        from .other_chip import taken

        return taken(self, rows)


def chip_of(
    levels: Sequence[Level], technology: Technology, hardware: Hardware, registry: Registry, file: str = "",
    mode: MacMode | None = None,
) -> Chip:  # fmt: skip
    """The chip of a hardware. `SpecError` with every figure missing from the technology or out of range.

    With a `mode`, the levels have a compute unit per multiply-accumulate, each with its part of a unit's energy and
    area. A level's own energies and leakage take precedence over the technology's."""
    mistakes: list[Mistake] = []

    def number(path: str, figure: Callable[[], Any], unit: str = "picojoules") -> float:
        with collecting(mistakes, path):
            value = figure()
            real = type(value) is float or (isinstance(value, SupportsFloat) and not isinstance(value, bool))
            if not real or not 0 <= float(value) <= LARGEST_FIGURE:
                raise SpecError.at("", "", f"is {value!r}, expected {unit}, 0 to {LARGEST_FIGURE:g}")
            return float(value)
        return 0.0

    def column(figure: Callable[[Level], Any], name: str, unit: str = "picojoules") -> Array:
        return np.array([number(f"levels[{x.index}].{name}", partial(figure, x), unit) for x in levels])

    def energy(action: str) -> Callable[[Level], Any]:
        return lambda x: x.memory.energy[action] if action in x.memory.energy else given(x, action)

    def given(level: Level, action: str) -> Any:
        return technology.add_pj(level.word_bits) if action in RECODE_ACTIONS else technology.energy_pj(level, action)

    own, bits, last, macs = hardware.compute.energy, hardware.word_bits, levels[-1], mode.macs if mode else 1
    built = [*levels[:-1], attrs.evolve(last, fanout=last.fanout // macs)]

    def mac(action: str) -> Any:
        pj, full = (own[name] if name in own else technology.mac_pj(bits, name) for name in (action, "compute"))
        return pj / macs if mode is None or mode.pj is None or not full else pj / full * mode.pj

    def leakage(level: Level) -> Any:
        return technology.leakage_mw(level) if level.memory.leakage_mw is None else level.memory.leakage_mw

    def area(level: Level) -> float:
        units = last.instances * built[-1].fanout / level.instances
        queue_mm2 = technology.queue_mm2(level.memory.queue_words, level.word_bits)
        return technology.area_mm2(level) + units * QUEUES * queue_mm2

    def units_area() -> float:
        if not (hardware.units or hardware.converter or hardware.vector):
            return 0.0
        from .units_area import units_mm2

        return units_mm2(built, technology, hardware, registry)

    of_words = column(lambda x: technology.add_pj(x.word_bits), "word_bits")
    chip = Chip(
        names=tuple(level.name for level in levels),
        instances=np.array([*(level.instances for level in levels), last.instances * last.fanout], np.int64),
        access_words=np.array([level.memory.access_words for level in levels], np.int64),
        **{name: np.array([getattr(level, name) for level in levels], kind) for name, kind in FIGURES.items()},
        **{name: _limits(getattr(level, name) for level in levels) for name in LIMITS},
        lookahead=_limits([*(level.memory.lookahead for level in levels), hardware.compute.lookahead]),
        energy_pj={action: column(energy(action), f"energy.{action}") for action in (*LEVEL_ACTIONS, *RECODE_ACTIONS)},
        mac_pj={action: np.array(number(f"compute.energy.{action}", partial(mac, action))) for action in MAC_ACTIONS},
        add_pj=np.append(of_words, number("word_bits", lambda: technology.add_pj(bits))),
        unit_pj=np.array(number("technology.mac", lambda: technology.mac_pj(16, "compute"))),
        queue_pj=column(lambda x: technology.queue_pj(x.memory.queue_words, x.word_bits), "shared_words"),
        leakage_mw=column(leakage, "leakage_mw", "mW"),
        asleep=np.array([1.0 if (off := level.memory.power_gated) is None else off for level in levels]),
        area_mm2=column(area, "area_mm2", "mm2"),
        mac_area_mm2=np.array(number("compute.area_mm2", lambda: technology.mac_area_mm2(bits) / macs, "mm2")),
        units_area_mm2=np.array(number("units", units_area, "mm2")),
        wire_pj_per_bit_mm=np.array(number("technology.wire_pj_per_bit_mm", lambda: technology.wire_pj_per_bit_mm)),
        gated_residual=np.array(number("technology.gated_residual", lambda: technology.gated_residual, "a share")),
        clock_hz=np.array(last.clock_hz),
    )
    if mistakes:
        raise SpecError(mistakes).within("", file)
    return chip


def sparse_mm2(
    levels: Sequence[Level], technology: Technology, hardware: Hardware, mechanisms: Mapping[str, Sequence[float]],
    formats: Sequence[float],
) -> float:  # fmt: skip
    """Area of sparse units, given in 16-bit MACs each: of mechanisms by place, a unit per child of each instance, or per
    compute unit; of formats, a decoder per instance of every level on chip."""
    children = {level.name: level.instances * level.fanout for level in levels}
    children[hardware.compute.name] = levels[-1].instances * levels[-1].fanout
    total = sum(level.instances for level in levels if level.capacity_bits is not None) * math.fsum(formats)
    for place, macs in mechanisms.items():
        if place not in children:
            raise SpecError.at("", join("mechanisms", place), unknown("place", place, children))
        total += children[place] * math.fsum(macs)
    return total * technology.mac_area_mm2(16)


def _limits(values: Any) -> Array:
    """(n,) float64, inf in place of None."""
    return np.array([math.inf if value is None else value for value in values], np.float64)
