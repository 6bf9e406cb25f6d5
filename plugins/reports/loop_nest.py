"""The loop nest of a design with its formats and skip/gate mechanisms, as at the bottom of the paper's Fig. 13.

    GLB ── 1.08 of 128 KB, 1 % ──────────────────────────── Skip Q <- P ──
      for m2 in [0, 4)
        par-for n3 in [0, 4)                                   4 of 16 PEB

A loop is named after its dimension and its mapping level, so `n3` belongs to the third mapping level. Loops of bound 1
are left out. A group of spatial loops says how many of the instances below it are in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np

from sparsemap.files import percent
from sparsemap.spec.units import format_bits

from .text import TextExporter, best_of
from .wording import einsum_text, mechanism_text, symbols

if TYPE_CHECKING:
    from sparsemap.problem.designs import Designs
    from sparsemap.problem.problem import MappingLevel, Problem
    from sparsemap.searching.result import Result

MIN_WIDTH = 50


@attrs.frozen
class Loop:
    """One loop with a bound above 1."""

    dim: str
    group: int
    """Number of the mapping level, 1 being the outermost."""
    bound: int
    spatial: bool

    @property
    def name(self) -> str:
        return f"{self.dim}.{self.group}" if self.dim[-1].isdigit() else f"{self.dim}{self.group}"

    def __str__(self) -> str:
        return f"{'par-for' if self.spatial else 'for'} {self.name} in [0, {self.bound})"


def loops_of(design: Designs, problem: Problem, row: int = 0) -> list[Loop]:
    """The loops of one design from the outermost to the innermost, those of bound 1 left out."""
    bounds, order = design.columns["bounds"][..., row], design.columns["order"][..., row]
    return [
        Loop(problem.dims[dim], group + 1, int(bounds[group, dim]), level.spatial)
        for group, level in enumerate(problem.mapping_levels)
        for dim in (int(d) for d in order[group])
        if bounds[group, dim] > 1
    ]


def ranks_of(design: Designs, problem: Problem, tensor: int, loops: list[Loop], row: int = 0) -> list[tuple[int, Loop]]:
    """The loops that are ranks of a tensor, each with the index of its format, outer to inner.

    Slots align with the innermost ranks; ranks further out than the slots have the candidate "beyond-format", or the
    first one.
    """
    formats = problem.candidates("format")
    slots = [int(choice) for choice in design.columns["formats"][tensor, :, row]]
    beyond = len(formats) if problem.candidates("beyond-format") else 0
    moving = [loop for loop in loops if loop.dim in problem.tensors[tensor].dims]
    missing = len(moving) - len(slots)
    chosen = [beyond] * missing + slots[max(-missing, 0) :]
    return list(zip(chosen, moving, strict=True))


@attrs.frozen(kw_only=True)
class LoopNestText(TextExporter):
    """The loop nest with storage levels, formats and skip/gate mechanisms, as text."""

    type_name: ClassVar[str] = "loop-nest"
    file_name: ClassVar[str] = "loop-nest.txt"

    width: int = attrs.field(default=80, validator=attrs.validators.ge(MIN_WIDTH))
    """Columns of the text."""

    def text(self, result: Result, problem: Problem) -> str:
        design = best_of(result).design
        detail = problem.evaluator.evaluate_designs(design, detail=True).detail or {}
        return loop_nest(design, problem, detail, self.width)


def loop_nest(design: Designs, problem: Problem, detail: Mapping[str, Any], width: int = 80, row: int = 0) -> str:
    """The text of one design; `detail` of its evaluation gives what the levels hold, if the cost model says so."""
    lines: list[str] = []
    mapped = {"bounds", "order"} <= design.columns.keys()
    loops = loops_of(design, problem, row) if mapped else []
    actions = _actions(design, problem, row)
    step = 2 if 2 * len(loops) + 42 <= width else 1
    depth = 0
    for level in problem.levels:
        lines.append(_heading(level.name, _used(level.index, problem, detail, row), actions.get(level.name), width))
        groups = [(i, group) for i, group in enumerate(problem.mapping_levels) if group.storage == level.index]
        for number, group in groups:
            here = [loop for loop in loops if loop.group == number + 1]
            for position, loop in enumerate(here):
                note = _in_use(here, group, problem) if position == len(here) - 1 else ""
                lines.append(_spread(" " * (2 + step * depth) + str(loop), note, width))
                depth += 1
    compute = str(problem.hardware.compute.get("name", "MAC"))
    lines.append(_heading(compute, "", actions.get(compute), width))
    if problem.tensors:
        statement = einsum_text(problem.tensors)
        lines.append(" " * max(min(2 + step * depth, width - len(statement)), 0) + statement)
    if mapped and "formats" in design.columns:
        lines += ["", *_formats(design, problem, loops, width, row)]
    return "\n".join(lines) + "\n"


def _heading(name: str, middle: str, action: str | None, width: int) -> str:
    start = f"{name} ── {middle} ─" if middle else f"{name} ─"
    end = f"─ {action} ──" if action else "─"
    return start + "─" * max(width - len(start) - len(end), 1) + end


def _spread(start: str, end: str, width: int) -> str:
    """The two texts at either end of a line."""
    return start + end.rjust(max(width - len(start), len(end) + 2)) if end else start


def _in_use(loops: list[Loop], group: MappingLevel, problem: Problem) -> str:
    """`48 of 64 MAC`, for a spatial group."""
    if not group.spatial:
        return ""
    inner = group.storage + 1
    below = problem.levels[inner].name if inner < len(problem.levels) else problem.hardware.compute.get("name", "MAC")
    return f"{int(np.prod([loop.bound for loop in loops]))} of {group.limit} {below}"


def _actions(design: Designs, problem: Problem, row: int) -> dict[str, str]:
    """What is skipped or gated, by place."""
    if "mechanisms" not in design.columns:
        return {}
    mechanisms: Any = problem.candidates("mechanism")
    chosen = design.columns["mechanisms"][:, row]
    return {
        place.name: mechanism_text(mechanisms[int(choice)], place, problem) or "no skip or gate"
        for place, choice in zip(problem.places, chosen, strict=True)
    }


def _used(level: int, problem: Problem, detail: Mapping[str, Any], row: int) -> str:
    """`96 of 128 KB, 75 %`: the most that one instance holds at a time, against its capacity."""
    spec = problem.levels[level]
    words, metadata = detail.get("data_words_max"), detail.get("metadata_bits_max")
    if spec.capacity_bits is None:
        return ""
    if words is None:
        return format_bits(spec.capacity_bits)
    bits = float(np.asarray(words)[:, level, row].sum()) * spec.word_bits
    if spec.shared_capacity and metadata is not None:
        bits += float(np.asarray(metadata)[level, row])
    share = percent(bits / spec.capacity_bits) if spec.capacity_bits else ""
    used, available = format_bits(bits), format_bits(spec.capacity_bits)
    if used.split()[-1] == available.split()[-1]:
        used = used.split()[0]
    return f"{used} of {available}, {share}"


def _formats(design: Designs, problem: Problem, loops: list[Loop], width: int, row: int) -> list[str]:
    """The formats of every tensor, outer to inner rank, and what the short names mean."""
    formats: list[Any] = [*problem.candidates("format"), *problem.candidates("beyond-format")[:1]]
    short = symbols(formats)
    used: dict[int, None] = {}
    names = [tensor.name for tensor in problem.tensors]
    label = max(map(len, names), default=0)
    lines = ["formats, outer to inner"]
    for index, name in enumerate(names):
        ranks = ranks_of(design, problem, index, loops, row)
        if any(formats[choice].compressed for choice, _ in ranks):
            words = [f"{short[choice]}({loop.name})" for choice, loop in ranks]
            used |= dict.fromkeys(choice for choice, _ in ranks)
        else:
            words = ["uncompressed"]
        lines += _wrapped(f"  {name:{label}}  ", words, width)
    if used:
        legend = list(dict.fromkeys(f"{short[choice]} = {formats[choice].name}" for choice in sorted(used)))
        lines += _wrapped(" " * (label + 4), [*(f"{word}," for word in legend[:-1]), legend[-1]], width)
    return lines


def _wrapped(start: str, words: list[str], width: int) -> list[str]:
    lines, line = [], start
    for word in words:
        if len(line) > len(start) and len(line) + len(word) > width:
            lines.append(line.rstrip())
            line = " " * len(start)
        line += word + " "
    return [*lines, line.rstrip()]
