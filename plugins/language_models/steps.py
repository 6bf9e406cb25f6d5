"""A step of a served model, one prefill or one decoded token per sequence: costs, bytes, and the roofline."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from sparsemap.problem.chip import Chip
from sparsemap.study.fused_result import FusedLayer, FusedResult

from .block import CACHE, CACHED
from .model import LanguageModel
from .points import DECODE, PREFILL, Point
from .searches import PlannedPart
from .widths import Widths

BYTES = ("weights", "cache", "activations")


@attrs.frozen
class Roofline:
    """Least time of a step: nonzero weights and cache cross the outermost level once, and all multipliers work on
    nonzeros."""

    macs: float
    weight_bytes: float
    cache_bytes: float
    memory_s: float
    compute_s: float
    seconds: float

    @classmethod
    def of(
        cls, model: LanguageModel, point: Point, widths: Widths, parts: Sequence[PlannedPart], chip: Chip
    ) -> Roofline:
        """Decode reads the rows seen and writes one; prefill writes all rows."""
        macs = math.fsum(one.part.count * one.macs for one in parts)
        weights = math.fsum(one.part.count * one.weights for one in parts) * float(widths.weight) / 8.0
        rows = model.seen(point.tokens) if point.phase == DECODE else point.tokens
        cache = model.layers * point.batch * rows * model.cache_words * float(widths.cache) / 8.0
        clock = float(chip.clock_hz)
        words = min(float(chip.bandwidth[0]), float(chip.read_bandwidth[0]))
        bandwidth = words * float(chip.word_bits[0]) / 8.0 * clock
        compute = math.fsum(one.part.count * one.least_cycles for one in parts) / clock
        memory = (weights + cache) / bandwidth
        return cls(macs, weights, cache, memory, compute, max(memory, compute))

    @property
    def binding(self) -> str:
        """The resource of the bound."""
        return "bandwidth" if self.memory_s >= self.compute_s else "compute"


@attrs.frozen(kw_only=True)
class ServedStep:
    """Costs of a step, of all parts with their counts."""

    point: Point
    seconds: float
    energy_pj: float
    moved: Mapping[str, float]
    """Bytes of the outermost level by `BYTES`."""
    limits: Mapping[str, float]
    """Share of the time by limit, the largest first."""
    roofline: Roofline
    lengths: int = 1
    """Lengths of which this is the mean."""

    @classmethod
    def mean(cls, steps: Sequence[ServedStep], shares: Mapping[int, float]) -> ServedStep:
        """Steps of a phase and batch with their shares, by tokens of a sequence, as one step of mean length: speed is
        all tokens over all seconds, energy and bytes are those of all tokens."""

        def mean(numbers: Iterable[float]) -> Any:
            return math.fsum(shares[step.point.tokens] * n for step, n in zip(steps, numbers, strict=True))

        seconds, roofs = mean(step.seconds for step in steps), [attrs.astuple(step.roofline) for step in steps]
        names = dict.fromkeys(name for step in steps for name in step.limits)
        limits = {n: mean(step.seconds * step.limits.get(n, 0.0) for step in steps) / seconds for n in names}
        return cls(
            point=attrs.evolve(steps[0].point, tokens=mean(step.point.tokens for step in steps)), seconds=seconds,
            energy_pj=mean(step.energy_pj for step in steps),
            moved={kind: mean(step.moved[kind] for step in steps) for kind in BYTES},
            limits=dict(sorted(limits.items(), key=lambda one: -one[1])),
            roofline=Roofline(*map(mean, zip(*roofs, strict=True))), lengths=len(steps),
        )  # fmt: skip

    @classmethod
    def of(
        cls, model: LanguageModel, point: Point, widths: Widths, parts: Sequence[PlannedPart],
        results: Mapping[int, FusedResult],
    ) -> ServedStep:  # fmt: skip
        found = [(one.part.count, results[id(one.whole)]) for one in parts]
        chip = found[0][1].base.chip
        moved, limited = dict.fromkeys(BYTES, 0.0), dict[str, float]()
        cycles = math.fsum(count * result.cycles for count, result in found)
        for one in parts:
            for row in results[id(one.whole)].rows:
                limit = row.limit.partition(",")[0] or "nothing known"
                limited[limit] = limited.get(limit, 0.0) + one.part.count * row.cycles / cycles
                for kind, size in moved_by(row, one.part.cached and model.cache_words > 0).items():
                    moved[kind] += one.part.count * size
        return cls(
            point=point, seconds=math.fsum(count * result.seconds for count, result in found),
            energy_pj=math.fsum(count * result.energy_pj for count, result in found), moved=moved,
            limits=dict(sorted(limited.items(), key=lambda one: -one[1])),
            roofline=Roofline.of(model, point, widths, parts, chip),
        )  # fmt: skip

    @property
    def tokens(self) -> int:
        """Tokens read or made by the step."""
        return self.point.rows

    @property
    def per_s(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds

    @property
    def of_roofline(self) -> float:
        """Share of the roofline's speed."""
        return self.roofline.seconds / self.seconds

    @property
    def limit(self) -> tuple[str, float]:
        """The largest limit, and its share of the time."""
        return next(iter(self.limits.items()))

    def row(self) -> dict[str, Any]:
        """Plain data with full precision."""
        point, roof = self.point, self.roofline
        first = {"time_to_first_token_s": self.seconds if point.phase == PREFILL else None}
        return {
            "phase": point.phase, "context": point.tokens, "batch": point.batch, "lengths": self.lengths, "seconds": self.seconds,
            "tokens_per_s": self.per_s, **first, "energy_per_token_j": self.energy_pj * 1e-12 / self.tokens,
            **{f"{kind}_bytes_per_token": count / self.tokens for kind, count in self.moved.items()},
            "roofline_tokens_per_s": self.tokens / roof.seconds, "of_roofline": self.of_roofline, "binding": roof.binding,
            "limit": self.limit[0], "limit_share": self.limit[1],
            "macs": roof.macs, "roofline_memory_s": roof.memory_s, "roofline_compute_s": roof.compute_s,
            "least_weight_bytes": roof.weight_bytes, "least_cache_bytes": roof.cache_bytes,
        }  # fmt: skip


def moved_by(row: FusedLayer, caching: bool) -> dict[str, float]:
    """Bytes of the outermost level that a step of a plan moves, by `BYTES`."""
    found: dict[str, float] = {}
    name, levels = re.sub(r"-\d+$", "", row.layer.removesuffix(" inputs")), row.by_level.get("levels", ())
    for tensor, size in (levels[0].get("bytes_by_tensor", {}) if levels else {}).items():
        cached = caching and (name in CACHE or CACHED.get(name) == tensor)
        kind = "cache" if cached else "weights" if tensor == row.weights else "activations"
        found[kind] = found.get(kind, 0.0) + size
    return found
