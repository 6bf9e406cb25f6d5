"""A design on its page: charts and tables of energies, accesses and cycles, roofline, free resources, and the loop
nest.

The loop nest is drawn as nested boxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sparsemap.pieces.contracts import plain
from sparsemap.problem.designs import Design, Loop
from sparsemap.spec.units import format_bits, format_count, format_energy

from ..breakdown import breakdown_table
from ..charts import Chart
from ..design_charts import busy_chart, cycles_chart, energy_charts, product, roofline_chart
from ..loop_nest import nest_levels
from ..outcome import Accesses, DesignOutcome, effect
from ..tables import Cell, PageTable, number, numbers
from ..variants import Free
from ..wording import change_text, einsum_text, format_words, formats_of, loop_text, named_mechanisms, own_pieces
from .content import Box, Section, Text


def energies(outcome: DesignOutcome, free: Sequence[Free]) -> Iterator[Chart | PageTable]:
    without = {x.where: x.outcome.energy_pj for x in free if x.kind == "charge" and x.outcome.valid}
    if charts := list(energy_charts(outcome, without)):
        yield from charts
        if table := breakdown_table(outcome.breakdown, outcome.design.problem):
            yield table
        yield _action_table(outcome.accesses.values())


def _action_table(accesses: Iterable[Accesses]) -> PageTable:
    rows, tips = [], []
    for found in accesses:
        for row in found.rows:
            dense = number(found.dense[row.name], format_count) if row.name in found.dense else ""
            cells = [dense, number(row.count, format_count), number(row.price_pj, "{:.4g}".format)]
            rows.append([found.level.name, found.tensor.name, row.name, *cells, number(row.energy_pj, format_energy)])
            tips.append(product(row))
    return PageTable(["level", "tensor", "action", "dense words", "accesses", "pJ each", "energy"], rows, tips)


def cycles(outcome: DesignOutcome) -> Iterator[Chart]:
    if chart := cycles_chart(outcome):
        yield from filter(None, (chart, busy_chart(outcome)))
        if (roofs := roofline_chart(outcome)) and roofs.marks:
            yield roofs


def one_free(outcome: DesignOutcome, free: Sequence[Free]) -> PageTable:
    """Resources that lower the EDP if free, best first."""
    made: list[list[Cell]] = []
    better = [(x.name, x.outcome) for x in free if x.outcome.edp < outcome.edp * (1 - 1e-9)]
    for name, one in [("nothing", outcome), *sorted(better, key=lambda row: row[1].edp)]:
        edp, *others = numbers(one.to_dict(), None)
        made.append([name, edp, change_text(one.edp, outcome.edp) if made else "", *others, one.limit])
    return PageTable(["free", "EDP", "change", "energy", "cycles", "limited by"], made)


MARKS = (
    "Pointing at a loop tells what it does. par-for: its steps are carried out at the same time, on as many instances; "
    "for: one after the other. Skip Q <- P: what Q would deliver for zeros of P is skipped, which saves energy and "
    "time. Gate: the same saves energy, but not time. <->: each for the other's zeros. A format stands for a rank, of the "
    "loop in brackets, outer to inner."
)


def section(outcome: DesignOutcome) -> Section:
    """The loop nest, outermost memory first, with a legend."""
    design, problem = outcome.design, outcome.design.problem
    if {"bounds", "order", "formats", "mechanisms"} - design.batch.columns.keys():
        return Section("Loop nest", [Text(["The design has no loops, formats and mechanisms of which one is drawn."])])
    short, _, legend = formats_of(design)
    *levels, units = nest_levels(design, outcome.detail)
    filters = {level.name: level.filters.split(", ") if level.filters else [] for level in (*levels, units)}
    inner = Box(units.name, "", filters[units.name], [], [], None, einsum_text(problem.tensors))
    for index, level in reversed(list(enumerate(levels))):
        kept = [t for t in range(len(problem.tensors)) if problem.stores(t, index)]
        tensors = [_tile(outcome, t, index, short) for t in kept]
        notes = [f"{loop.bound} instances" if loop.spatial else "" for loop in level.loops]
        told = zip(level.loops, notes, strict=True)
        loops = [(loop_text(loop), loop.spatial, note, _loop_tip(design, loop)) for loop, note in told]
        inner = Box(level.name, plain(level.room), filters[level.name], tensors, loops, inner)
    named = named_mechanisms(design)
    about = f"Mechanisms: {', '.join(named)}" if named else ""
    own = "; ".join(": ".join(row) for row in own_pieces(design))
    words = filter(None, [", ".join(legend), about, own and f"Not built in: {own}"])
    return Section("Loop nest", [inner], f"{MARKS} {'. '.join(words)}.")


def _tile(outcome: DesignOutcome, t: int, level: int, short: Mapping[str, str]) -> tuple[str, str, str]:
    """Name, tile and formats of a tensor at a level."""
    problem, about = outcome.design.problem, ""
    tensor, spec = problem.tensors[t], problem.levels[level]
    if found := outcome.accesses.get((tensor.name, spec.name)):
        about = f"tile of {format_count(found.tile_words)} words, {format_bits(found.stored_words * found.word_bits)}"
    here = level < outcome.design.decoded(t)
    ranks = [rank for rank in outcome.design.ranks(t) if rank.loop.storage >= level] if here else []
    return tensor.name, about, " ".join(format_words(ranks, short))


def _loop_tip(design: Design, loop: Loop) -> str:
    """The effect of a loop on each tensor's tile inside it."""
    problem, inside = design.problem, loop.storage + 1
    parts = [f"{loop.bound:,} steps of {loop.dim}, {'at the same time' if loop.spatial else 'one after the other'}"]
    for t, tensor in enumerate(problem.tensors):
        if inside == len(problem.levels) or problem.stores(t, inside):
            parts.append(f"{tensor.text}: {effect(design.loops, tensor, loop, inside)}")
    return "\n".join(parts)
