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
from sparsemap.searching.result import HISTORY_FILE

from ..charts import Chart, Mark, bars
from ..design_charts import convergence_chart, room_chart
from ..front import front_chart, labels_of, named_score
from ..outcome import DesignOutcome
from ..variants import Base, freed
from ..wording import einsum_text, problem_texts
from . import costs, nest
from .content import Headline, Page, PageTable, PrintedNumber, Section, Text, number, numbers, read, share, totals

CLOSE = 1e-6


def page(path: Path, registry: Registry) -> Page:
    """The page of a design file, or of the folder of a search. `SearchError` for an invalid design file."""
    table = read(path) if path.is_dir() else {}
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
    found = {**outcome.to_dict(), **outcome.breakdown.to_dict(), **table}
    free, room = list(freed(base)), room_chart(outcome)
    parts = [
        (
            "Energy",
            costs.energies(outcome, free),
            "By level and charge of the cost model; bars add up to the energy.",
        ),
        ("Cycles", costs.cycles(outcome), f"The design is limited by {outcome.limit}."),
        ("Room", [room] if room else [], "The most that one instance of each memory holds at a time."),
        ("One thing free", [costs.one_free(outcome, free)], "The same design, with one thing that costs nothing."),
    ]
    of_design = [Section(title, list(blocks), text) for title, blocks, text in parts]
    sections = [nest.section(outcome), *of_design, *_search(path, found, problem.objective)]
    about, lines = problem_texts(problem), []
    if problem.tensors:
        lines += [einsum_text(problem.tensors), f"sizes {about['sizes']}; density {about['density']}"]
    if about["padded"]:
        lines.append(f"padded {about['padded']}")
    lines.append(problem.hardware.description or "")
    shown = [section for section in sections if section.blocks]
    return Page(problem.title, lines, _tiles(found, outcome), shown, _footer(found), warnings)


def _tiles(found: Mapping[str, Any], outcome: DesignOutcome) -> list[Headline]:
    """The headline of a result: EDP, energy, cycles, bound, what is in use, the search."""
    made, problem = totals(found, "", found.get("limit") or ""), outcome.design.problem
    if found.get("score") is not None and found["score"] != found["edp"]:
        made.insert(0, Headline("score", number(found["score"], "{:.6g}".format, "score"), found["objective"]))
    if outcome.units is not None:
        text = f"{outcome.units:,.0f} of {problem.compute_instances:,} {problem.compute_name}"
        made.append(Headline("units in use", number(outcome.units / problem.compute_instances, share), text))
    if found.get("searcher"):
        seen = f"valid; {found['searcher']}, seed {found['seed']}, {found['seconds']:.1f} s"
        made.append(_evaluations(found, f"{percent(found['valid_fraction'], 1)} {seen}"))
    return made


def _evaluations(found: Mapping[str, Any], note: str = "") -> Headline:
    return Headline(
        "designs evaluated", PrintedNumber(found["evaluations"], f"{found['evaluations']:,}", "evaluations"), note
    )


def _footer(found: Mapping[str, Any]) -> str:
    versions = found.get("versions") or {}
    return ", ".join(f"{name} {versions[name]}" for name in ("sparsemap", "numpy", "python") if name in versions)


def _nothing(path: Path, table: Mapping[str, Any]) -> Page:
    lacks = [x["text"] or x["reason"] for x in table.get("shortfalls") or []]
    why = [Section("The design nearest to being valid lacks", [Text(lacks)])] if lacks else []
    title, none = f"{table['workload']} on {table['hardware']}", f"None of {table['proposed']:,} designs is valid."
    return Page(title, [], [_evaluations(table)], [*why, *_search(path, table)], _footer(table), [none])


def _search(path: Path, found: Mapping[str, Any], objective: Objective | None = None) -> Iterator[Section]:
    """Front, scenarios, other cost models, convergence, and reasons of rejection, of a folder of a search."""
    if found.get("front") and objective:
        yield Section("Front", list(_front(found["front"], objective)), "Designs that no other one found dominates.")
    for key, title in (("scenarios", "Scenarios"), ("fidelities", "The same design in other cost models")):
        if found.get(key):
            yield Section(title, [_others(key, found[key])])
    if path.is_dir() and (path / HISTORY_FILE).exists():
        unit = "pJ * cycles" if found["score"] == found["edp"] else ""
        yield Section("Convergence", [convergence_chart(path, found, [unit])])
    if found.get("rejects"):
        yield Section("Why designs were rejected", [_rejects(found)], "A design may have several reasons.")


def _front(front: Sequence[Mapping[str, Any]], objective: Objective) -> Iterator[Chart | PageTable]:
    names, labels = objective.names, labels_of(objective)
    values, scores, edps = [], [], []
    tips, cells = [], []
    for i, row in enumerate(front):
        seen = [row["objectives"][name] for name in names]
        values.append(seen)
        scores.append(row["score"])
        edps.append(row["edp"])
        tips.append("\n".join([f"design {i + 1}", *(f"{name} {x:.6g}" for name, x in zip(names, seen, strict=True))]))
        shown = [
            number(x, "{:.4g}".format, f"front.{i}.objectives.{name}") for name, x in zip(names, seen, strict=True)
        ]
        cells.append([f"{i + 1}", *shown, *numbers(row, f"front.{i}.")])
    yield front_chart(values, scores, objective, named_score(edps, scores), tips)
    yield PageTable(["design", *labels, "EDP", "energy", "cycles"], cells)


def _others(key: str, found: Mapping[str, Mapping[str, Any]]) -> PageTable:
    rows = [[name, *numbers(row, f"{key}.{name}."), ", ".join(row.get("reasons", ()))] for name, row in found.items()]
    return PageTable(["", "EDP", "energy", "cycles", ""], rows)


def _rejects(found: Mapping[str, Any]) -> Chart:
    of = max(found["proposed"], 1)
    shares = {name: (count, percent(count / of, 1)) for name, count in list(found["rejects"].items())[:20]}
    marks = [
        Mark(100 * count / of, "", name, tip=f"{name}\n{count:,} of {of:,} designs = {part}")
        for name, (count, part) in shares.items()
    ]
    return bars(marks, "of the designs, %", {name: part for name, (_, part) in shares.items()})
