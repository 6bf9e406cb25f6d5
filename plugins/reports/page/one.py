"""The page of a search, or of a design."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap.errors import SearchError
from sparsemap.files import percent
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.searching.result import HISTORY_FILE

from ..figures import history
from ..outcome import Outcome
from ..variants import Base, freed
from ..wording import einsum_text, problem_texts
from . import charts, costs, nest
from .content import Chart, Number, Page, Section, Table, Text, Tile, breakdown_of, number, numbers, read, share, totals

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
    spent, free = breakdown_of(found, found["levels"]), list(freed(base))
    parts = [
        ("Energy", costs.energies(outcome, spent, free), "By level and tensor, and by what it is spent on."),
        ("Cycles", costs.cycles(outcome, spent), f"The design is limited by {outcome.limit}."),
        ("Room", costs.rooms(outcome), "The most that one instance of each memory holds at a time."),
        ("One thing free", [costs.one_free(outcome, free)], "The same design, with one thing that costs nothing."),
    ]
    of_design = [Section(title, list(blocks), text) for title, blocks, text in parts]
    sections = [nest.section(outcome), *of_design, *_search(path, found, problem.objective.units)]
    about, lines = problem_texts(problem), []
    if problem.tensors:
        lines += [einsum_text(problem.tensors), f"sizes {about['sizes']}; density {about['density']}"]
    if about["padded"]:
        lines.append(f"padded {about['padded']}")
    lines.append(problem.hardware.description or "")
    shown = [section for section in sections if section.blocks]
    return Page(problem.title, lines, _tiles(found, outcome), shown, _footer(found), warnings)


def _tiles(found: Mapping[str, Any], outcome: Outcome) -> list[Tile]:
    """The headline of a result: EDP, energy, cycles, bound, what is in use, the search."""
    made, problem = totals(found, "", found.get("limit") or ""), outcome.design.problem
    if found.get("score") is not None and found["score"] != found["edp"]:
        made.insert(0, Tile("score", number(found["score"], "{:.6g}".format, "score"), found["objective"]))
    if outcome.units is not None:
        text = f"{outcome.units:,.0f} of {problem.compute_instances:,} {problem.compute_name}"
        made.append(Tile("units in use", number(outcome.units / problem.compute_instances, share), text))
    if found.get("searcher"):
        seen = f"valid; {found['searcher']}, seed {found['seed']}, {found['seconds']:.1f} s"
        made.append(_evaluations(found, f"{percent(found['valid_fraction'], 1)} {seen}"))
    return made


def _evaluations(found: Mapping[str, Any], note: str = "") -> Tile:
    return Tile("designs evaluated", Number(found["evaluations"], f"{found['evaluations']:,}", "evaluations"), note)


def _footer(found: Mapping[str, Any]) -> str:
    versions = found.get("versions") or {}
    return ", ".join(f"{name} {versions[name]}" for name in ("sparsemap", "numpy", "python") if name in versions)


def _nothing(path: Path, table: Mapping[str, Any]) -> Page:
    lacks = [x["text"] or x["reason"] for x in table.get("shortfalls") or []]
    why = [Section("The design nearest to being valid lacks", [Text(lacks)])] if lacks else []
    title, none = f"{table['workload']} on {table['hardware']}", f"None of {table['proposed']:,} designs is valid."
    return Page(title, [], [_evaluations(table)], [*why, *_search(path, table)], _footer(table), [none])


def _search(path: Path, found: Mapping[str, Any], units: Sequence[str] = ()) -> Iterator[Section]:
    """Front, scenarios, other cost models, convergence, and reasons of rejection, of a folder of a search."""
    if found.get("front"):
        yield Section("Front", list(_front(found["front"], units)), "Designs that no other one found dominates.")
    for key, title in (("scenarios", "Scenarios"), ("fidelities", "The same design in other cost models")):
        if found.get(key):
            yield Section(title, [_others(key, found[key])])
    if path.is_dir() and (path / HISTORY_FILE).exists():
        yield Section("Convergence", list(_convergence(path, found)))
    if found.get("rejects"):
        yield Section("Why designs were rejected", [_rejects(found)], "A design may have several reasons.")


def _front(front: Sequence[Mapping[str, Any]], units: Sequence[str]) -> Iterator[Chart | Table]:
    names = list(front[0]["objectives"])
    labels = [", ".join(filter(None, pair)) for pair in zip_longest(names, units[: len(names)], fillvalue="")]
    best = min(range(len(front)), key=lambda i: front[i]["score"])
    marks, cells = [], []
    for i, row in enumerate(front):
        values = row["objectives"]
        tip = "\n".join([f"design {i + 1}", *(f"{name} {values[name]:.6g}" for name in names)])
        marks.append({"part": charts.FRONT[i == best], "tip": tip})
        told = [number(values[name], "{:.4g}".format, f"front.{i}.objectives.{name}") for name in names]
        cells.append([f"{i + 1}", *told, *numbers(row, f"front.{i}.")])
    for name, label in zip(names[1:], labels[1:], strict=True):
        places = ({"value": row["objectives"][names[0]], "at": row["objectives"][name]} for row in front)
        yield charts.front([mark | place for mark, place in zip(marks, places, strict=True)], labels[0], label)
    yield Table(["design", *labels, "EDP", "energy", "cycles"], cells)


def _others(key: str, found: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [[name, *numbers(row, f"{key}.{name}."), ", ".join(row.get("reasons", ()))] for name, row in found.items()]
    return Table(["", "EDP", "energy", "cycles", ""], rows)


def _convergence(path: Path, found: Mapping[str, Any]) -> Iterator[Chart]:
    done, best, valid = (values.tolist() for values in history(path))
    scores = [
        {"value": x, "at": score, "tip": f"{x:,} designs\nbest score {score:.4e}"}
        for x, score in zip(done, best, strict=True)
        if math.isfinite(score)
    ]
    if scores:
        bound, unit = found.get("bound"), "pJ * cycles" if found["score"] == found["edp"] else ""
        about = ", ".join(filter(None, ("best score", unit, "bound dashed" if bound else "")))
        yield charts.steps(scores, "designs", about, bound, 170)
    shares = [
        {"value": x, "at": part, "tip": f"{x:,} designs\n{part:.1f} % of the last {batch:,} valid"}
        for x, part, batch in zip(done, valid, np.diff(done, prepend=0).tolist(), strict=True)
    ]
    yield charts.steps(shares, "designs", "valid, %", None, 90, low_at_zero=True)


def _rejects(found: Mapping[str, Any]) -> Chart:
    of = max(found["proposed"], 1)
    shares = {name: (count, percent(count / of, 1)) for name, count in list(found["rejects"].items())[:20]}
    rows = [
        charts.mark(name, "", 100 * count / of, f"{name}\n{count:,} of {of:,} designs = {part}")
        for name, (count, part) in shares.items()
    ]
    return charts.bars(rows, "of the designs, %", {name: part for name, (_, part) in shares.items()})
