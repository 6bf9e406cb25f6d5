"""Designs for a range of activation densities beside designs for one density, with formats and skipping searched."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparsemap.files import times
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, by, page
from ..runs import Runner, finite, geometric_mean
from .densities import AWARE, SEARCHED, TESTED, Ratios, TestedDesign, csv_rows, ratios_of, static, tested

PAIRS = (("conv4", "mobile"), ("conv4", "edge-16gbps"), ("mm3", "cloud"))
STRATEGIES = (AWARE, *(static(density) for density in SEARCHED))


def report(runner: Runner, name: str) -> Report:
    searches = [cell for cell in runner.cells(name) if (cell.workload, cell.hardware) in PAIRS]
    (designs,) = tested(runner, name, searches, STRATEGIES, "uniform")
    ratios, table, headline, notes = ratios_of(designs), [["cell", *STRATEGIES]], [], []
    for (workload, hardware), found in by(designs, "workload", "hardware").items():
        strategies = by(found, "strategy")
        shown = {strategy: _shown(same, _mean(same, ratios)) for strategy, same in strategies.items()}
        table.append([f"{workload}, {hardware}", *shown.values()])
        headline.append(f"{workload} on {hardware}: " + ", ".join(f"{one} {worth}" for one, worth in shown.items()))
        whys = {strategy: _why(same) for strategy, same in strategies.items()}
        notes += [f"- {workload} on {hardware}, {strategy}: {why}" for strategy, why in whys.items() if why]
    densities = {x: ", ".join(f"{density:g}" for density in y) for x, y in (("searched", SEARCHED), ("tested", TESTED))}
    text = [page(__file__, name, runner.study(name), **densities, strategies=len(STRATEGIES), table=table)]
    if notes:
        text += ["\n## Invalid designs\n\n", "\n".join(notes), "\n"]
    return Report(name, "\n".join(headline), "".join(text), csv_rows(designs, ratios), lambda: draw(designs, ratios))


def _mean(designs: Sequence[TestedDesign], ratios: Ratios) -> float:
    return geometric_mean(finite(ratio for design in designs for ratio in ratios[design.place][design.strategy]))


def _shown(designs: Sequence[TestedDesign], ratio: float) -> str:
    """The ratio, and the densities with an invalid design of some seed."""
    unfit = [density for at, density in enumerate(TESTED) if any(math.isinf(design.edp[at]) for design in designs)]
    if not unfit:
        return times(ratio)
    above = len(unfit) > 1 and unfit == list(TESTED[: len(unfit)])
    where = f"{unfit[-1]:g} and above" if above else ", ".join(f"{density:g}" for density in unfit)
    return f"invalid at {where} ({times(ratio)})"


def _why(designs: Sequence[TestedDesign]) -> str:
    """Seeds and densities of invalid designs, with the reasons."""
    found = []
    for design in designs:
        where = [f"{density:g}" for density, edp in zip(TESTED, design.edp, strict=True) if math.isinf(edp)]
        reasons = dict.fromkeys(reason for reasons in design.reasons for reason in reasons)
        if where:
            found.append(f"seed {design.seed} at {', '.join(where)} ({', '.join(reasons)})")
    return "; ".join(found)


def draw(designs: Sequence[TestedDesign], ratios: Ratios) -> Figure:
    panels = []
    for (workload, hardware), found in by(designs, "workload", "hardware").items():
        lines = []
        for name, same in by(found, "strategy").items():
            means = map(geometric_mean, zip(*(ratios[design.place][name] for design in same), strict=True))
            line = [mean if math.isfinite(mean) else math.nan for mean in means]
            lines.append(Series(name, TESTED, line, how={"linewidth": 2.6, "zorder": 3} if name == AWARE else {}))
        title, steps = f"{workload} on {hardware}", {"y": (1, 1.5, 2, 3)}
        panels.append(Panel("density of P", "EDP over the best (x)", lines, title=title, log="y", plain=steps))
    return figure(panels, (3.4 * len(panels), 3.6), across=6, sharey=True)
