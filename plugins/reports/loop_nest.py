"""The loop nest of a design with its formats and skip/gate mechanisms, as at the bottom of the paper's Fig. 13.

    GLB ── 1.08 of 128 KB, 1 % ──────────────────────────── Skip Q <- P ──
      for m2 in [0, 4)
        par-for n3 in [0, 4)                                   4 of 16 PEB

A loop is named after its dimension and its mapping level, so `n3` belongs to the third mapping level. Loops of bound 1
are left out. A group of spatial loops says how many of the instances below it are in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Exporter, Result
from sparsemap.files import percent
from sparsemap.pieces.contracts import plain, styled
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design, Loop
from sparsemap.problem.levels import Level, MappingLevel
from sparsemap.problem.problem import Problem
from sparsemap.spec.units import format_bits

from .wording import einsum_text, mechanism_text, symbols


def loop_name(loop: Loop) -> str:
    """`n3`, or `n2.3` for a dimension called n2: the mapping levels are counted from 1, the outermost."""
    return f"{loop.dim}.{loop.group + 1}" if loop.dim[-1].isdigit() else f"{loop.dim}{loop.group + 1}"


@attrs.frozen(kw_only=True)
class LoopNestText(Exporter):
    """The loop nest with storage levels, formats and skip/gate mechanisms, as text."""

    type_name: ClassVar[str] = "loop-nest"
    file_name: ClassVar[str] = "loop-nest.txt"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        return loop_nest(result.found.design, result.found.detail, width)

    def data(self, result: Result, problem: Problem) -> dict[str, Any]:
        table = design_file.dump(result.found.design)
        return {key: table[key] for key in ("mapping", "formats", "beyond_format", "gate_skip") if key in table}


def loop_nest(design: Design, detail: Mapping[str, Any], width: int = 80) -> str:
    """The text of a design; `detail` of its evaluation gives what the levels hold, if the cost model says so."""
    lines: list[str] = []
    problem, columns = design.problem, design.batch.columns.keys()
    mapped = {"bounds", "order"} <= columns
    loops = design.loops if mapped else ()
    actions = _actions(design) if "mechanisms" in columns else {}
    step = 2 if 2 * len(loops) + 42 <= width else 1
    depth = 0
    for level in problem.levels:
        lines.append(_heading(level.name, room(level, detail), actions.get(level.name, ""), width))
        groups = [(i, group) for i, group in enumerate(problem.mapping_levels) if group.storage == level.index]
        for number, group in groups:
            here = [loop for loop in loops if loop.group == number]
            for position, loop in enumerate(here):
                note = _in_use(here, group, problem) if position == len(here) - 1 else ""
                word = styled("par-for", "parallel") if loop.spatial else styled("for", "strong")
                text = f"{word} {styled(loop_name(loop), 'name')} in [0, {loop.bound})"
                lines.append(_spread(" " * (2 + step * depth) + text, note, width))
                depth += 1
    compute = problem.compute_name
    lines.append(_heading(compute, "", actions.get(compute, ""), width))
    if problem.tensors:
        statement = einsum_text(problem.tensors)
        lines.append(" " * max(min(2 + step * depth, width - len(statement)), 0) + statement)
    said = [line for segment in problem.space.segments.values() for line in segment.lines(design)]
    if said:
        lines += ["", *(f"  {line}" for line in said)]
    if mapped and "formats" in columns:
        lines += ["", *_formats(design, width)]
    return "\n".join(lines) + "\n"


def _heading(name: str, used: str, action: str, width: int) -> str:
    """`GLB ── 96 of 128 KB, 75 % ───── Skip Q <- P ──`, as wide as all other headings."""
    start = f"{styled(name, 'heading')} {styled('──', 'faint')} {used} " if used else f"{styled(name, 'heading')} "
    end = f" {action} {styled('──', 'faint')}" if action else ""
    rule = "─" * max(width - len(plain(start + end)), 3)
    return start + styled(rule, "faint") + end


def _spread(start: str, end: str, width: int) -> str:
    """The two texts at either end of a line."""
    space = " " * max(width - len(plain(start)) - len(end), 2)
    return start + space + styled(end, "faint") if end else start


def _in_use(loops: Sequence[Loop], group: MappingLevel, problem: Problem) -> str:
    """`48 of 64 MAC`, for a spatial group."""
    if not group.spatial:
        return ""
    inner = group.storage + 1
    below = problem.levels[inner].name if inner < len(problem.levels) else problem.compute_name
    return f"{int(np.prod([loop.bound for loop in loops]))} of {group.limit} {below}"


def _actions(design: Design) -> dict[str, str]:
    """What is skipped or gated, by place."""
    problem = design.problem
    return {
        place.name: styled(text, "action") if text else styled("no skip or gate", "faint")
        for place in problem.places
        for text in [mechanism_text(design.mechanism(place), place, problem)]
    }


def room(spec: Level, detail: Mapping[str, Any]) -> str:
    """`96 of 128 KB, 75 %`: the most that one instance holds at a time, against its capacity."""
    words, metadata = detail.get("data_words_max"), detail.get("metadata_bits_max")
    if spec.capacity_bits is None:
        return ""
    if words is None:
        return format_bits(spec.capacity_bits)
    bits = float(np.asarray(words)[:, spec.index, 0].sum()) * spec.word_bits
    if spec.shared_capacity and metadata is not None:
        bits += float(np.asarray(metadata)[spec.index, 0])
    share = percent(bits / spec.capacity_bits) if spec.capacity_bits else ""
    used, available = format_bits(bits), format_bits(spec.capacity_bits)
    if used.split()[-1] == available.split()[-1]:
        used = used.split()[0]
    return f"{used} of {available}, {share}"


def _formats(design: Design, width: int) -> list[str]:
    """The formats of every tensor, outer to inner rank, and what the short names mean."""
    problem = design.problem
    formats: list[Any] = [*problem.candidates("format"), *problem.candidates("beyond-format")[:1]]
    short = symbols(formats)
    used: set[str] = set()
    names = [tensor.name for tensor in problem.tensors]
    label = max(map(len, names), default=0)
    lines = [styled("formats, outer to inner", "strong")]
    for index, name in enumerate(names):
        ranks = design.ranks(index)
        if any(rank.format.compressed for rank in ranks):
            words = [f"{short[rank.format.name]}({loop_name(rank.loop)})" for rank in ranks]
            used |= {rank.format.name for rank in ranks}
        else:
            words = ["uncompressed"]
        lines += _wrapped(f"  {name:{label}}  ", words, width)
    if used:
        legend = [f"{symbol} = {name}" for name, symbol in short.items() if name in used]
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
