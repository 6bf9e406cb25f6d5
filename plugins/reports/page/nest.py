"""The loop nest of a page: boxes in each other."""

from __future__ import annotations

from collections.abc import Mapping

from sparsemap.pieces.contracts import plain
from sparsemap.problem.designs import Design, Loop
from sparsemap.spec.units import format_bits, format_count

from ..accesses import effect
from ..loop_nest import nest_levels
from ..outcome import DesignOutcome
from ..wording import einsum_text, format_words, formats_of, loop_text, named_mechanisms
from .content import Box, Section, Text

MARKS = (
    "Pointing at a loop tells what it does. par-for: its steps are carried out at the same time, on as many instances; "
    "for: one after the other. Skip Q <- P: what Q would deliver for zeros of P is skipped, which saves energy and "
    "time. Gate: the same saves energy, but not time. <->: each for the other's zeros. A format stands for a rank, of the "
    "loop in brackets, outer to inner."
)


def section(outcome: DesignOutcome) -> Section:
    """The loop nest, outermost memory first, and how it is read."""
    design, problem = outcome.design, outcome.design.problem
    if {"bounds", "order", "formats", "mechanisms"} - design.batch.columns.keys():
        return Section("Loop nest", [Text(["The design has no loops, formats and mechanisms of which one is drawn."])])
    short, _, legend = formats_of(design)
    *levels, units = nest_levels(design, outcome.detail)
    inner = Box(units.name, "", _split(units.filters), [], [], None, einsum_text(problem.tensors))
    for index, level in reversed(list(enumerate(levels))):
        kept = [t for t in range(len(problem.tensors)) if problem.stores(t, index)]
        tensors = [_tile(outcome, t, index, short) for t in kept]
        loops = [
            (loop_text(loop), loop.spatial, f"{loop.bound} instances" if loop.spatial else "", _loop_tip(design, loop))
            for loop in level.loops
        ]
        inner = Box(level.name, plain(level.room), _split(level.filters), tensors, loops, inner)
    named = named_mechanisms(design)
    about = f" Mechanisms: {', '.join(named)}." if named else ""
    return Section("Loop nest", [inner], f"{MARKS} {', '.join(legend)}{about}")


def _split(filters: str | None) -> list[str]:
    return filters.split(", ") if filters else []


def _tile(outcome: DesignOutcome, t: int, level: int, short: Mapping[str, str]) -> tuple[str, str, str]:
    """Name, tile and formats of a tensor at a level."""
    problem, about = outcome.design.problem, ""
    tensor, spec = problem.tensors[t], problem.levels[level]
    if found := outcome.accesses.get((tensor.name, spec.name)):
        about = f"tile of {format_count(found.tile_words)} words, {format_bits(found.stored_words * spec.word_bits)}"
    here = level < outcome.design.decoded(t)
    ranks = [rank for rank in outcome.design.ranks(t) if rank.loop.storage >= level] if here else []
    return tensor.name, about, " ".join(format_words(ranks, short))


def _loop_tip(design: Design, loop: Loop) -> str:
    """What a loop does to the tile of each tensor that is inside it."""
    problem, inside = design.problem, loop.storage + 1
    parts = [f"{loop.bound:,} steps of {loop.dim}, {'at the same time' if loop.spatial else 'one after the other'}"]
    for t, tensor in enumerate(problem.tensors):
        if inside == len(problem.levels) or problem.stores(t, inside):
            parts.append(f"{tensor.text}: {effect(design.loops, tensor, loop, inside)}")
    return "\n".join(parts)
