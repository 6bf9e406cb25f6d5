"""The whole outcome of a search for its reader: numbers, what bounds them, the design, energies, rejected designs."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs

from sparsemap import Best, Exporter, Result
from sparsemap.files import aligned, percent
from sparsemap.pieces.contracts import styled
from sparsemap.problem.problem import Problem
from sparsemap.spec.units import format_count, format_energy

from .breakdown import breakdown_lines
from .loop_nest import loop_nest
from .wording import chip_text, einsum_text, numbers_text, problem_texts

REASONS_SHOWN = 8
FRONT_SHOWN = 8


@attrs.frozen(kw_only=True)
class SummaryText(Exporter):
    """Numbers, loop nest, energies and reasons of a result, as text."""

    type_name: ClassVar[str] = "summary"
    file_name: ClassVar[str] = "summary.txt"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        best, found = result.found, result.breakdown()
        limit = f"   {styled(f'limited by {found.limit}', 'warning')}" if found.limit else ""
        numbers = [["energy", format_energy(best.energy_pj)], ["cycles", format_count(best.cycles) + limit]]
        if text := chip_text(best.costs):
            numbers.append(["chip", text])
        where = "   at the nominal densities above" if best.scenarios else ""
        numbers.insert(0, ["EDP", f"{best.edp:.3e} pJ * cycles{where}"])
        unit = f" {problem.objective.unit}".rstrip()
        if best.score != best.edp:
            numbers.insert(0, ["score", f"{best.score:.6g}{unit}   {result.objective}"])
        if result.bound is not None and result.gap is not None:
            proof = f"{result.bound:.3e}{unit} by proof in space {result.space}: optimum within {result.gap:.2f}x"
            if result.broken_bound:
                proof = styled(f"{result.bound:.3e}{unit}, BROKEN: the design is at {result.gap:.4g}x of it", "warning")
            numbers.append(["bound", proof])
        if result.proof is not None:
            numbers.append(["proof", result.proof.text])
        for name, there in best.fidelities.items():
            if "edp" in there:
                rest = f"{format_energy(there['energy_pj'])}, {format_count(there['cycles'])} cycles"
                numbers.append([name, f"{there['edp']:.3e} pJ * cycles   {rest}"])
            else:
                numbers.append([name, f"does not fit: {', '.join(there['reasons'])}"])
        if result.searcher:
            seen = f"{result.evaluations:,} designs in {seconds_text(result.seconds)}"
            valid = f"{percent(result.valid_fraction)} valid"
            numbers.append(["search", f"{seen}, {valid}   {result.searcher}, seed {result.seed}"])
        starts = [row for row in result.start if row["score"] is not None]
        if starts:
            row = min(starts, key=lambda row: row["score"])
            far = f"distance {row['distance']:g}"
            numbers.append(["start", f"{row['workload']} ({far}): {row['score'] / best.score:.2f}x of the end"])
        blocks = [
            problem_lines(problem),
            [_labelled(line) for line in aligned(numbers, "<")],
            [loop_nest(best.design, best.detail, width).rstrip("\n")],
            breakdown_lines(found, problem),
        ]
        if best.scenarios:
            blocks.append(scenario_lines(best))
        if result.executed:
            blocks.append(executed_lines(result))
        if result.front:
            blocks.append(front_lines(result, problem))
        if result.rejects:
            blocks.append(reject_lines(result))
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def problem_lines(problem: Problem) -> list[str]:
    """Workload and hardware, sizes, densities, and what was padded."""
    statement = [einsum_text(problem.tensors).replace(" += ", " = ")] if problem.tensors else []
    rows = [f"{label:7}  {text}" for label, text in problem_texts(problem).items() if text]
    return [styled(problem.title, "strong"), *statement, *map(_labelled, rows)]


def _labelled(line: str) -> str:
    """The line with its first word marked."""
    label, space, rest = line.partition(" ")
    return styled(label, "strong") + space + rest


def scenario_lines(best: Best) -> list[str]:
    """What the design is worth in each scenario, and how far it is from the bound there."""
    rows = [["", "weight", "EDP", "energy", "cycles", "over the bound"]]
    unfit = []
    for name, there in best.scenarios.items():
        if not math.isfinite(there.energy_pj):
            unfit.append(name)
        gap = f"{there.gap:.2f}x" if there.gap is not None and math.isfinite(there.gap) else "-"
        rows.append(
            [name, f"{best.problem.scenarios[name].weight:.3g}", *numbers_text(there.energy_pj, there.cycles), gap]
        )
    lines = [styled("scenarios that the score is of", "strong"), *(f"  {line}" for line in aligned(rows))]
    if unfit:
        lines.append(
            styled(f"  the design does not fit at {' and '.join(unfit)}, which the score leaves out", "warning")
        )
    return lines


def executed_rows(result: Result) -> list[list[str]]:
    """Of each design that was executed: claim, executed over claimed, corrected score, and the part that differs most."""
    rows = [["", "claimed score", "energy", "cycles", "corrected score", "differs most in"]]
    for number, one in enumerate(result.executed, 1):
        if one.execution is None:
            rows.append(
                [f"{number}", f"{one.best.score:.4g}", "-", "-", f"{one.score:.4g}", f"not executed: {one.refused}"]
            )
            continue
        needed = [f"{one.execution.needed(cost):.3f}x" for cost in ("energy_pj", "cycles")]
        part = next(iter(one.execution.parts), "-")
        rows.append([f"{number}", f"{one.best.score:.4g}", *needed, f"{one.score:.4g}", part])
    return rows


def executed_lines(result: Result) -> list[str]:
    title = "the best designs executed on sampled tensors: executed over claimed, ranked by the corrected score"
    lines = [f"  {line}" for line in aligned(executed_rows(result), "<>>>><")]
    if ran := next((one.execution for one in result.executed if one.execution), None):
        lines.append("  at " + ", ".join(f"{dim} {size:,}" for dim, size in ran.sizes.items()))
    return [styled(title, "strong"), *lines]


def front_lines(result: Result, problem: Problem) -> list[str]:
    """The designs that no other one dominates, spread evenly where there are many."""
    count = len(result.front)
    shown = sorted({round(i * (count - 1) / (FRONT_SHOWN - 1)) for i in range(FRONT_SHOWN)})
    names = list(result.front[0].objectives)
    units = problem.objective.units
    rows = [["", *(f"{name} ({unit})" if unit else name for name, unit in zip(names, units, strict=True))]]
    for index in shown:
        values = result.front[index].objectives
        rows.append([f"{index + 1}", *(f"{values[name]:.4g}" for name in names)])
    some = f", {len(shown)} of them" if len(shown) < count else ""
    title = f"front of {count} designs that no other one found dominates{some}"
    return [styled(title, "strong"), *(f"  {line}" for line in aligned(rows))]


def reject_lines(result: Result) -> list[str]:
    """The share of designs that each reason rejected, most frequent first."""
    rows = [[name, percent(count / max(result.proposed, 1))] for name, count in result.rejects.items()]
    more = len(rows) - REASONS_SHOWN
    lines = [styled(f"rejected designs by reason, of {result.proposed:,}; a design may have several", "strong")]
    lines += [f"  {line}" for line in aligned(rows[:REASONS_SHOWN])]
    return [*lines, f"  and {more} rarer"] if more > 0 else lines


def seconds_text(seconds: float) -> str:
    """`0.4 s`, `2 min 5 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
