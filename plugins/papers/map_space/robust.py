"""Designs for a range of activation densities beside designs for one density, where formats and skipping are searched."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparsemap.files import grouped, times
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, counted, page
from ..runs import Runner, finite, geometric_mean
from .densities import AWARE, SEARCHED, TESTED, TestedDesign, csv_rows, over_best, static, tested

PAIRS = (("conv4", "mobile"), ("conv4", "edge-16gbps"), ("mm3", "cloud"))
STRATEGIES = (AWARE, *(static(density) for density in SEARCHED))


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    searches = [cell for cell in runner.cells(name) if (cell.workload, cell.hardware) in PAIRS]
    (designs,) = tested(runner, name, searches, STRATEGIES, "uniform")
    ratios = {place: over_best(same) for place, same in grouped(designs, lambda design: design.place).items()}
    cells = grouped(designs, lambda design: (design.workload, design.hardware))
    lines, headline, notes = [], [], []
    for (workload, hardware), found in cells.items():
        strategies = grouped(found, lambda design: design.strategy)
        means = {name: _mean(same, ratios) for name, same in strategies.items()}
        shown = {name: _shown(same, means[name]) for name, same in strategies.items()}
        lines.append([f"{workload}, {hardware}", *shown.values()])
        headline.append(f"{workload} on {hardware}: " + ", ".join(f"{name} {worth}" for name, worth in shown.items()))
        whys = {name: _why(same) for name, same in strategies.items()}
        notes += [f"- {workload} on {hardware}, {name}: {why}" for name, why in whys.items() if why]
    text = [page(
        __file__, name, study=study, seeds=counted(len(study.seeds), "seed"),
        searched=", ".join(f"{density:g}" for density in SEARCHED),
        tested=", ".join(f"{density:g}" for density in TESTED), strategies=len(STRATEGIES),
        table=[["cell", *STRATEGIES], *lines],
    )]  # fmt: skip
    if notes:
        text += ["\n## Invalid designs\n\n", "\n".join(notes), "\n"]
    return Report(name, "\n".join(headline), "".join(text), csv_rows(designs, ratios), lambda: draw(designs, ratios))


def _mean(designs: Sequence[TestedDesign], ratios: dict) -> float:
    return geometric_mean(finite(ratio for design in designs for ratio in ratios[design.place][design.strategy]))


def _shown(designs: Sequence[TestedDesign], ratio: float) -> str:
    """The ratio, with the densities at which the design of some seed is invalid."""
    unfit = [density for at, density in enumerate(TESTED) if any(math.isinf(design.edp[at]) for design in designs)]
    if not unfit:
        return times(ratio)
    above = len(unfit) > 1 and unfit == list(TESTED[: len(unfit)])
    where = f"{unfit[-1]:g} and above" if above else ", ".join(f"{density:g}" for density in unfit)
    return f"invalid at {where} ({times(ratio)})"


def _why(designs: Sequence[TestedDesign]) -> str:
    """Which seeds are invalid where, and why."""
    found = []
    for design in designs:
        where = [f"{density:g}" for density, edp in zip(TESTED, design.edp, strict=True) if math.isinf(edp)]
        reasons = dict.fromkeys(reason for reasons in design.reasons for reason in reasons)
        if where:
            found.append(f"seed {design.seed} at {', '.join(where)} ({', '.join(reasons)})")
    return "; ".join(found)


def draw(designs: Sequence[TestedDesign], ratios: dict) -> Figure:
    panels = []
    for (workload, hardware), found in grouped(designs, lambda design: (design.workload, design.hardware)).items():
        lines = []
        for name, same in grouped(found, lambda design: design.strategy).items():
            means = map(geometric_mean, zip(*(ratios[design.place][name] for design in same), strict=True))
            line = [mean if math.isfinite(mean) else math.nan for mean in means]
            lines.append(Series(name, TESTED, line, how={"linewidth": 2.6, "zorder": 3} if name == AWARE else {}))
        title, steps = f"{workload} on {hardware}", {"y": (1, 1.5, 2, 3)}
        panels.append(Panel("density of P", "EDP over the best (x)", lines, title=title, log="y", plain=steps))
    return figure(panels, (3.4 * len(panels), 3.6), across=6, sharey=True)
