"""Evaluation of a design by a cost model, shared by all texts, figures and pages; and a tensor at a level: its tile, the
loops that bring and reuse it, its accesses and their energy, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from sparsemap import Tensor
from sparsemap.files import aligned, percent
from sparsemap.pieces.contracts import styled
from sparsemap.problem.costs import Costs
from sparsemap.problem.designs import Design, Loop
from sparsemap.problem.evaluation import Detail
from sparsemap.problem.levels import Level
from sparsemap.searching.breakdown import Breakdown
from sparsemap.spec.units import format_bits, format_count, format_energy

from .wording import loop_text

WRITES = {"read": "read", "fill": "write", "update": "write"}
"""Action with the price of each access."""
GONE = {1: "gated", 2: "skipped"}
NEEDED = (
    *("cells", "dense_reads", "dense_fills", "dense_updates", "instances_active", "instances_used"),
    *("tile_words", "data_words_max", "energy_pj"),
)
"""Fields required in the detail of an evaluation."""


@attrs.frozen
class AccessRow:
    """Accesses of an action: words of data, or metadata accesses, all instances together."""

    name: str
    count: float
    price_pj: float

    @property
    def energy_pj(self) -> float:
        return self.count * self.price_pj


@attrs.frozen
class Accesses:
    """The counts of a tensor at a level, all instances together."""

    tensor: Tensor
    level: Level
    tile_words: float
    stored_words: float
    """Most words stored in the tile of an instance."""
    word_bits: float
    """Bits per word of the tensor at the level."""
    instances: float
    """Expected number of instances with a tile."""
    dense: Mapping[str, float]
    """Words by action, without compression and filters."""
    rows: tuple[AccessRow, ...]
    energy_pj: float

    @property
    def other_pj(self) -> float:
        """Energy outside the rows, such as of a charge; 0 within rounding."""
        rest = self.energy_pj - sum(row.energy_pj for row in self.rows)
        return rest if abs(rest) > 1e-6 * self.energy_pj else 0.0

    @property
    def reuse(self) -> float | None:
        """Words read per word filled, without compression and filters; None without fills."""
        came, went = self.dense["fill"], self.dense["read"]
        return went / came if came else None

    def to_dict(self) -> dict[str, Any]:
        rows = [{**attrs.asdict(row), "energy_pj": row.energy_pj} for row in self.rows]
        return {
            "tensor": self.tensor.name, "level": self.level.name, "tile_words": self.tile_words,
            "stored_words": self.stored_words, "word_bits": self.word_bits, "instances": self.instances,
            "available": self.level.instances,
            "dense": dict(self.dense), "rows": rows, "charges_pj": self.other_pj, "energy_pj": self.energy_pj,
            "reuse": self.reuse,
        }  # fmt: skip


def accesses_of(design: Design, detail: Any) -> dict[tuple[str, str], Accesses]:
    """Accesses by the names of tensor and level, outermost level first, for stored tensors.

    Empty if the cost model gives no counts."""
    problem = design.problem
    return {
        (tensor.name, level.name): _counted(design, detail, t, level.index)
        for level in problem.levels
        for t, tensor in enumerate(problem.tensors)
        if problem.stores(t, level.index) and detail.knows(*NEEDED)
    }


def _counted(design: Design, detail: Any, tensor: int, level: int) -> Accesses:
    problem = design.problem
    cell, here, spec = detail.cells[tensor][level], (tensor, level, 0), problem.levels[level]
    active, used = float(detail.instances_active[here]), float(detail.instances_used[level, 0])
    counts = {"read": cell.read, "fill": cell.fill, "update": cell.update}
    if gone := GONE.get(int(cell.kind[0])):
        counts |= {f"{gone}_read": cell.gone_read, f"{gone}_update": cell.gone_update}
    rows, word_bits = [], float(detail.bits(spec)[tensor])
    width = word_bits / spec.word_bits
    for name, words in counts.items():
        price, each = problem.energy_pj(level, WRITES.get(name, name)), spec.memory.access_words / width
        rows.append(AccessRow(name.replace("_", " "), float(np.ceil(words[0] / each) * each) * active, price * width))
    if level and level == design.decoded(tensor) and any(rank.format.compressed for rank in design.ranks(tensor)):
        rows.append(AccessRow("decode", float(cell.fill[0]) * active, width * problem.energy_pj(level, "decode")))
        parent = max(s for s in range(level) if problem.stores(tensor, s))
        arrive = float(detail.cells[tensor][parent].update[0] * detail.instances_active[tensor, parent, 0])
        rows.append(AccessRow("encode", arrive, width * problem.energy_pj(level, "encode")))
    for name, bits in cell.bits.items():
        prefix, _, action = name.rpartition("_")
        price = problem.energy_pj(level, f"{prefix}_metadata_{action}" if prefix else f"metadata_{WRITES[action]}")
        count = float(np.ceil(bits[0] / spec.metadata_width)) * active
        rows.append(AccessRow(f"{prefix} metadata {action}".strip(), count, price))
    dense = {"read": detail.dense_reads, "fill": detail.dense_fills, "update": detail.dense_updates}
    told = {name: float(words[here]) * used for name, words in dense.items()}
    tile, kept = (float(detail.tile_words[here]), float(detail.data_words_max[here])), tuple(x for x in rows if x.count)
    return Accesses(problem.tensors[tensor], spec, *tile, word_bits, active, told, kept, float(detail.energy_pj[here]))


def access_lines(found: Accesses, loops: Sequence[Loop], energy_pj: float) -> list[str]:
    """The counts of a tensor at a level, with its tile and the effect of the loops outside.

    `loops` and `energy_pj` are of the design."""
    tensor, level = found.tensor, found.level
    share = percent(found.energy_pj / energy_pj) if energy_pj else "-"
    extents = {dim: 1 for rank in tensor.ranks for dim, _ in rank}
    for loop in loops:
        if loop.storage >= level.index and loop.dim in extents:
            extents[loop.dim] *= loop.bound
    size = " x ".join(f"{dim} {extent}" for dim, extent in extents.items())
    kept = f", at most {format_count(found.stored_words)} stored" if found.stored_words < found.tile_words else ""
    tile = f"{size}: {format_count(found.tile_words)} words{kept}, {format_bits(found.stored_words * found.word_bits)}"
    title = f"{tensor.name} at {level.name}: {format_energy(found.energy_pj)}, {share} of the design's energy"
    lines = [styled(title, "strong"), f"  tile     {tensor.text}, {tile}"]
    if level.index:
        whole = abs(found.instances - round(found.instances)) < 1e-6
        lines.append(f"  held by  {found.instances:,.{0 if whole else 1}f} of {level.instances:,} {level.name}")
        outside = [loop for loop in loops if loop.storage < level.index]
        rows = [[loop_text(loop), effect(loops, tensor, loop, level.index)] for loop in outside]
        told = aligned(rows, "<") or ["none: the tile comes once"]
        lines += [f"  {'' if i else 'loops':7}  {line}" for i, line in enumerate(told)]
    if found.reuse is not None and not tensor.output:
        came, went = (format_count(found.dense[name]) for name in ("fill", "read"))
        lines.append(f"  reuse    dense, {came} words come in and {went} go out: {format_count(found.reuse)} for each")
    cells = [["", "dense", "left", "pJ each", "energy"]]
    for row in found.rows:
        dense = format_count(found.dense[row.name]) if row.name in found.dense else ""
        cells.append([row.name, dense, format_count(row.count), f"{row.price_pj:.4g}", format_energy(row.energy_pj)])
    if found.other_pj:
        cells.append(["charges", "", "", "", format_energy(found.other_pj)])
    return [*lines, *(f"  {line}" for line in aligned(cells))]


def effect(loops: Sequence[Loop], tensor: Tensor, loop: Loop, level: int) -> str:
    """The effect of a loop outside a level on a tensor's tile there, in words; `loops` are all loops of the design."""
    dims = {dim for rank in tensor.ranks for dim, _ in rank}
    if loop.dim in dims:
        return "every instance has another part" if loop.spatial else "brings the next tile"
    if loop.spatial:
        return "instances add to the same results" if tensor.output else "instances have the same part"
    inner = [other for other in loops[loops.index(loop) + 1 :] if other.storage < level]
    if any(not other.spatial and other.dim in dims for other in inner):
        return "comes back to every tile: partial results return" if tensor.output else "brings every tile again"
    return "adds to the tile that is there" if tensor.output else "the tile stays"


# ------------------------------------------------------------------------------------------------------------ outcomes


@attrs.frozen(eq=False, slots=False)
class DesignOutcome:
    design: Design
    energy_pj: float
    cycles: float
    """Energy and cycles are infinite for an invalid design."""
    reasons: tuple[str, ...]
    detail: Detail

    @classmethod
    def of(cls, design: Design) -> DesignOutcome:
        found = design.problem.evaluator.evaluate_designs(design.batch, detail=True)
        numbers = float(found.energy_pj[0]), float(found.cycles[0])
        return cls(design, *numbers, found.reasons_of(0), found.detail or Detail())

    @property
    def edp(self) -> float:
        """EDP in pJ * cycles."""
        return self.energy_pj * self.cycles

    @cached_property
    def costs(self) -> dict[str, float]:
        """All costs by name, including costs derived from the chip, such as `seconds` and `edp_js`."""
        return Costs({"energy_pj": self.energy_pj, "cycles": self.cycles}, self.design.problem.chip).floats()

    @property
    def valid(self) -> bool:
        return not self.reasons

    @property
    def fault(self) -> str:
        """`not valid: capacity:PEB`."""
        return f"not valid: {', '.join(self.reasons)}"

    @cached_property
    def breakdown(self) -> Breakdown:
        return Breakdown.of(self.design.problem, self.detail, self.energy_pj, self.cycles)

    @cached_property
    def accesses(self) -> dict[tuple[str, str], Accesses]:
        """Accesses by the names of tensor and level (`accesses_of`)."""
        return accesses_of(self.design, self.detail)

    @property
    def units(self) -> float | None:
        """Compute units in use."""
        used = self.detail.instances_used
        return None if used is None else float(used[-1, 0])

    @property
    def computes(self) -> tuple[float, float, float] | None:
        """Computes carried out, gated and skipped."""
        done, gated, skipped = self.detail.computes, self.detail.gated_computes, self.detail.skipped_computes
        if done is None or gated is None or skipped is None:
            return None
        return float(done[0]), float(gated[0]), float(skipped[0])

    @property
    def limit(self) -> str:
        """Limit of the cycles, `Breakdown.limit`."""
        return self.breakdown.limit

    @property
    def column(self) -> str:
        """Text in a column "limited by": the limit, or the reasons of an invalid design."""
        return self.limit.removeprefix("the ") if self.valid else self.fault

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None in place of numbers of an invalid design."""
        numbers = {"edp": self.edp, "energy_pj": self.energy_pj, "cycles": self.cycles}
        found: dict[str, Any] = {key: value if math.isfinite(value) else None for key, value in numbers.items()}
        found["costs"] = {key: value for key, value in self.costs.items() if math.isfinite(value)} if self.valid else {}
        return {**found, "limit": self.limit if self.valid else None, "reasons": list(self.reasons)}
