"""The loop nest of a design with its formats and skip/gate mechanisms, as at the bottom of the paper's Fig. 13.

    GLB ── 1.08 of 128 KB, 1 % ──────────────────────────── Skip Q <- P ──
      for m2 in [0, 4)
        par-for n3 in [0, 4)                                   4 of 16 PEB

A loop is named after its dimension and its mapping level, so `n3` belongs to the third mapping level. Loops of bound 1
are left out. A group of spatial loops has a note with the instances in use below."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Exporter, Result
from sparsemap.files import aligned, percent
from sparsemap.pieces.contracts import plain, styled
from sparsemap.problem.designs import Design, Loop
from sparsemap.problem.evaluation import Detail
from sparsemap.problem.levels import Level, MappingLevel
from sparsemap.problem.problem import Problem
from sparsemap.spec.units import format_bits

from .wording import einsum_text, formats_of, loop_name, mechanism_text, named_mechanisms, own_pieces, wrapped


class LoopNestText(Exporter):
    """The loop nest with storage levels, formats and skip/gate mechanisms, as text."""

    type_name: ClassVar[str] = "loop-nest"
    file_name: ClassVar[str] = "loop-nest.txt"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        return loop_nest(result.found.design, result.found.detail, width)

    def data(self, result: Result, problem: Problem) -> dict[str, Any]:
        from sparsemap.problem import design_file

        table = design_file.dump(result.found.design)
        return {key: table[key] for key in ("mapping", "formats", "beyond_format", "gate_skip") if key in table}


@attrs.frozen
class NestLevel:
    """A storage level, or the compute units."""

    name: str
    room: str
    """Memory in use by the text of `room`."""
    filters: str | None
    """Skips and gates, `mechanism_text`; None for a level without a place, or a design without mechanisms."""
    loops: tuple[Loop, ...]


def nest_levels(design: Design, detail: Detail) -> list[NestLevel]:
    """The levels from the outermost inwards, then the compute units; without loops if the design has none."""
    problem, columns = design.problem, design.batch.columns.keys()
    places = problem.places if "mechanisms" in columns else ()
    filters = {place.storage: mechanism_text(design.mechanism(place), place, problem) for place in places}
    loops = design.loops if {"bounds", "order"} <= columns else ()
    lives: dict[int, list[str]] = {}
    for t, home in problem.resident:
        share = "what lives of" if t in problem.slides else "all of"
        lives.setdefault(home, []).append(f"{share} {problem.tensors[t].name}")
    levels = []
    for level in problem.levels:
        used = ", ".join(filter(None, [room(level, detail), " and ".join(lives.get(level.index, ()))]))
        own = tuple(loop for loop in loops if loop.storage == level.index)
        levels.append(NestLevel(level.name, used, filters.get(level.index), own))
    return [*levels, NestLevel(problem.compute_name, "", filters.get(None), ())]


def loop_nest(design: Design, detail: Detail, width: int = 80) -> str:
    """The text of a design; `detail` of its evaluation gives the contents of levels, if the cost model reports
    contents."""
    problem, columns, levels = design.problem, design.batch.columns.keys(), nest_levels(design, detail)
    step = 2 if 2 * sum(len(box.loops) for box in levels) + 42 <= width else 1
    lines, depth = list[str](), 0
    for box in levels:
        lines.append(_heading(box, width))
        for number, group in groupby(box.loops, attrgetter("group")):
            together = list(group)
            for loop in together:
                word = styled("par-for", "parallel") if loop.spatial else styled("for", "strong")
                lines.append(f"{' ' * (2 + step * depth)}{word} {styled(loop_name(loop), 'name')} in [0, {loop.bound})")
                depth += 1
            if note := _in_use(together, problem.mapping_levels[number], problem):
                lines[-1] += " " * max(width - len(plain(lines[-1])) - len(note), 2) + styled(note, "faint")
    if problem.tensors:
        statement = einsum_text(problem.tensors)
        lines.append(" " * max(min(2 + step * depth, width - len(statement)), 0) + statement)
    if said := [f"  {line}" for segment in problem.space.segments.values() for line in segment.lines(design)]:
        lines += ["", *said]
    if {"bounds", "order", "formats"} <= columns:
        lines += ["", *_formats(design, width)]
    if own := own_pieces(design):
        lines += ["", styled("not built in", "strong"), *(f"  {line}" for line in aligned(own, "<"))]
    if named := named_mechanisms(design):
        lines += ["", styled("mechanisms", "strong"), *wrapped("  ", named, width, ", ")]
    return "\n".join(lines) + "\n"


def _heading(box: NestLevel, width: int) -> str:
    """`GLB ── 96 of 128 KB, 75 % ───── Skip Q <- P ──`, as wide as all other headings."""
    start, end, rule = f"{styled(box.name, 'heading')} ", "", styled("──", "faint")
    if box.room:
        start += f"{rule} {box.room} "
    if box.filters is not None:
        action = styled(box.filters, "action") if box.filters else styled("no skip or gate", "faint")
        end = f" {action} {rule}"
    return start + styled("─" * max(width - len(plain(start + end)), 3), "faint") + end


def _in_use(loops: Sequence[Loop], group: MappingLevel, problem: Problem) -> str:
    """`48 of 64 MAC`, for a spatial group."""
    if not group.spatial:
        return ""
    inner = group.storage + 1
    below = problem.levels[inner].name if inner < len(problem.levels) else problem.compute_name
    return f"{int(np.prod([loop.bound for loop in loops]))} of {group.limit} {below}"


def room(spec: Level, detail: Detail) -> str:
    """`96 of 128 KB, 75 %`: the most bits held by an instance at a time, against its capacity."""
    if spec.capacity_bits is None:
        return ""
    if detail.data_words_max is None:
        return format_bits(spec.capacity_bits)
    bits = sum(held(spec, detail))
    share = percent(bits / spec.capacity_bits) if spec.capacity_bits else ""
    used, available = format_bits(bits), format_bits(spec.capacity_bits)
    if used.split()[-1] == available.split()[-1]:
        used = used.split()[0]
    return f"{used} of {available}, {share}"


def held(spec: Level, detail: Detail) -> list[float]:
    """The most bits of each tensor in an instance, then of all metadata if the capacity is shared."""
    words = np.asarray(detail.data_words_max)[:, spec.index, 0]
    bits = [float(count) * float(each) for count, each in zip(words, detail.bits(spec), strict=True)]
    if spec.shared_capacity and detail.metadata_bits_max is not None:
        bits.append(float(detail.metadata_bits_max[spec.index, 0]))
    return bits


def _formats(design: Design, width: int) -> list[str]:
    """The formats of every tensor, outer to inner rank, and a legend of the short names."""
    _, by_tensor, legend = formats_of(design)
    lines, label = [styled("formats, outer to inner", "strong")], max(map(len, by_tensor), default=0)
    for name, words in by_tensor.items():
        lines += wrapped(f"  {name:{label}}  ", words, width)
    if legend:
        lines += wrapped(" " * (label + 4), legend, width, ", ")
    return lines
