"""One tensor at one level: its tile, the loops that bring and reuse it, its accesses and their energy, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from sparsemap.files import aligned, percent
from sparsemap.pieces.contracts import styled
from sparsemap.problem.designs import Design, Loop
from sparsemap.spec.units import format_bits, format_count, format_energy

from .loop_nest import loop_name
from .variants import Outcome
from .wording import indexed

WRITES = {"read": "read", "fill": "write", "update": "write"}
"""Whose price each action has."""
GATED, SKIPPED = 1, 2
NEEDED = {"cells", "traffic", "instances_active", "instances_used", "tile_words", "data_words_max", "energy_pj"}
"""What it reads of the detail of an evaluation."""


@attrs.frozen
class Row:
    """Accesses of one action in words of data, or of metadata in accesses, all instances together."""

    name: str
    count: float
    price_pj: float

    @property
    def energy_pj(self) -> float:
        return self.count * self.price_pj


@attrs.frozen
class Accesses:
    """The counts of a tensor at a level, all instances together."""

    tensor: str
    level: str
    tile_words: float
    stored_words: float
    """At most, in the tile of one instance."""
    instances: float
    """Expected to have a tile."""
    available: int
    dense: Mapping[str, float]
    """Words by action, without compression and filters."""
    rows: tuple[Row, ...]
    energy_pj: float

    @property
    def other_pj(self) -> float:
        """Energy that is in none of the rows, such as that of a charge; nothing but rounding where there is none."""
        return self.energy_pj - sum(row.energy_pj for row in self.rows)

    @property
    def reuse(self) -> float | None:
        """Words that go out for each word that comes in, without compression and filters; None where none comes in."""
        came, went = self.dense["fill"], self.dense["read"]
        return went / came if came else None

    def to_dict(self) -> dict[str, Any]:
        table = attrs.asdict(self)
        rows = [{**attrs.asdict(row), "energy_pj": row.energy_pj} for row in self.rows]
        return {**table, "rows": rows, "dense": dict(self.dense), "reuse": self.reuse}


def accesses_of(outcome: Outcome, tensor: int, level: int) -> Accesses | None:
    """None where the level does not keep the tensor, or where the cost model gives no counts."""
    problem, detail = outcome.design.problem, outcome.detail
    if not problem.stores(tensor, level) or not detail.keys() >= NEEDED:
        return None
    cell, here = detail["cells"][tensor][level], (tensor, level, 0)
    active = float(detail["instances_active"][here])
    gone = {GATED: "gated", SKIPPED: "skipped"}.get(int(cell.kind[0]))
    counts = {"read": cell.read, "fill": cell.fill, "update": cell.update}
    if gone:
        counts |= {f"{gone}_read": cell.gone_read, f"{gone}_update": cell.gone_update}
    rows = []
    for name, words in counts.items():
        price = problem.energy_pj(level, name if "_" in name else WRITES[name])
        rows.append(Row(name.replace("_", " "), float(words[0]) * active, price))
    width = problem.levels[level].metadata_width
    for name, bits in cell.bits.items():
        prefix, _, action = name.rpartition("_")
        price = problem.energy_pj(level, f"{prefix}_metadata_{action}" if prefix else f"metadata_{WRITES[action]}")
        about = f"{prefix} metadata {action}".strip()
        rows.append(Row(about, float(np.ceil(bits[0] / width)) * active, price))
    traffic = detail["traffic"]
    dense = {"read": traffic.reads, "fill": traffic.fills, "update": traffic.updates}
    return Accesses(
        problem.tensors[tensor].name,
        problem.levels[level].name,
        float(detail["tile_words"][here]),
        float(detail["data_words_max"][here]),
        active,
        problem.levels[level].instances,
        {name: float(words[here]) * float(detail["instances_used"][level, 0]) for name, words in dense.items()},
        tuple(row for row in rows if row.count),
        float(detail["energy_pj"][here]),
    )


def access_lines(outcome: Outcome, tensor: int, level: int) -> list[str]:
    """The block of `Accesses`; no lines where there are no counts."""
    found, design = accesses_of(outcome, tensor, level), outcome.design
    if found is None:
        return []
    problem, spec = design.problem, design.problem.tensors[tensor]
    share = percent(found.energy_pj / outcome.energy_pj) if outcome.energy_pj else "-"
    title = f"{spec.name} at {found.level}: {format_energy(found.energy_pj)}, {share} of the design's energy"
    extents = {dim: 1 for rank in spec.ranks for dim, _ in rank}
    for loop in design.loops:
        if loop.storage >= level and loop.dim in extents:
            extents[loop.dim] *= loop.bound
    size = " x ".join(f"{dim} {extent}" for dim, extent in extents.items())
    kept = f", at most {format_count(found.stored_words)} stored" if found.stored_words < found.tile_words else ""
    bits = format_bits(found.stored_words * problem.levels[level].word_bits)
    lines = [
        styled(title, "strong"),
        f"  tile     {indexed(spec)}, {size}: {format_count(found.tile_words)} words{kept}, {bits}",
    ]
    if level:
        lines.append(f"  held by  {_instances(found.instances)} of {found.available:,} {found.level}")
    loops = aligned(_loops(design, tensor, level), "<") or ["none: the tile comes once"] if level else []
    lines += [f"  {'loops' if not i else '':7}  {line}" for i, line in enumerate(loops)]
    if found.reuse is not None and not spec.output:
        came, went = (format_count(found.dense[name]) for name in ("fill", "read"))
        lines.append(f"  reuse    dense, {came} words come in and {went} go out: {format_count(found.reuse)} for each")
    cells = [["", "dense", "left", "pJ each", "energy"]]
    for row in found.rows:
        dense = format_count(found.dense[row.name]) if row.name in found.dense else ""
        cells.append([row.name, dense, format_count(row.count), f"{row.price_pj:.4g}", format_energy(row.energy_pj)])
    if abs(found.other_pj) > 1e-6 * found.energy_pj:
        cells.append(["charges", "", "", "", format_energy(found.other_pj)])
    return [*lines, *(f"  {line}" for line in aligned(cells))]


def _instances(count: float) -> str:
    return f"{count:,.0f}" if abs(count - round(count)) < 1e-6 else f"{count:,.1f}"


def _loops(design: Design, tensor: int, level: int) -> list[list[str]]:
    """The loops outside a level with what each does to the tile of a tensor, outer to inner."""
    outside = [loop for loop in design.loops if loop.storage < level]
    return [[_text(loop), effect(design, tensor, loop, level)] for loop in outside]


def effect(design: Design, tensor: int, loop: Loop, level: int) -> str:
    """What a loop outside a level does to the tile of a tensor there, in words."""
    spec = design.problem.tensors[tensor]
    moved = {dim for rank in spec.ranks for dim, _ in rank}
    outside = [other for other in design.loops if other.storage < level]
    inner = outside[outside.index(loop) + 1 :]
    still = all(other.spatial or other.dim not in moved for other in inner)
    return _effect(loop, loop.dim in moved, still, spec.output)


def _text(loop: Loop) -> str:
    return f"{'par-for' if loop.spatial else 'for'} {loop_name(loop)} in [0, {loop.bound})"


def _effect(loop: Loop, moves: bool, still: bool, output: bool) -> str:
    if loop.spatial:
        if moves:
            return "every instance has another part"
        return "instances add to the same results" if output else "instances have the same part"
    if moves:
        return "brings the next tile"
    if still:
        return "adds to the tile that is there" if output else "the tile stays"
    return "comes back to every tile: partial results return" if output else "brings every tile again"
