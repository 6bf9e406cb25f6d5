"""Designs for a range of activation densities beside designs for one density, where formats and skipping are searched."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparsemap.files import times
from sparsemap.plots import COLOURS, MARKERS, Figure, plain_log, subplots

from ..report import Report, counted, page
from ..runs import Runner, by, finite, geometric_mean
from .densities import AWARE, SEARCHED, TESTED, Tested, csv_rows, over_best, static, tested

PAIRS = (("conv4", "mobile"), ("conv4", "edge-16gbps"), ("mm3", "cloud"))
STRATEGIES = (AWARE, *(static(density) for density in SEARCHED))


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    searches = [cell for cell in runner.cells(name) if (cell.workload, cell.hardware) in PAIRS]
    (designs,) = tested(runner, name, searches, STRATEGIES, "uniform")
    ratios = {place: over_best(same) for place, same in by(designs, lambda design: design.place).items()}
    cells = by(designs, lambda design: (design.workload, design.hardware))
    lines, headline, notes = [], [], []
    for (workload, hardware), found in cells.items():
        strategies = by(found, lambda design: design.strategy)
        means = {name: _mean(same, ratios) for name, same in strategies.items()}
        shown = {name: _shown(same, means[name]) for name, same in strategies.items()}
        lines.append([f"{workload}, {hardware}", *shown.values()])
        headline.append(f"{workload} on {hardware}: " + ", ".join(f"{name} {text}" for name, text in shown.items()))
        notes += [
            f"- {workload} on {hardware}, {name}: {text}" for name, same in strategies.items() if (text := _why(same))
        ]
    text = [
        page(
            __file__,
            name,
            study=study,
            seeds=counted(len(study.seeds), "seed"),
            searched=", ".join(f"{density:g}" for density in SEARCHED),
            tested=", ".join(f"{density:g}" for density in TESTED),
            strategies=len(STRATEGIES),
            table=[["cell", *STRATEGIES], *lines],
        )
    ]
    if notes:
        text += ["\n## Invalid designs\n\n", "\n".join(notes), "\n"]
    return Report(name, "\n".join(headline), "".join(text), csv_rows(designs, ratios), lambda: draw(designs, ratios))


def _mean(designs: Sequence[Tested], ratios: dict) -> float:
    return geometric_mean(finite(ratio for design in designs for ratio in ratios[design.place][design.strategy]))


def _unfit(designs: Sequence[Tested]) -> list[float]:
    """Densities at which the design of some seed is invalid."""
    return [density for at, density in enumerate(TESTED) if any(math.isinf(design.edp[at]) for design in designs)]


def _shown(designs: Sequence[Tested], ratio: float) -> str:
    unfit = _unfit(designs)
    if not unfit:
        return times(ratio)
    above = len(unfit) > 1 and unfit == list(TESTED[: len(unfit)])
    where = f"{unfit[-1]:g} and above" if above else ", ".join(f"{density:g}" for density in unfit)
    return f"invalid at {where} ({times(ratio)})"


def _why(designs: Sequence[Tested]) -> str:
    """Which seeds are invalid where, and why."""
    found = []
    for design in designs:
        where = [f"{density:g}" for density, edp in zip(TESTED, design.edp, strict=True) if math.isinf(edp)]
        reasons = dict.fromkeys(reason for reasons in design.reasons for reason in reasons)
        if where:
            found.append(f"seed {design.seed} at {', '.join(where)} ({', '.join(reasons)})")
    return "; ".join(found)


def draw(designs: Sequence[Tested], ratios: dict) -> Figure:
    cells = by(designs, lambda design: (design.workload, design.hardware))
    figure, axes = subplots(1, len(cells), figsize=(3.4 * len(cells), 3.4), sharey=True, squeeze=False)
    for axis, ((workload, hardware), found) in zip(axes[0], cells.items(), strict=True):
        for (name, same), colour, marker in zip(
            by(found, lambda d: d.strategy).items(), COLOURS, MARKERS, strict=False
        ):
            worth = [ratios[design.place][name] for design in same]
            means = map(geometric_mean, zip(*worth, strict=True))
            line = [mean if math.isfinite(mean) else math.nan for mean in means]
            width = {"linewidth": 2.6, "zorder": 3} if name == AWARE else {}
            axis.plot(TESTED, line, marker, linestyle="-", color=colour, label=name, **width)
        axis.set(xlabel="density of P", yscale="log", title=f"{workload} on {hardware}")
        plain_log(axis.yaxis, (1, 1.5, 2, 3))
    axes[0][0].set(ylabel="EDP over the best (x)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure
