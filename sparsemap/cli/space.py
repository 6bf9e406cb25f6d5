"""A design space in words: mapping levels, segments, genes."""

from __future__ import annotations

from typing import Any

from ..files import aligned, grouped
from ..problem.problem import Problem
from .fitting import fitted


def space_table(problem: Problem) -> dict[str, Any]:
    """The same as plain data, with the range of every gene."""
    segments = {}
    for name, segment in problem.space.segments.items():
        genes = problem.space.segment_genes[name]
        ranges = zip(genes.low.tolist(), genes.high.tolist(), strict=True)
        genes_by_name = dict(zip(genes.names, map(list, ranges), strict=True))
        segments[name] = {"about": segment.explain(problem), "genes": genes_by_name}
    levels = [level.name for level in problem.mapping_levels]
    padded = {dim: list(sizes) for dim, sizes in problem.padded.items()}
    return {"mapping_levels": levels, "segments": segments, "padded": padded, "why_padded": problem.space.why_padded}


def space_lines(problem: Problem, width: int) -> list[str]:
    """Mapping levels, then per segment name, number, range and meaning of genes; and the total."""
    found = problem.space
    by_storage = grouped(problem.mapping_levels, lambda level: level.storage).values()
    rows = []
    for name, segment in found.segments.items():
        genes = found.segment_genes[name]
        word = "gene " if len(genes.names) == 1 else "genes"
        # `1..7`; the widest where genes of a segment differ
        values = f"{int(min(genes.low))}..{int(max(genes.high))}" if len(genes.names) else "-"
        rows.append([name, str(len(genes.names)), word, f" {values}", f"   {segment.explain(problem)}"])
    levels = "mapping levels  " + "  ".join(" ".join(level.name for level in same) for same in by_storage)
    lines, total = [levels, *aligned(fitted(rows, gap=1), "<><", gap=1)], f"total {len(found)} genes"
    room = width - len(lines[-1])
    if room >= len(total) + 2:
        lines[-1] += total.rjust(room)
    else:
        lines.append(total.rjust(width))
    if problem.padded:
        lines.append(f"padded  {problem.padded_text}")
    return lines
