"""The loop nest of a page: boxes in each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparsemap.pieces.contracts import plain
from sparsemap.problem.designs import Loop
from sparsemap.spec.units import format_bits, format_count

from ..accesses import accesses_of, effect
from ..loop_nest import loop_name, room
from ..variants import Outcome
from ..wording import einsum_text, indexed, mechanism_text, symbols
from .content import Box, Section, Text

MARKS = (
    "Pointing at a loop tells what it does. par-for: its steps are carried out at the same time, on as many instances; "
    "for: one after the other. Skip Q <- P: what Q would deliver for zeros of P is skipped, which saves energy and "
    "time. Gate: the same saves energy, but not time. <->: each for the other's zeros. A format stands for a rank, of the "
    "loop in brackets, outer to inner."
)


def section(outcome: Outcome) -> Section:
    """The loop nest, outermost memory first, and how it is read."""
    design, problem = outcome.design, outcome.design.problem
    if {"bounds", "order", "formats", "mechanisms"} - design.batch.columns.keys():
        return Section("Loop nest", [Text(["The design has no loops, formats and mechanisms of which one is drawn."])])
    known: list[Any] = [*problem.candidates("format"), *problem.candidates("beyond-format")[:1]]
    short = symbols(known)
    ranks = [design.ranks(t) for t in range(len(problem.tensors))]
    packed = [found for found in ranks if any(rank.format.compressed for rank in found)]
    used = dict.fromkeys(rank.format.name for found in packed for rank in found)
    legend = ", ".join(f"{short[name]} = {name}" for name in used)
    return Section("Loop nest", [_boxes(outcome, short)], f"{MARKS} {legend}")


def _boxes(outcome: Outcome, short: Mapping[str, str]) -> Box:
    design, problem = outcome.design, outcome.design.problem
    marks = {x.storage: mechanism_text(design.mechanism(x), x, problem) for x in problem.places}
    statement = einsum_text(problem.tensors)
    inner = Box(problem.compute_name, "", _split(marks.get(None, "")), [], [], None, statement)
    for level in reversed(problem.levels):
        tensors = [_tile(outcome, t, level.index, short) for t in range(len(problem.tensors))]
        loops = [
            (
                f"{'par-for' if loop.spatial else 'for'} {loop_name(loop)} in [0, {loop.bound})",
                loop.spatial,
                f"{loop.bound} instances" if loop.spatial else "",
                _loop_tip(outcome, loop),
            )
            for loop in design.loops
            if loop.storage == level.index
        ]
        held, mark = plain(room(level, outcome.detail)), _split(marks.get(level.index, ""))
        inner = Box(level.name, held, mark, [row for row in tensors if row], loops, inner)
    return inner


def _split(marks: str) -> list[str]:
    return marks.split(", ") if marks else []


def _tile(outcome: Outcome, t: int, level: int, short: Mapping[str, str]) -> Any:
    """Name, tile and formats of a tensor at a level; None where it is not kept."""
    problem, design = outcome.design.problem, outcome.design
    if not problem.stores(t, level):
        return None
    found = accesses_of(outcome, t, level)
    ranks = [rank for rank in design.ranks(t) if rank.loop.storage >= level]
    packed = any(rank.format.compressed for rank in ranks)
    names = [f"{short[rank.format.name]}({loop_name(rank.loop)})" for rank in ranks] if packed else ["uncompressed"]
    about = ""
    if found is not None:
        bits = format_bits(found.stored_words * problem.levels[level].word_bits)
        about = f"tile of {format_count(found.tile_words)} words, {bits}"
    return problem.tensors[t].name, about, " ".join(names)


def _loop_tip(outcome: Outcome, loop: Loop) -> str:
    """What a loop does to the tile of each tensor that is inside it."""
    design, problem = outcome.design, outcome.design.problem
    parts = [f"{loop.bound:,} steps of {loop.dim}, {'at the same time' if loop.spatial else 'one after the other'}"]
    inside = loop.storage + 1
    for t, tensor in enumerate(problem.tensors):
        if inside < len(problem.levels) and not problem.stores(t, inside):
            continue
        parts.append(f"{indexed(tensor)}: {effect(design, t, loop, inside)}")
    return "\n".join(parts)
