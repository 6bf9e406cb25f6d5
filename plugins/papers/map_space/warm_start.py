"""Fig. 9, 10 and 11: layers of networks searched from the design of the most similar layer before them, and without."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.files import times
from sparsemap.plots import Figure
from sparsemap.problem import design_file
from sparsemap.searching.result import DESIGN_FILE
from sparsemap.searching.start import start_of
from sparsemap.study.cells import Cell
from sparsemap.study.plan import plan_of

from ..figure import Panel, Series, figure
from ..report import UJ, Report, counted, number, page, times_exact
from ..runs import Runner, StudyRun, by, geometric_mean

BATCH = 16
"""That of the paper's Table 1."""
RANDOM = 100
"""Designs of a random start: the paper's population."""
REACHED = 0.995
"""Share of the improvement after which a search has converged (Section 5.1)."""
STARTS = {
    "random": "5.0x",
    "previous layer": "2.3x",
    "similar layer": "1.2x",
    "three similar layers, filled": "",
}
"""What a search may start from, and Fig. 9's mean EDP of it over that at the end."""
SPEEDUPS = "3.3x to 7.3x"
"""Of Fig. 11, over four networks."""


@attrs.frozen(eq=False, slots=False)
class WarmLayer:
    """A distinct layer of a network, searched cold and warm with one seed."""

    network: str
    cold: StudyRun
    warm: StudyRun
    before: Sequence[Cell]
    """The warm searches of all earlier layers."""
    problem: Callable[[], Problem]
    """Makes what is searched."""

    @property
    def place(self) -> dict[str, Any]:
        """The first cells of its row in a CSV."""
        return {"network": self.network, "layer": self.cold.workload, "seed": self.cold.seed}

    @property
    def runs(self) -> dict[str, StudyRun]:
        return {"cold": self.cold, "warm": self.warm}

    @property
    def end(self) -> float:
        """The best EDP of both searches."""
        return min(self.cold.edp, self.warm.edp)

    @property
    def change(self) -> float:
        """EDP of the warm search at its end over that of the cold one."""
        return self.warm.edp / self.cold.edp

    def speedup(self, own: bool = False) -> float:
        """Designs of the cold search over those of the warm one, to the cold one's target, or each to its own one."""
        return designs_to(self.cold, target(self.cold)) / designs_to(self.warm, target(self.warm if own else self.cold))

    @cached_property
    def starts(self) -> dict[str, float]:
        """EDP of each of `STARTS` over that at the end; layers before are those that the warm search found."""
        problem = self.problem()
        designs = [design_file.load(Path(cell.folder, DESIGN_FILE), problem.registry) for cell in self.before]
        rng = np.random.default_rng([self.cold.seed, len(self.before)])
        starts = {
            "previous layer": start_of(problem, designs[-1:], fill=False),
            "similar layer": start_of(problem, designs, count=1, fill=False),
            "three similar layers, filled": start_of(problem, designs),
        }
        genomes = {"random": problem.space.repair(problem.space.sample(RANDOM, rng), rng)}
        genomes |= {name: start.genomes for name, start in starts.items() if start is not None}
        return {name: float(problem.evaluator.evaluate(rows).edp.min()) / self.end for name, rows in genomes.items()}


def designs_to(run: StudyRun, score: float) -> int:
    """Designs until a search is at a score or below; its whole budget if it never is."""
    return int(min(run.designs_to(score), run.history["evaluations"][-1]))


def target(run: StudyRun) -> float:
    """The score at which a search has made `REACHED` of its improvement over its first batch."""
    scores = run.history["best_score"]
    return scores[0] - REACHED * (scores[0] - scores[-1])


def layers_of(runner: Runner, name: str) -> list[WarmLayer]:
    """The layers of a study's networks, all searched."""
    found, cells = [], []
    for whole in runner.cells(name, "network"):
        given = {"extends": whole.workload, "name": whole.workload, "batch": BATCH}
        about = {"budget": whole.budget, "seed": whole.seed, **whole.parts, "network": given}
        place = f"{whole.workload}--{whole.hardware}--%s--seed{whole.seed}"
        cold, warm = (
            plan_of(runner.registry, folder=Path(whole.folder).with_name(place % how), warm_start=metric, **about)
            for how, metric in (("cold", "off"), ("warm", "edit"))
        )
        cells += [*cold.cells, *warm.cells]
        for at, (without, cell) in enumerate(zip(cold.cells, warm.cells, strict=True)):
            runs = StudyRun.of(without), StudyRun.of(cell)
            found.append(WarmLayer(whole.workload, *runs, warm.cells[:at], partial(warm.problem, cell)))
    runner.run_cells(name, cells)
    return found


def report(runner: Runner, name: str) -> Report:
    study, layers = runner.study(name), layers_of(runner, name)
    what = (
        f"`sparsemap paper {name}`: {', '.join(study.networks)} with batch {BATCH} on {study.hardware[0]}, every distinct "
        f"layer once, the mapping searched alone, {study.budget:,} designs per layer, {counted(len(study.seeds), 'seed')}. "
        "*warm* searches start from the designs of the three most similar layers before (the default of `sparsemap run`), "
        "*cold* ones from none.\n\n"
    )
    return {"mse-fig-9": fig_9, "mse-fig-10": fig_10, "mse-fig-11": fig_11}[name](name, layers, what)


# ------------------------------------------------------------------------------------------------------------- Fig. 9


def fig_9(name: str, layers: Sequence[WarmLayer], what: str) -> Report:
    started = [layer for layer in layers if layer.before]
    networks = by(started, lambda layer: layer.network)
    rows = [
        [start, paper, times(_mean(started, start)), *(times(_mean(same, start)) for same in networks.values())]
        for start, paper in STARTS.items()
    ]
    text = page(__file__, name, what=what, RANDOM=RANDOM, table=[["start", "paper", "here", *networks], *rows])
    headline = ", ".join(
        f"{start} {times(_mean(started, start))} (paper: {paper or '-'})" for start, paper in STARTS.items()
    )
    table = [layer.place | {"edp": layer.end} | layer.starts for layer in started]
    return Report(name, headline, text, table, lambda: draw_9(networks))


def _mean(layers: Sequence[WarmLayer], start: str) -> float:
    return geometric_mean(layer.starts[start] for layer in layers)


def draw_9(networks: Mapping[str, Sequence[WarmLayer]]) -> Figure:
    panels = []
    for network, layers in networks.items():
        lines = []
        for start in STARTS:
            means = [_mean(same, start) for same in by(layers, lambda layer: layer.cold.workload).values()]
            lines.append(Series(start, range(2, len(means) + 2), means, how={"linewidth": 0.8}))
        y, steps = "EDP over that at the end (x)", {"y": (1, 2, 5)}
        panels.append(Panel("distinct layer", y, lines, title=network, log="y", plain=steps))
    return figure(panels, (4.6 * len(networks), 3.6), sharey=True)


# ------------------------------------------------------------------------------------------------------------ Fig. 10


def fig_10(name: str, layers: Sequence[WarmLayer], what: str) -> Report:
    first = layers[0].cold
    layers = [x for x in layers if x.cold.seed == first.seed and x.cold.workload.startswith("features")]
    chosen = [layers[0], layers[-1]]
    cold, warm = (run.history["best_score"].tolist() for run in chosen[0].runs.values())
    same = cold == warm
    places = np.array([100, 320, 500, 1000, 2000, first.result["budget"]])
    rows = [
        [run.workload, how, *(number(x / UJ) for x in run.best_at(places))]
        for layer in chosen
        for how, run in layer.runs.items()
    ]
    text = page(
        __file__, name, what=what, chosen=chosen, same="are the same" if same else "should be the same and are not",
        table=[["layer", "search", *(f"{place:}" for place in places)], *rows],
    )  # fmt: skip
    headline = "\n".join(
        f"{layer.cold.workload}: {times(layer.speedup())} fewer designs, EDP {times_exact(layer.change)} of cold"
        for layer in chosen
    )
    table = [
        layer.place | {"search": how, "designs": int(at), "edp": score}
        for layer in chosen
        for how, run in layer.runs.items()
        for at, score in zip(run.history["evaluations"], run.history["best_score"], strict=True)
    ]
    return Report(name, headline, text, table, lambda: draw_10(chosen))


def draw_10(layers: Sequence[WarmLayer]) -> Figure:
    panels = []
    for layer in layers:
        lines = [
            Series(how, run.history["evaluations"], run.history["best_score"] / UJ, style, marked=False)
            for (how, run), style in zip(layer.runs.items(), ("-", "--"), strict=False)
        ]
        panels.append(Panel("designs", "best EDP (cycles * uJ)", lines, title=f"{layer.network} {layer.cold.workload}"))
    return figure(panels, (4.2 * len(layers), 3.4))


# ------------------------------------------------------------------------------------------------------------ Fig. 11


def fig_11(name: str, layers: Sequence[WarmLayer], what: str) -> Report:
    networks = by(layers, lambda layer: layer.network)
    rows = [[network, *_row(same)] for network, same in networks.items()]
    text = page(
        __file__, name, what=what, reached=100 * REACHED, table=[["network", *COLUMNS], *rows], paper=SPEEDUPS,
        count=len(layers), soon=sum(layer.speedup() >= 10 for layer in layers),
        same=sum(abs(layer.change - 1) <= 0.01 for layer in layers),
    )  # fmt: skip
    headline = "\n".join(f"{network}: " + ", ".join(map(" ".join, zip(COLUMNS, _row(same), strict=True)))
                         for network, same in networks.items())  # fmt: skip
    table = [
        layer.place
        | {f"designs_{how}": designs_to(run, target(layer.cold)) for how, run in layer.runs.items()}
        | {f"edp_{how}": run.edp for how, run in layer.runs.items()}
        for layer in layers
    ]
    return Report(name, headline, text, table, lambda: draw_11(networks))


COLUMNS = ("common target", "sums", "sums to 1.05x", "own target", "EDP", "worst")


def _row(layers: Sequence[WarmLayer]) -> list[str]:
    changes = [layer.change for layer in layers]
    return [
        times(geometric_mean(layer.speedup() for layer in layers)),
        times(_sums(layers, [target(layer.cold) for layer in layers])),
        times(_sums(layers, [1.05 * layer.cold.edp for layer in layers])),
        times(geometric_mean(layer.speedup(own=True) for layer in layers)),
        times_exact(geometric_mean(changes)),
        times_exact(max(changes)),
    ]


def _sums(layers: Sequence[WarmLayer], targets: Sequence[float]) -> float:
    """Designs of all cold searches over those of all warm ones."""
    both = list(zip(layers, targets, strict=True))
    cold = sum(designs_to(layer.cold, score) for layer, score in both)
    return cold / sum(designs_to(layer.warm, score) for layer, score in both)


def draw_11(networks: Mapping[str, Sequence[WarmLayer]]) -> Figure:
    shown: Mapping[str, Callable[[WarmLayer], float]] = {
        "designs to the common target, cold over warm (x)": WarmLayer.speedup,
        "EDP at the end, warm over cold (x)": lambda layer: layer.change,
    }
    panels = []
    for label, value in shown.items():
        series = []
        for at, (network, layers) in enumerate(networks.items()):
            found, spread = [value(layer) for layer in layers], np.linspace(-0.25, 0.25, len(layers))
            series.append(Series(network, at + spread, found, "", how={"marker": ".", "markersize": 4}))
            mean, black = [geometric_mean(found)] * 2, {"color": "black", "linewidth": 1.6}
            series.append(Series("geometric mean", [at - 0.35, at + 0.35], mean, marked=False, how=black))
        panels.append(Panel("", label, series, names=list(networks)))
    first = attrs.evolve(panels[0], log="y", plain={"y": (1, 3)})
    return figure([first, *panels[1:]], (8.4, 3.6))
