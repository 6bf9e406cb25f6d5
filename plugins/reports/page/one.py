"""The page of a search, or of a design."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsemap.errors import SearchError
from sparsemap.files import percent
from sparsemap.pieces.contracts import Objective
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.searching.breakdown import CHARGES, LITTLE, STALLS, limit_alone
from sparsemap.searching.result import HISTORY_FILE, RESULT_FILE
from sparsemap.searching.written import read_result
from sparsemap.spec.units import format_energy

from ..beside import executed_table, front_table
from ..charts import Chart, Mark, bars
from ..compare.sides import OF_SEARCH, checked
from ..design_charts import area_chart, convergence_chart, room_chart, tree_chart
from ..front import front_chart
from ..outcome import DesignOutcome
from ..tables import PageTable, number, numbers, share
from ..variants import ALL, Base, Free, freed
from ..wording import change_text, density_text, einsum_text, problem_texts, time_text
from . import design
from .content import Headline, Page, Section, Text, counted, made, totals

CLOSE = 1e-6


def page(path: Path, registry: Registry) -> Page:
    """The page of a design file, or of the folder of a search. `SearchError` for an invalid design file."""
    table = checked(path, read_result(path), OF_SEARCH) if path.is_dir() else {}
    if table and table["edp"] is None:
        return _nothing(path, table)
    base = Base(design_file.load(str(path), registry))
    outcome, problem = base.outcome, base.design.problem
    if not outcome.valid:
        raise SearchError(f"{path}: the design is {outcome.fault}")
    warnings = []
    if table and not math.isclose(table["edp"], outcome.edp, rel_tol=CLOSE):
        again = f"{outcome.edp:.3e} pJ * cycles"
        warnings.append(f"The cost model of today says {again} of this design; its search said {table['edp']:.3e}.")
    if table.get("interrupted"):
        warnings.append(f"The search was stopped after {table['evaluations']:,} of {table['budget']:,} designs.")
    if dense := density_text(problem, outcome.costs, outcome.breakdown):
        warnings.append(f"{dense}.")
    found = {**outcome.to_dict(), **outcome.breakdown.to_dict(), **table}
    free, pictures = list(freed(base)), [tree_chart(outcome), area_chart(outcome), room_chart(outcome)]
    energies, busy, room = design.energies(outcome, free), design.cycles(outcome), [x for x in pictures if x]
    one_free = design.one_free(outcome, free)
    of_design = [
        Section("Energy", list(energies), "By level and charge of the cost model; bars add up to the energy."),
        Section("Cycles", list(busy), f"The design is limited by {outcome.limit}."),
        Section("Room", room, "The most that one instance of each memory holds at a time."),
        Section("One thing free", [one_free], "The same design, with one thing that costs nothing."),
    ]
    sections = [design.section(outcome), *of_design, *_search(path, found, problem.objective)]
    about, lines = problem_texts(problem), []
    if problem.tensors:
        lines += [einsum_text(problem.tensors), f"sizes {about['sizes']}; density {about['density']}"]
    lines += [f"{name} {about[name]}" for name in ("widths", "padded") if about[name]]
    lines.append(problem.hardware.description or "")
    shown, said = [section for section in sections if section.blocks], _verdict(outcome, free, found)
    lines.append(_origin(path, table))
    return Page(problem.title, lines, _tiles(found, outcome), shown, warnings, [said])


def _origin(path: Path, table: Mapping[str, Any]) -> str:
    """The command, the date and the versions of a search; for a design file, its name."""
    return made(path, table, RESULT_FILE) if table else made(path.parent, {}, path.name, f"design file {path.name}")


def _verdict(outcome: DesignOutcome, free: Sequence[Free], found: Mapping[str, Any]) -> str:
    """Cost of the design, its limit, the largest energy, the most helpful free resource, and the gap to the bound."""
    problem, seconds = outcome.design.problem, outcome.costs.get("seconds")
    time = f"{time_text(seconds)} and " if seconds else ""
    text = f"{problem.workload.name} takes {time}{format_energy(outcome.energy_pj)} on {problem.hardware.name}"
    limit = limit_alone(outcome.limit)
    told = outcome.breakdown
    causes = {cause: x for cause, x in told.lost.items() if cause in outcome.limit} | {STALLS: told.waiting_cycles}
    parts = [
        f", {cause} {percent(x / told.cycles)} of the time" for cause, x in causes.items() if x >= LITTLE * told.cycles
    ]
    text += f", limited by {limit}{''.join(parts)}." if limit else "."
    spent = {name: math.fsum(parts.values()) for name, parts in outcome.breakdown.energies.items()}
    if spent:
        most = max(spent, key=lambda name: spent[name])
        what = "the charge " if CHARGES in outcome.breakdown.energies[most] else ""
        text += f" {percent(spent[most] / outcome.energy_pj)} of the energy is that of {what}{most}."
    best = min((one for one in free if one.where != ALL), key=lambda one: one.outcome.edp, default=None)
    if best is not None and best.outcome.edp < outcome.edp:
        text += f" With {best.name} free its EDP would change by {change_text(best.outcome.edp, outcome.edp)}."
    if found.get("gap") and found.get("space"):
        text += f" By proof no design of these sizes in space {found['space']} is more than {found['gap']:.2f}x better."
    return text + _convergence(found)


def _tiles(found: Mapping[str, Any], outcome: DesignOutcome) -> list[Headline]:
    """Headlines of a result: EDP, energy, cycles, bound, units in use, the search."""
    made, problem = totals(found, "", found.get("limit") or ""), outcome.design.problem
    if found.get("score") is not None and found["score"] != found["edp"]:
        unit = f"score, {problem.objective.unit}" if problem.objective.unit else "score"
        made.insert(0, Headline(unit, number(found["score"], "{:.6g}".format, "score"), found["objective"]))
    if outcome.units is not None:
        text = f"{outcome.units:,.0f} of {problem.compute_instances:,} {problem.compute_name}"
        made.append(Headline("units in use", number(outcome.units / problem.compute_instances, share), text))
    if found.get("searcher"):
        seen = f"valid; {found['searcher']}, seed {found['seed']}, {found['seconds']:.1f} s"
        note = f"{percent(found['valid_fraction'], 1)} {seen}"
        made.append(counted("designs evaluated", found["evaluations"], note, "evaluations"))
    return made


def _convergence(found: Mapping[str, Any]) -> str:
    """The verdict on the search, unless the bound tells more."""
    told = found.get("convergence") or {}
    return f" The search: {told['text']}." if told and told["state"] != "proved" else ""


def _nothing(path: Path, table: Mapping[str, Any]) -> Page:
    lacks = [x["text"] or x["reason"] for x in table.get("shortfalls") or []]
    why = [Section("The design nearest to being valid lacks", [Text(lacks)])] if lacks else []
    title, none = f"{table['workload']} on {table['hardware']}", f"None of {table['proposed']:,} designs is valid."
    origin = _origin(path, table)
    tiles = [counted("designs evaluated", table["evaluations"], of="evaluations")]
    return Page(title, [origin], tiles, [*why, *_search(path, table)], [none])


def _search(path: Path, found: Mapping[str, Any], objective: Objective | None = None) -> Iterator[Section]:
    """Front, scenarios, other cost models, convergence, and reasons of rejection, from the folder of a search."""
    if found.get("front") and objective:
        seen = [row["objectives"] for row in found["front"]]
        told = ("\n".join(f"{name} {row[name]:.6g}" for name in objective.names) for row in seen)
        chart = front_chart(found["front"], objective, [f"design {i}\n{text}" for i, text in enumerate(told, 1)])
        table = front_table(found["front"], objective, range(len(seen)))
        yield Section("Front", [chart, table], "Designs that no other one found dominates.")
    if found.get("executed"):
        note = "The best designs on sampled tensors, ranked by claims that are corrected by what execution needs."
        yield Section("Executed", [executed_table(found["executed"])], note)
    for key, title in (("scenarios", "Scenarios"), ("fidelities", "The same design in other cost models")):
        if found.get(key):
            head = ["", "EDP", "energy", "cycles", ""]
            rows = [[name, *numbers(row, f"{key}.{name}."), ", ".join(row.get("reasons", ()))]
                    for name, row in found[key].items()]  # fmt: skip
            yield Section(title, [PageTable(head, rows)])
    if path.is_dir() and (path / HISTORY_FILE).exists():
        unit = objective.unit if objective else "pJ * cycles" if found["score"] == found["edp"] else ""
        yield Section("Convergence", [convergence_chart(path, found, [unit])])
    if found.get("rejects"):
        yield Section("Why designs were rejected", [_rejects(found)], "A design may have several reasons.")


def _rejects(found: Mapping[str, Any]) -> Chart:
    of = max(found["proposed"], 1)
    counts = list(found["rejects"].items())[:20]
    ends = {name: percent(count / of, 1) for name, count in counts}
    tips = [f"{name}\n{count:,} of {of:,} designs = {ends[name]}" for name, count in counts]
    marks = [Mark(100 * count / of, "", name, tip=tip) for (name, count), tip in zip(counts, tips, strict=True)]
    return bars(marks, "of the designs, %", ends)
