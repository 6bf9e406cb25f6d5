"""Every published figure beside both cost models, for the one design that hardware, space and workload leave."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap import SparseMapError, evaluate, load_problem, search
from sparsemap.errors import unknown
from sparsemap.files import markdown_table
from sparsemap.plots import COLOURS, MARKERS, Figure, subplots

from ..report import Report
from ..runs import Runner, by, geometric_mean

MODELS = ("timeloop", "physical")
RATIOS = {"over dense": lambda own, base: own / base, "times better": lambda own, base: base / own}
"""What a quantity such as "cycles over dense" is, from the value of the design and that of its base."""

Row = dict[str, Any]


def accelerators() -> dict[str, dict[str, Any]]:
    """The files of `_figures` by name."""
    files = sorted(Path(__file__).parent.glob("_figures/*.toml"))
    return {file.stem: tomllib.loads(file.read_text("utf-8")) for file in files}


def report(runner: Runner, name: str) -> Report:
    rows = [row for key, one in accelerators().items() for row in compared(key, one, runner)]
    if not rows:
        names = [figure["workload"] for one in accelerators().values() for figure in one["figures"]]
        raise SparseMapError(f"--workload: {unknown('workload', runner.workloads[0], names)}")
    headline = "\n".join(f"{key}: {_summary(its)}" for key, its in by(rows, lambda row: row["accelerator"]).items())
    return Report(name, headline, _page(rows, name), rows, lambda: _draw(rows))


def compared(key: str, accelerator: Mapping[str, Any], runner: Runner) -> list[Row]:
    """A row per figure of an accelerator: the published value, and the same quantity in both cost models."""
    rows = []
    for figure in accelerator["figures"]:
        if runner.workloads and figure["workload"] not in runner.workloads:
            continue
        one = {**accelerator, **figure}
        row = {
            "accelerator": key,
            "workload": one["workload"],
            "quantity": one["quantity"],
            "published": one["published"],
        }
        own = measured(one, runner.registry)
        base = measured({**one, **one["base"]}, runner.registry) if "base" in one else None
        kind, _, ratio = one["quantity"].partition(" ")
        for model in MODELS:
            value = own[model][kind]
            row[model] = RATIOS[ratio](value, base[model][kind]) if base else value
            row[f"{model} deviation"] = row[model] / row["published"] - 1 if row["published"] else math.nan
        rows.append({**row, "source": " ".join(one["source"].split())})
    return rows


def measured(one: Mapping[str, Any], registry: Any) -> dict[str, dict[str, float]]:
    """Cycles and energy in pJ by cost model, of the best design without charges among those that the space leaves."""
    density = {"Z": 1.0, **one["density"]}
    workload = {"name": one["workload"], "einsum": one["einsum"], "dims": one["dims"], "density": density}
    space: Any = one["space"]
    if "factors" in one:
        space = {"extends": space, "mapping": {"factors": one["factors"]}}
    problems = [load_problem(workload, one["hardware"], space, cost_model=model, registry=registry) for model in MODELS]
    best = search(problems[0], searcher="exhaustive", budget=10**7).best
    if best is None:
        raise SparseMapError(f"{one['title']}: no design of {one['workload']} is valid")
    found = {}
    for model, problem in zip(MODELS, problems, strict=True):
        result = evaluate(problem, np.asarray(best.genome)[None])
        if not result.valid[0]:
            raise SparseMapError(f"{one['title']}, {one['workload']}: invalid in {model}: {result.reject_counts()}")
        found[model] = {"cycles": float(result.cycles[0]), "energy": float(result.energy_pj[0])}
    return found


# ------------------------------------------------------------------------------------------------------------ the page


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %" if math.isfinite(value) else "-"


def _summary(rows: list[Row]) -> str:
    """How far both models are off: the geometric mean of model over published, and the worst."""
    parts = []
    for model in MODELS:
        ratios = [row[model] / row["published"] for row in rows]
        worst = max(ratios, key=lambda ratio: abs(math.log(ratio)))
        parts.append(f"{model} {geometric_mean(ratios):.3f}x of what is published, worst {worst:.3f}x")
    return "; ".join(parts)


def _page(rows: list[Row], name: str) -> str:
    text = (
        "# Published accelerators: what is printed for them beside both cost models\n\n"
        f"`sparsemap paper {name}`: hardware, dataflow and sparse strategy of published accelerators, and what their papers,\n"
        "or papers that validate models with them, print. Nothing is fitted to these figures: bandwidths and capacities that\n"
        "are not published are assumed, and the specs say which. A deviation is the model over the published value, less 1.\n"
    )
    known = accelerators()
    for key, its in by(rows, lambda row: row["accelerator"]).items():
        head = ["workload", "quantity", "published", *(cell for model in MODELS for cell in (model, "deviation"))]
        table = [head]
        for row in its:
            cells = [cell for m in MODELS for cell in (_number(row[m]), _percent(row[f"{m} deviation"]))]
            table.append([row["workload"], row["quantity"], _number(row["published"]), *cells])
        one = known[key]
        text += f"\n## {one['title']}\n\n{one['source']}\n\n{markdown_table(table, '<<>')}\n{one['why']}\n\n{_summary(its)}.\n"
    return text


def _draw(rows: list[Row]) -> Figure:
    figure, axis = subplots(1, 1, figsize=(9.0, 3.7))
    for place, model in enumerate(MODELS):
        ratios = [row[model] / row["published"] for row in rows]
        axis.plot(range(len(rows)), ratios, MARKERS[place], color=COLOURS[place], label=model, alpha=0.8)
    axis.axhline(1.0, color="0.5", linewidth=0.8)
    labels = [f"{row['accelerator']} {row['workload']}" for row in rows]
    axis.set_xticks(range(len(rows)), labels, rotation=60, ha="right", fontsize="x-small")
    axis.set(ylabel="model over published", yscale="log")
    for ticks in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
        ticks("{x:g}")
    axis.legend()
    return figure
