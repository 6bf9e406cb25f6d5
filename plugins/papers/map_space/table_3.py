"""Table 3: whether the reduction should be the innermost or the outermost loop, over the density of one operand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from sparsemap.files import markdown_table, times
from sparsemap.plots import COLOURS, MARKERS, Figure, subplots
from sparsemap.study.cells import Cell

from ..report import Report, counted, number
from ..runs import Run, Runner, by, finished_runs, typical_edp
from .densities import run_cells_of

UJ = 1e6
"""pJ per uJ: the paper prints cycles * uJ."""
DENSITIES = (1.0, 0.5, 0.1, 0.01)
ORDERS = ("inner-product", "outer-product")
PRINTED: Mapping[str, tuple[tuple[float, float], ...]] = {
    "bert-large-kqv": ((7.6e11, 9.8e11), (1.1e11, 1.4e11), (9.0e8, 1.6e5), (1.9e5, 1.6e5)),
    "bert-large-attn": ((1.9e11, 2.5e11), (2.8e10, 3.6e10), (3.4e8, 3.6e8), (2.0e5, 8.0e4)),
    "bert-large-fc": ((7.8e14, 9.1e14), (1.5e14, 1.5e14), (1.4e12, 1.1e8), (1.8e8, 1.1e8)),
}
"""EDPs of the inner and the outer product at `DENSITIES`, in cycles * uJ."""


def report(runner: Runner, name: str) -> Report:
    study, folder = runner.study(name), runner.folder(name)
    (hardware,), (searcher,) = study.hardware, study.searchers
    cells = []
    for workload, density, order, seed in product(study.workloads, DENSITIES, ORDERS, study.seeds):
        label = f"{workload}-{density:g}"
        given = {"P": {"type": "structured", "density": density}}
        parts = {
            "workload": {"extends": workload, "name": label, "density": given},
            "hardware": hardware,
            "searcher": searcher,
            "space": order,
            "objective": study.objective,
            "cost_model": study.cost_model,
        }
        place = str(folder.resolve() / f"{label}--{hardware}--{order}--seed{seed}")
        about = {"workload": label, "hardware": hardware, "searcher": order, "seed": seed}
        cells.append(Cell(**about, budget=study.budget, parts=parts, folder=place))
    run_cells_of(runner, cells, folder)
    labels = {cell.workload for cell in cells}
    runs = [run for run in finished_runs(folder, ORDERS) if run.workload in labels and run.seed in study.seeds]
    found = {key: typical_edp(same) for key, same in by(runs, _key).items()}
    rows, lines = [], []
    for workload, (at, density) in product(study.workloads, enumerate(DENSITIES)):
        inner, outer = (found[f"{workload}-{density:g}", order] for order in ORDERS)
        theirs = PRINTED[workload][at]
        here = [*(number(x / UJ) for x in (inner, outer)), times(outer / inner)]
        there = [*(number(x) for x in theirs), times(theirs[1] / theirs[0])]
        rows.append([workload, f"{density:g}", *here, *there])
    for workload in study.workloads:
        ratios = [found[f"{workload}-{d:g}", ORDERS[1]] / found[f"{workload}-{d:g}", ORDERS[0]] for d in DENSITIES]
        lines.append(f"{workload}: outer over inner " + ", ".join(
            f"{times(ratio)} at {density:g}" for ratio, density in zip(ratios, DENSITIES, strict=True)
        ))  # fmt: skip
    text = [
        "# Table 3: inner and outer products over the density of one operand\n\n",
        f"`sparsemap paper {name}`: {study.budget:,} designs per search on {hardware}, "
        f"{counted(len(study.seeds), 'seed')}; the reduction is the innermost or the outermost loop of every level, tiles "
        "and parallel dimensions are searched. P is stored as compressed sparse rows and skips Q; the others are dense. "
        "EDPs in cycles * uJ, the geometric mean over seeds.\n\n",
        markdown_table(
            [["layer", "density", "inner", "outer", "outer over inner", "paper: inner", "outer", "outer over inner"], *rows],
            "<>>>>>>>",
        ),
        "\nSome printed numbers are out of reach of any mapping: with 1,024 units and 1 pJ per multiply-accumulate, KQV needs "
        "at least 7.2e8 at a density of 0.1 and 7.2e6 at 0.01, Attn 1.8e6 at 0.01, FC 1.2e10 at 0.1. They are no targets.\n",
    ]  # fmt: skip
    table = [
        {"workload": workload, "density": density}
        | {order: found[f"{workload}-{density:g}", order] for order in ORDERS}
        for workload, density in product(study.workloads, DENSITIES)
    ]
    return Report(name, "\n".join(lines), "".join(text), table, lambda: draw(study.workloads, found))


def _key(run: Run) -> tuple[str, str]:
    return run.workload, run.searcher


def draw(workloads: tuple[str, ...], found: Mapping[tuple[str, str], float]) -> Figure:
    figure, axes = subplots(1, 1, figsize=(4.6, 3.4), squeeze=False)
    axis = axes[0][0]
    for workload, colour, marker in zip(workloads, COLOURS, MARKERS, strict=False):
        ratios = [found[f"{workload}-{d:g}", ORDERS[1]] / found[f"{workload}-{d:g}", ORDERS[0]] for d in DENSITIES]
        axis.plot(DENSITIES, ratios, marker, linestyle="-", color=colour, label=workload)
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set(xscale="log", xlabel="density of P", ylabel="EDP, outer over inner product (x)")
    axis.legend()
    return figure
