"""Table 4: mappings for a range of activation densities beside mappings for one, under one sparse strategy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sparsemap.files import times
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import UJ, Report, by, number, page
from ..runs import Runner, geometric_mean
from .densities import AWARE, TESTED, TestedDesign, csv_rows, printed, ratios_of, static, tested

STATIC = (1.0, 0.5, 0.1)
STRATEGIES = (AWARE, *(static(density) for density in STATIC))
ROUNDS = 3
"""Rounds of searches; from the second on, each search starts from the designs of all four strategies."""

Columns = Mapping[str, Sequence[float]]
"""By strategy, an EDP per tested density."""


def columns_of(workloads: Iterable[str]) -> dict[str, Columns]:
    """The paper's columns, by workload."""
    rows = printed("table-mse-4")
    return {workload: dict(zip(STRATEGIES, zip(*rows[workload], strict=True), strict=True)) for workload in workloads}


def matched(columns: Sequence[Columns]) -> float:
    """The paper's "99.7 %": EDP of each static search over the aware one at the static search's density, geometric mean over
    workloads and densities."""
    at = [(static(density), TESTED.index(density)) for density in STATIC]
    return geometric_mean(found[name][row] / found[AWARE][row] for found in columns for name, row in at)


def over_aware(columns: Sequence[Columns]) -> dict[str, float]:
    """By static strategy, the EDP over the aware one's, geometric mean over workloads and all tested densities."""
    return {
        name: geometric_mean(x / y for found in columns for x, y in zip(found[name], found[AWARE], strict=True))
        for name in STRATEGIES[1:]
    }


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    (hardware,) = study.hardware
    *_, designs = tested(runner, name, runner.cells(name), STRATEGIES, "structured", ROUNDS)
    ours = {workload: _typical(found) for workload, found in by(designs, "workload").items()}
    theirs = columns_of(ours)
    both = [list(columns.values()) for columns in (ours, theirs)]
    rows = [["aware keeps of the matched static searches", *(f"{100 * matched(columns):.1f} %" for columns in both)]]
    over = [over_aware(columns) for columns in both]
    rows += [[f"EDP of {name} over aware", *(times(one[name]) for one in over)] for name in STRATEGIES[1:]]
    text = [page(__file__, name, study, hardware=hardware, ROUNDS=ROUNDS, table=[["", "here", "the paper"], *rows])]
    head = ["density", *STRATEGIES, *(f"paper: {strategy}" for strategy in STRATEGIES)]
    for workload, columns in ours.items():
        every = [*columns.values(), *theirs[workload].values()]
        lines = [[f"{density:g}", *(number(column[at]) for column in every)] for at, density in enumerate(TESTED)]
        text += [f"\n## {workload}, EDP in cycles * uJ\n\n", markdown_table([head, *lines], ">")]
    headline = "\n".join(f"{row[0]}: {row[1]}, the paper {row[2]}" for row in rows)
    return Report(name, headline, "".join(text), csv_rows(designs, ratios_of(designs)), lambda: draw(ours, theirs))


def _typical(designs: Sequence[TestedDesign]) -> Columns:
    """cycles * uJ, the geometric mean over seeds; infinity for an invalid design of any seed."""
    return {
        name: [geometric_mean(column) / UJ for column in zip(*(design.edp for design in same), strict=True)]
        for name, same in by(designs, "strategy").items()
    }


def draw(ours: Mapping[str, Columns], theirs: Mapping[str, Columns]) -> Figure:
    panels = []
    for workload, columns in ours.items():
        lines = []
        for name in STRATEGIES[1:]:
            for found, style, who in ((columns, "-", "here"), (theirs[workload], ":", "paper")):
                line = [x / y for x, y in zip(found[name], found[AWARE], strict=True)]
                lines.append(Series(f"{name}, {who}", TESTED, line, style, marked=who == "here", like=name))
        panels.append(Panel("density of P", "EDP over that of aware (x)", lines, title=workload, levels=[1.0]))
    return figure(panels, (4.6 * len(ours), 3.6), across=3, sharey=True)
