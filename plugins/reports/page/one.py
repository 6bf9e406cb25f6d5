"""The page of a search, or of a design."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap.errors import SearchError
from sparsemap.files import percent, read_csv
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.searching.result import HISTORY_FILE

from ..explain import explain
from ..variants import Base, Outcome
from ..wording import einsum_text
from . import charts, costs, nest
from .content import Chart, Number, Page, Section, Table, Text, Tile, numbers, read, share, totals

CLOSE = 1e-6


def page(path: Path, registry: Registry) -> Page:
    """The page of a design file, or of the folder of a search. `SearchError` for an invalid design file."""
    table = read(path) if path.is_dir() else {}
    if table and table["edp"] is None:
        return _nothing(path, table)
    base = Base(design_file.load(str(path), registry))
    outcome = base.outcome
    if not outcome.valid:
        raise SearchError(f"{path}: the design is not valid: {', '.join(outcome.reasons)}")
    warnings = []
    if table and not math.isclose(table["edp"], outcome.edp, rel_tol=CLOSE):
        again = f"{outcome.edp:.3e} pJ * cycles"
        warnings.append(f"The cost model of today says {again} of this design; its search said {table['edp']:.3e}.")
    if table.get("interrupted"):
        warnings.append(f"The search was stopped after {table['evaluations']:,} of {table['budget']:,} designs.")
    found = {**outcome.to_dict(), **outcome.breakdown.to_dict(), **table}
    free = explain(base).data["free"]
    sections = [
        nest.section(outcome),
        Section(
            "Energy", list(costs.energies(outcome, found, free)), "By level and tensor, and by what it is spent on."
        ),
        Section("Cycles", list(costs.cycles(outcome, found)), f"The design is limited by {outcome.limit}."),
        Section("Room", list(costs.rooms(outcome)), "The most that one instance of each memory holds at a time."),
        Section(
            "One thing free", [costs.one_free(outcome, free)], "The same design, with one thing that costs nothing."
        ),
        *_search(path, found, outcome.design.problem.objective.units),
    ]
    shown = [section for section in sections if section.blocks]
    return Page(*_head(outcome), _tiles(found, outcome), shown, _footer(found), warnings)


def _head(outcome: Outcome) -> tuple[str, list[str]]:
    problem = outcome.design.problem
    sizes = ", ".join(f"{dim} {size}" for dim, size in problem.loops.sizes.items())
    shares = ", ".join(
        f"{tensor.name} {100 * tensor.density.occupancy(tensor.shape(problem.sizes)).density:.3g} %"
        for tensor in problem.tensors
    )
    padded = ", ".join(f"{dim} {given} -> {size}" for dim, (given, size) in problem.padded.items())
    lines = [einsum_text(problem.tensors), f"sizes {sizes}; density {shares}"] if problem.tensors else []
    return problem.title, [*lines, *([f"padded {padded}"] if padded else []), problem.hardware.description or ""]


def _tiles(found: Mapping[str, Any], outcome: Outcome) -> list[Tile]:
    """The headline of a result: EDP, energy, cycles, bound, what is in use, the search."""
    made = totals(found, "", found.get("limit") or "")
    if found.get("score") is not None and found["score"] != found["edp"]:
        made.insert(0, Tile("score", Number(found["score"], f"{found['score']:.6g}", "score"), found["objective"]))
    if "instances_used" in outcome.detail:
        used, problem = float(np.asarray(outcome.detail["instances_used"])[-1, 0]), outcome.design.problem
        text = f"{used:,.0f} of {problem.compute_instances:,} {problem.compute_name}"
        made.append(Tile("units in use", share(used / problem.compute_instances), text))
    if found.get("searcher"):
        seen = f"valid; {found['searcher']}, seed {found['seed']}, {found['seconds']:.1f} s"
        note = f"{percent(found['valid_fraction'], 1)} {seen}"
        made.append(Tile("designs evaluated", _evaluations(found), note))
    return made


def _evaluations(found: Mapping[str, Any]) -> Number:
    return Number(found["evaluations"], f"{found['evaluations']:,}", "evaluations")


def _footer(found: Mapping[str, Any]) -> str:
    versions = found.get("versions") or {}
    return ", ".join(f"{name} {versions[name]}" for name in ("sparsemap", "numpy", "python") if name in versions)


def _nothing(path: Path, table: Mapping[str, Any]) -> Page:
    lacks = [x["text"] or x["reason"] for x in table.get("shortfalls") or []]
    none = f"None of {table['proposed']:,} designs is valid."
    tile = Tile("designs evaluated", _evaluations(table))
    why = Section("The design nearest to being valid lacks", [Text(lacks)])
    sections = [*([why] if lacks else []), *_search(path, table)]
    return Page(f"{table['workload']} on {table['hardware']}", [], [tile], sections, _footer(table), [none])


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
    tips = [
        "\n".join([f"design {i + 1}", *(f"{name} {row['objectives'][name]:.6g}" for name in names)])
        for i, row in enumerate(front)
    ]
    for other, label in zip(names[1:], labels[1:], strict=True):
        rows = [
            {
                "part": charts.FRONT[i == best],
                "value": row["objectives"][names[0]],
                "at": row["objectives"][other],
                "tip": tips[i],
            }
            for i, row in enumerate(front)
        ]
        yield charts.front(rows, labels[0], label)
    cells = []
    for i, row in enumerate(front):
        values = row["objectives"].items()
        told = [Number(value, f"{value:.4g}", f"front.{i}.objectives.{name}") for name, value in values]
        cells.append([f"{i + 1}", *told, *numbers(row, f"front.{i}.")])
    yield Table(["design", *labels, "EDP", "energy", "cycles"], cells)


def _others(key: str, found: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [[name, *numbers(row, f"{key}.{name}."), ", ".join(row.get("reasons", ()))] for name, row in found.items()]
    return Table(["", "EDP", "energy", "cycles", ""], rows)


def _convergence(path: Path, found: Mapping[str, Any]) -> Iterator[Chart]:
    rows = read_csv(path / HISTORY_FILE)
    done = [int(row["evaluations"]) for row in rows]
    best = [
        {"value": x, "at": float(row["best_score"]), "tip": f"{x:,} designs\nbest score {float(row['best_score']):.4e}"}
        for x, row in zip(done, rows, strict=True)
        if row["best_score"] and math.isfinite(float(row["best_score"]))
    ]
    if best:
        bound, unit = found.get("bound"), "pJ * cycles" if found["score"] == found["edp"] else ""
        about = ", ".join(filter(None, ("best score", unit, "bound dashed" if bound else "")))
        yield charts.steps(best, "designs", about, bound, 170)
    shares = []
    for before, now, row in zip([0, *done], done, rows, strict=False):
        of = min(100.0 * int(row["valid"]) / max(now - before, 1), 100.0)
        shares.append(
            {"value": now, "at": of, "tip": f"{now:,} designs\n{of:.1f} % of the last {now - before:,} valid"}
        )
    yield charts.steps(shares, "designs", "valid, %", None, 90, low_at_zero=True)


def _rejects(found: Mapping[str, Any]) -> Chart:
    most = list(found["rejects"].items())[:20]
    of = max(found["proposed"], 1)
    tips = {name: f"{name}\n{n:,} of {of:,} designs = {percent(n / of, 1)}" for name, n in most}
    rows = [charts.mark(name, "", 100 * n / of, tips[name]) for name, n in most]
    return charts.bars(rows, "of the designs, %", {name: percent(n / of, 1) for name, n in most})
