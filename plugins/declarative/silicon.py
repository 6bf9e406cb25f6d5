"""Power and area of the memories and MACs of a hardware, and of published chips."""

from __future__ import annotations

from typing import NamedTuple

from sparsemap.problem.problem import Problem

MIB_BITS = 8.0 * 1024**2
PLATFORMS = ("edge", "edge-16gbps", "mobile", "cloud")
WORKLOAD = {
    "name": "one", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": dict.fromkeys("mkn", 4),
    "density": {"P": 1.0, "Q": 1.0},
}  # fmt: skip
"""A minimal workload, needed to form a problem with a hardware."""

CHIPS = (
    ("EIE", 45, 40.8, 0.59, "64 PEs of 0.638 mm2 with 162 KB, placed and routed, no DRAM (ISCA 2016)"),
    ("DianNao", 65, 3.02, 0.485, "256 MACs, 44 KB, no DRAM (ASPLOS 2014)"),
    ("Cambricon-X", 65, 6.38, 0.954, "256 MACs, 56 KB (MICRO 2016)"),
    ("Eyeriss", 65, 12.25, 0.278, "the chip, AlexNet, 181.5 KB in all (JSSC 2017)"),
    ("SNAP", 16, 2.3, 0.348, "252 MACs, 280 KB, 0.8 V (JSSC 2021)"),
    ("SIGMA", 28, 65.1, 22.33, "16,384 MACs (HPCA 2020)"),
    ("TPU v1", 28, 331.0, 75.0, "TDP; 28 MiB, 65,536 MACs of 8 bits; idle 28 W (ISCA 2017)"),
    ("TPU v4i", 7, 400.0, 175.0, "TDP; 144 MB, 65,536 MACs (ISCA 2021)"),
    ("A100", 7, 826.0, 400.0, "TDP with HBM2 (NVIDIA 2020)"),
)
"""Published chips: node in nm, area in mm2, power in W, and contents. Areas of TPU v1 and v4i are upper bounds; Eyeriss
v2 (0.57 W at 65 nm, JETCAS 2019) has no published area."""


class Silicon(NamedTuple):
    """A hardware with memories, MACs, listed sparse units and interfaces of DRAM: no network, no control."""

    name: str
    technology: str
    area_mm2: float
    sram_mib: float
    leakage_mw: float
    macs_mw: float
    """All MACs in every cycle, with operands from registers."""
    fed_mw: float
    """Additional power of two reads and a write of the innermost memory per MAC: no register holds anything."""
    off_chip_mw: float
    """Power of DRAM without traffic."""
    units_mm2: float
    """Area of the converter and the listed sparse units, part of `area_mm2`."""
    interface_mm2: float
    """Area of the interfaces of DRAM, part of `area_mm2`; powers per area leave them out, as they leave out DRAM."""

    @classmethod
    def of(cls, problem: Problem) -> Silicon:
        technology, inner, macs = problem.technology, len(problem.levels) - 1, problem.compute_instances
        limited = [(s, level) for s, level in enumerate(problem.levels) if level.capacity_bits is not None]
        each_second = macs * problem.clock_hz * 1e-9  # pJ of one make mW
        leaking = {s: level.instances * problem.leakage_mw(s) for s, level in enumerate(problem.levels)}
        on_chip = sum(leaking[s] for s, _ in limited)
        return cls(
            str(problem.hardware.name), str(technology.name),
            float(problem.chip.total_area_mm2),
            sum(level.instances * (level.capacity_bits or 0.0) for _, level in limited) / MIB_BITS,
            on_chip, problem.mac_pj("compute") * each_second,
            (2 * problem.energy_pj(inner, "read") + problem.energy_pj(inner, "write")) * each_second,
            sum(leaking.values()) - on_chip,
            float(problem.chip.units_area_mm2), float(problem.chip.interface_mm2),
        )  # fmt: skip

    def row(self) -> list[str]:
        with_macs, core_mm2 = self.leakage_mw + self.macs_mw, self.area_mm2 - self.interface_mm2
        fed = with_macs + self.fed_mw
        shown = [
            self.area_mm2, self.sram_mib, self.leakage_mw / self.sram_mib, self.leakage_mw / 1e3, with_macs / 1e3, fed / 1e3,
            with_macs / core_mm2, fed / core_mm2, self.off_chip_mw / 1e3,
        ]  # fmt: skip
        return [self.name, self.technology, *(f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in shown)]


HEADER = [
    "hardware", "technology", "mm2", "MiB", "leak mW/MiB", "leak W", "+ MAC W", "+ RAM W", "mW/mm2", "all", "DRAM W"
]  # fmt: skip
"""Powers add up to the right; mW/mm2 without and with accesses, without interfaces; DRAM is idle."""


def chip_rows() -> list[list[str]]:
    """The published chips, under a header."""
    rows = [["chip", "node", "mm2", "W", "mW/mm2", "what it contains"]]
    for name, node, area, power, contents in CHIPS:
        rows.append([name, f"{node} nm", f"{area:g}", f"{power:g}", f"{power / area * 1e3:.0f}", contents])
    return rows
