"""Table 4: mappings for a range of activation densities beside mappings for one, under one sparse strategy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from sparsemap.files import grouped, times
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import UJ, Report, counted, number, page, times_exact
from ..runs import Runner, geometric_mean
from .densities import AWARE, SEARCHED, TESTED, TestedDesign, csv_rows, over_best, printed, static, tested

STATIC = (1.0, 0.5, 0.1)
STRATEGIES = (AWARE, *(static(density) for density in STATIC))
ROUNDS = 3
"""Every search is run so often, from the second time on starting from the designs of all four."""

Columns = Mapping[str, Sequence[float]]
"""By strategy, an EDP per tested density."""


def columns_of(workloads: Iterable[str]) -> dict[str, Columns]:
    """The paper's, of these workloads."""
    rows = printed("table-mse-4")
    return {workload: dict(zip(STRATEGIES, zip(*rows[workload], strict=True), strict=True)) for workload in workloads}


def matched(columns: Sequence[Columns]) -> float:
    """The paper's "99.7 %": the geometric mean over workloads and the densities that a static search was made for of that
    search's EDP there over the aware one's."""
    at = [(static(density), TESTED.index(density)) for density in STATIC]
    return geometric_mean(found[name][row] / found[AWARE][row] for found in columns for name, row in at)


def over_aware(columns: Sequence[Columns]) -> dict[str, float]:
    """By static strategy, its EDP over the aware one's, geometric mean over workloads and all tested densities."""
    return {
        name: geometric_mean(x / y for found in columns for x, y in zip(found[name], found[AWARE], strict=True))
        for name in STRATEGIES[1:]
    }


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    (hardware,) = study.hardware
    *before, designs = tested(runner, name, runner.cells(name), STRATEGIES, "structured", ROUNDS)
    ours = _columns(designs)
    theirs = columns_of(ours)
    rows = [["aware keeps of the matched static searches", _share(ours.values()), _share(theirs.values())]]
    for strategy in STRATEGIES[1:]:
        over = [times(over_aware(list(columns.values()))[strategy]) for columns in (ours, theirs)]
        rows.append([f"EDP of {strategy} over aware", *over])
    ratios = {place: over_best(same) for place, same in grouped(designs, lambda design: design.place).items()}
    text = [page(
        __file__, name, hardware=hardware, study=study, seeds=counted(len(study.seeds), "seed"), ROUNDS=ROUNDS,
        table=[["", "here", "the paper"], *rows],
        noise=_noise(designs, [_share(_columns(found).values()) for found in before]),
    )]  # fmt: skip
    for workload, columns in ours.items():
        head = ["density", *STRATEGIES, *(f"paper: {strategy}" for strategy in STRATEGIES)]
        both = [*columns.values(), *theirs[workload].values()]
        lines = [[f"{density:g}", *(number(column[at]) for column in both)] for at, density in enumerate(TESTED)]
        text += [f"\n## {workload}, EDP in cycles * uJ\n\n", markdown_table([head, *lines], ">")]
    headline = "\n".join(f"{row[0]}: {row[1]}, the paper {row[2]}" for row in rows)
    return Report(name, headline, "".join(text), csv_rows(designs, ratios), lambda: draw(ours, theirs))


def _columns(designs: Sequence[TestedDesign]) -> dict[str, Columns]:
    """By workload."""
    return {workload: _typical(found) for workload, found in grouped(designs, lambda design: design.workload).items()}


def _typical(designs: Sequence[TestedDesign]) -> Columns:
    """cycles * uJ, the geometric mean over seeds; infinity where one is invalid."""
    strategies = grouped(designs, lambda design: design.strategy)
    return {
        name: [geometric_mean(column) / UJ for column in zip(*(design.edp for design in same), strict=True)]
        for name, same in strategies.items()
    }


def robust_score(design: TestedDesign) -> float:
    """What the aware search minimises."""
    return math.fsum(design.edp[TESTED.index(density)] / density for density in SEARCHED)


def _noise(designs: Sequence[TestedDesign], before: Sequence[str]) -> str:
    """How far searches are from what others found by chance."""
    cells = grouped(designs, lambda design: (design.workload, design.seed)).values()
    scores = [{design.strategy: robust_score(design) for design in same} for same in cells]
    over = [found[AWARE] / min(found.values()) for found in scores]
    beaten = sum(ratio > 1 for ratio in over)
    return page(
        __file__, "mse-noise", beaten=beaten, count=len(over), mean=times_exact(geometric_mean(over)),
        before=" and ".join(before),
    )  # fmt: skip


def _share(columns) -> str:
    return f"{100 * matched(list(columns)):.1f} %"


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
