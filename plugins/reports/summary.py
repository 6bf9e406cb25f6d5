"""The outcome of a search for a reader: numbers and bounds, the design, energies, rejected designs."""

from __future__ import annotations

from typing import ClassVar

from sparsemap import Exporter, Result
from sparsemap.files import aligned, percent
from sparsemap.pieces.contracts import styled
from sparsemap.problem.problem import Problem
from sparsemap.spec.units import format_count, format_energy

from .breakdown import breakdown_lines
from .loop_nest import loop_nest
from .wording import chip_text, density_text, einsum_text, problem_texts

REASONS_SHOWN = 8


class SummaryText(Exporter):
    """Numbers, loop nest, energies and reasons of a result, as text."""

    type_name: ClassVar[str] = "summary"
    file_name: ClassVar[str] = "summary.txt"

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        best, found = result.found, result.breakdown()
        limit = f"   {styled(f'limited by {found.limit}', 'warning')}" if found.limit else ""
        unit = "" if best.plain else f" {problem.objective.unit}".rstrip()
        where = "   at the nominal densities above" if best.scenarios else ""
        numbers = [["score", f"{best.score:.6g}{unit}   {result.objective}"]] if best.score != best.edp else []
        numbers += [["EDP", f"{best.edp:.3e} pJ * cycles{where}"], ["energy", format_energy(best.energy_pj)]]
        numbers.append(["cycles", format_count(best.cycles) + limit])
        if text := chip_text(best.costs, best.design.units_mm2):
            numbers.append(["chip", text])
        if text := density_text(problem, best.costs, found):
            numbers.append(["power", styled(text, "warning")])
        if result.bound is not None and result.gap is not None:
            proof = f"{result.bound:.3e}{unit}, proven for these sizes in space {result.space}: {result.gap:.2f}x"
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
            seen = f"{result.evaluations:,} designs in {seconds_text(result.seconds)}, {percent(result.valid_fraction)}"
            numbers.append(["search", f"{seen} valid   {result.searcher}, seed {result.seed}"])
            if result.convergence:
                numbers.append(["verdict", result.convergence.text])
        given: list[list[str]] = []
        if result.start and not best.scenarios:
            from .compare.designs import given_lines

            given = given_lines(result, best.design)
        starts = [row for row in result.start if row["score"] is not None]
        if starts and not given:
            row = min(starts, key=lambda row: row["score"])
            far = f"distance {row['distance']:g}"
            numbers.append(["start", f"{row['workload']} ({far}): {row['score'] / best.score:.2f}x of the end"])
        statement = [einsum_text(problem.tensors).replace(" += ", " = ")] if problem.tensors else []
        about = [_labelled(f"{label:7}  {text}") for label, text in problem_texts(problem).items() if text]
        blocks = [
            [styled(problem.title, "strong"), *statement, *about],
            [_labelled(line) for line in aligned(numbers, "<")],
            *given,
            [loop_nest(best.design, best.detail, width).rstrip("\n")],
            breakdown_lines(found, problem),
        ]
        if best.scenarios or result.executed or result.front:
            from . import beside

            blocks += [beside.scenario_lines(best)] if best.scenarios else []
            blocks += [beside.executed_lines(result)] if result.executed else []
            blocks += [beside.front_lines(result, problem.objective)] if result.front else []
        if result.rejects:
            rows = [[name, percent(count / max(result.proposed, 1))] for name, count in result.rejects.items()]
            head = f"rejected designs by reason, of {result.proposed:,}; a design may have several"
            rarer = [f"  and {len(rows) - REASONS_SHOWN} rarer"] if len(rows) > REASONS_SHOWN else []
            shown = [f"  {line}" for line in aligned(rows[:REASONS_SHOWN])]
            blocks.append([styled(head, "strong"), *shown, *rarer])
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _labelled(line: str) -> str:
    """The line with a bold first word."""
    label, space, rest = line.partition(" ")
    return styled(label, "strong") + space + rest


def seconds_text(seconds: float) -> str:
    """`0.4 s`, `2 min 5 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
