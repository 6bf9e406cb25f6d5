"""Bytes that the steps of a plan move, by level and kind, and the speed of a network beside its roofline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ..problem.chip import Chip

if TYPE_CHECKING:
    from .fused_result import FusedLayer

WEIGHTS, ACTIVATIONS = "weights", "activations"


def moved_bytes(rows: Iterable[FusedLayer]) -> dict[str, dict[str, float]]:
    """Bytes read and written of weights and of activations, with metadata, by level, the outermost first.

    Empty for a cost model without bytes by tensor."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        for level in row.by_level.get("levels", ()):
            for tensor, count in level.get("bytes_by_tensor", {}).items():
                own = found.setdefault(level["name"], {WEIGHTS: 0.0, ACTIVATIONS: 0.0})
                own[WEIGHTS if tensor == row.weights else ACTIVATIONS] += count
    return found


@attrs.frozen(kw_only=True)
class Speed:
    """Speed of a network, with two operations per multiply-accumulate, zeros included."""

    inferences_per_s: float
    tops: float
    """10^12 operations per second."""
    tops_per_w: float
    intensity: float
    """Operations per byte moved at the outermost level."""
    roof_tops: float
    """Least of all multipliers at work, and the bandwidth of the outermost level at this intensity."""

    @classmethod
    def of(cls, rows: Sequence[FusedLayer], costs: Mapping[str, float], chip: Chip, batch: int) -> Speed | None:
        """None without a clock or bytes of the outermost level."""
        moved, seconds = moved_bytes(rows), costs.get("seconds", math.nan)
        if not (moved and seconds > 0.0 and math.isfinite(seconds)):
            return None
        operations, clock = 2.0 * math.fsum(row.macs for row in rows), float(chip.clock_hz)
        outermost = math.fsum(next(iter(moved.values())).values())
        intensity = operations / outermost if outermost else math.inf
        words = min(float(chip.bandwidth[0]), float(chip.read_bandwidth[0] + chip.write_bandwidth[0]))
        by_bandwidth = intensity * words * float(chip.word_bits[0]) / 8.0 * clock
        roof = min(2.0 * float(chip.instances[-1]) * clock, by_bandwidth)
        return cls(
            inferences_per_s=batch / seconds, tops=operations / seconds / 1e12,
            tops_per_w=operations / (costs["energy_pj"] * 1e-12) / 1e12, intensity=intensity, roof_tops=roof / 1e12,
        )  # fmt: skip

    @property
    def text(self) -> str:
        roof = f"zeros included; dense roofline {self.roof_tops:,.3g} at {self.intensity:,.3g} operations per byte"
        return (
            f"{self.inferences_per_s:,.4g} inferences/s, {self.tops:,.3g} TOPS ({roof}), {self.tops_per_w:,.3g} TOPS/W"
        )


def bytes_text(count: float) -> str:
    """`7.94 MB`, in powers of 1,000."""
    size, unit = next(
        ((x, u) for x, u in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= x), (1, "B")
    )
    return f"{count / size:,.3g} {unit}"


def traffic_text(moved: Mapping[str, Mapping[str, float]], seconds: float) -> str:
    """Bytes and bytes per second of the levels, with the weights of the outermost."""
    parts = list[str]()
    for name, kinds in moved.items():
        whole = math.fsum(kinds.values())
        weights = f", {bytes_text(kinds[WEIGHTS])} of weights" if not parts else ""
        parts.append(f"{name} {bytes_text(whole)} at {bytes_text(whole / seconds)}/s{weights}")
    return "; ".join(parts)


def traffic_table(moved: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """A row per level, as plain data."""
    return [
        {"level": name, **{f"{kind}_bytes": count for kind, count in kinds.items()}} for name, kinds in moved.items()
    ]
