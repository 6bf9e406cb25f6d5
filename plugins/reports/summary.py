"""The outcome of a search for a reader: numbers and bounds, the design, energies, scenarios, executed designs, the front,
rejected designs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from sparsemap import Best, Exporter, Objective, Result
from sparsemap.files import aligned, percent
from sparsemap.pieces.contracts import styled
from sparsemap.problem.problem import Problem
from sparsemap.spec.units import format_count, format_energy

from .breakdown import breakdown_lines
from .loop_nest import loop_nest
from .tables import Cell, PageTable, number, numbers
from .wording import chip_text, einsum_text, numbers_text, problem_texts

REASONS_SHOWN = FRONT_SHOWN = 8
EXECUTED = ("energy_pj", "cycles")


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
        if best.scenarios:
            blocks.append(scenario_lines(best))
        if result.executed:
            blocks.append(executed_lines(result))
        if result.front:
            blocks.append(front_lines(result, problem.objective))
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


def scenario_lines(best: Best) -> list[str]:
    """Cost and gap to the bound in each scenario."""
    rows = [["", "weight", "EDP", "energy", "cycles", "over the bound"]]
    for name, there in best.scenarios.items():
        gap = f"{there.gap:.2f}x" if there.gap is not None and math.isfinite(there.gap) else "-"
        weight = f"{best.problem.scenarios[name].weight:.3g}"
        rows.append([name, weight, *numbers_text(there.energy_pj, there.cycles), gap])
    lines = [styled("scenarios that the score is of", "strong"), *(f"  {line}" for line in aligned(rows))]
    if unfit := " and ".join(name for name, there in best.scenarios.items() if not math.isfinite(there.energy_pj)):
        lines.append(styled(f"  the design does not fit at {unfit}, which the score leaves out", "warning"))
    return lines


def executed_table(designs: Sequence[Mapping[str, Any]]) -> PageTable:
    """Executed designs: claim, executed over claimed, corrected score, and the largest difference."""
    rows: list[list[Cell]] = []
    for i, one in enumerate(designs):
        needed, at = one.get("executed_over_claimed", {}), f"executed.{i}."
        shares = [number(needed.get(x), "{:.3f}x".format, f"{at}executed_over_claimed.{x}") for x in EXECUTED]
        scores = [number(one[x]["score"], "{:.4g}".format, f"{at}{x}.score") for x in ("claimed", "corrected")]
        part = f"not executed: {one['refused']}" if one.get("refused") else next(iter(one.get("parts", {})), "-")
        rows.append([f"{i + 1}", scores[0], *shares, scores[1], part])
    return PageTable(["", "claimed score", "energy", "cycles", "corrected score", "differs most in"], rows)


def executed_lines(result: Result) -> list[str]:
    title = "the best designs executed on sampled tensors: executed over claimed, ranked by the corrected score"
    lines = executed_table(result.to_dict()["executed"]).lines(align="<>>>><", margin=2)
    if ran := next((one.execution for one in result.executed if one.execution), None):
        lines.append("  at " + ", ".join(f"{dim} {size:,}" for dim, size in ran.sizes.items()))
    return [styled(title, "strong"), *lines]


def front_table(front: Sequence[Mapping[str, Any]], objective: Objective, shown: Sequence[int]) -> PageTable:
    """Designs of a front by their objectives, with their units."""
    heads = zip(objective.names, objective.units, strict=True)
    rows: list[list[Cell]] = []
    for i in shown:
        seen = front[i]["objectives"]
        cells = [number(seen[name], "{:.4g}".format, f"front.{i}.objectives.{name}") for name in objective.names]
        rows.append([f"{i + 1}", *cells, *numbers(front[i], f"front.{i}.")])
    head = ["", *(f"{name} ({unit})" if unit else name for name, unit in heads), "EDP", "energy", "cycles"]
    return PageTable(head, rows)


def front_lines(result: Result, objective: Objective) -> list[str]:
    """Nondominated designs, spread evenly if there are many."""
    front, count = result.to_dict()["front"], len(result.front)
    shown = sorted({round(i * (count - 1) / (FRONT_SHOWN - 1)) for i in range(FRONT_SHOWN)})
    some = f", {len(shown)} of them" if len(shown) < count else ""
    title = f"front of {count} designs that no other one found dominates{some}"
    table = front_table(front, objective, shown)
    less = attrs.evolve(table, head=table.head[:-3], rows=[row[:-3] for row in table.rows])
    return [styled(title, "strong"), *less.lines(align="<>", margin=2)]
