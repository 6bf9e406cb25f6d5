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
from sparsemap.plots import COLOURS, MARKERS, Figure, named_ticks, plain_log, subplots
from sparsemap.problem import design_file
from sparsemap.searching.result import DESIGN_FILE
from sparsemap.searching.start import start_of
from sparsemap.study.cells import Cell
from sparsemap.study.plan import plan_of

from ..report import UJ, Report, counted, number, page, times_exact
from ..runs import Run, Runner, by, geometric_mean

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
class Layer:
    """A distinct layer of a network, searched cold and warm with one seed."""

    network: str
    cold: Run
    warm: Run
    before: Sequence[Cell]
    """The warm searches of all earlier layers."""
    problem: Callable[[], Problem]
    """Makes what is searched."""

    @property
    def place(self) -> dict[str, Any]:
        """The first cells of its row in a CSV."""
        return {"network": self.network, "layer": self.cold.workload, "seed": self.cold.seed}

    @property
    def runs(self) -> dict[str, Run]:
        return {"cold": self.cold, "warm": self.warm}

    @property
    def end(self) -> float:
        """The best EDP of both searches."""
        return min(self.cold.edp, self.warm.edp)

    @property
    def change(self) -> float:
        """EDP of the warm search at its end over that of the cold one."""
        return self.warm.edp / self.cold.edp

    @property
    def starts_there(self) -> bool:
        """Whether the first batch of the warm search has the target of the cold one."""
        return bool(self.warm.history["best_score"][0] <= target(self.cold))

    def speedup(self, own: bool = False) -> float:
        """Designs of the cold search over those of the warm one, to the cold one's target, or each to its own one."""
        return designs_to(self.cold, target(self.cold)) / designs_to(self.warm, target(self.warm if own else self.cold))

    @cached_property
    def starts(self) -> dict[str, float]:
        """EDP of each of `STARTS` over that at the end; layers before are those that the warm search found."""
        problem = self.problem()
        designs = [design_file.load(Path(cell.folder, DESIGN_FILE), problem.registry) for cell in self.before]
        rng = np.random.default_rng([self.cold.seed, len(self.before)])
        genomes = {
            "random": problem.space.repair(problem.space.sample(RANDOM, rng), rng),
            "previous layer": start_of(problem, designs[-1:], fill=False).genomes,
            "similar layer": start_of(problem, designs, count=1, fill=False).genomes,
            "three similar layers, filled": start_of(problem, designs).genomes,
        }
        return {name: float(problem.evaluator.evaluate(rows).edp.min()) / self.end for name, rows in genomes.items()}


def designs_to(run: Run, score: float) -> int:
    """Designs until a search is at a score or below; its whole budget if it never is."""
    return int(min(run.designs_to(score), run.history["evaluations"][-1]))


def target(run: Run) -> float:
    """The score at which a search has made `REACHED` of its improvement over its first batch."""
    scores = run.history["best_score"]
    return scores[0] - REACHED * (scores[0] - scores[-1])


def layers_of(runner: Runner, name: str) -> list[Layer]:
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
            runs = Run.of(without), Run.of(cell)
            found.append(Layer(whole.workload, *runs, warm.cells[:at], partial(warm.problem, cell)))
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


def fig_9(name: str, layers: Sequence[Layer], what: str) -> Report:
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


def _mean(layers: Sequence[Layer], start: str) -> float:
    return geometric_mean(layer.starts[start] for layer in layers)


def draw_9(networks: Mapping[str, Sequence[Layer]]) -> Figure:
    figure, axes = subplots(1, len(networks), figsize=(4.6 * len(networks), 3.4), sharey=True, squeeze=False)
    for axis, (network, layers) in zip(axes[0], networks.items(), strict=True):
        for start, colour, marker in zip(STARTS, COLOURS, MARKERS, strict=False):
            means = [_mean(same, start) for same in by(layers, lambda layer: layer.cold.workload).values()]
            axis.plot(range(2, len(means) + 2), means, marker, linestyle="-", linewidth=0.8, color=colour, label=start)
        axis.set(yscale="log", xlabel="distinct layer", title=network)
        plain_log(axis.yaxis)
    axes[0][0].set(ylabel="EDP over that at the end (x)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


# ------------------------------------------------------------------------------------------------------------ Fig. 10


def fig_10(name: str, layers: Sequence[Layer], what: str) -> Report:
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
        __file__,
        name,
        what=what,
        chosen=chosen,
        same="are the same" if same else "should be the same and are not",
        table=[["layer", "search", *(f"{place:,}" for place in places)], *rows],
    )
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


def draw_10(layers: Sequence[Layer]) -> Figure:
    figure, axes = subplots(1, len(layers), figsize=(4.2 * len(layers), 3.2), squeeze=False)
    for axis, layer in zip(axes[0], layers, strict=True):
        for (how, run), colour, style in zip(layer.runs.items(), COLOURS, ("-", "--"), strict=False):
            history = run.history
            axis.plot(history["evaluations"], history["best_score"] / UJ, style, color=colour, label=how)
        axis.set(xlabel="designs", title=f"{layer.network} {layer.cold.workload}")
    axes[0][0].set(ylabel="best EDP (cycles * uJ)")
    axes[0][0].legend()
    return figure


# ------------------------------------------------------------------------------------------------------------ Fig. 11


def fig_11(name: str, layers: Sequence[Layer], what: str) -> Report:
    networks = by(layers, lambda layer: layer.network)
    rows = [[network, *_row(same)] for network, same in networks.items()]
    text = page(
        __file__,
        name,
        what=what,
        reached=100 * REACHED,
        table=[["network", *COLUMNS], *rows],
        paper=SPEEDUPS,
        count=len(layers),
        there=sum(layer.starts_there for layer in layers),
        same=sum(abs(layer.change - 1) <= 0.01 for layer in layers),
    )
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


def _row(layers: Sequence[Layer]) -> list[str]:
    changes = [layer.change for layer in layers]
    return [
        times(geometric_mean(layer.speedup() for layer in layers)),
        times(_sums(layers, [target(layer.cold) for layer in layers])),
        times(_sums(layers, [1.05 * layer.cold.edp for layer in layers])),
        times(geometric_mean(layer.speedup(own=True) for layer in layers)),
        times_exact(geometric_mean(changes)),
        times_exact(max(changes)),
    ]


def _sums(layers: Sequence[Layer], targets: Sequence[float]) -> float:
    """Designs of all cold searches over those of all warm ones."""
    both = list(zip(layers, targets, strict=True))
    cold = sum(designs_to(layer.cold, score) for layer, score in both)
    return cold / sum(designs_to(layer.warm, score) for layer, score in both)


def draw_11(networks: Mapping[str, Sequence[Layer]]) -> Figure:
    figure, axes = subplots(1, 2, figsize=(8.4, 3.4))
    shown: Mapping[str, Callable[[Layer], float]] = {
        "designs to the common target, cold over warm (x)": Layer.speedup,
        "EDP at the end, warm over cold (x)": lambda layer: layer.change,
    }
    for axis, (label, value) in zip(axes, shown.items(), strict=True):
        for at, (layers, colour) in enumerate(zip(networks.values(), COLOURS, strict=False)):
            found = [value(layer) for layer in layers]
            spread = np.linspace(-0.25, 0.25, len(found)) if len(found) > 1 else np.zeros(1)
            axis.plot(at + spread, found, ".", color=colour, markersize=4)
            axis.plot([at - 0.35, at + 0.35], [geometric_mean(found)] * 2, color="black", linewidth=1.6)
        axis.set(ylabel=label)
        named_ticks(axis.xaxis, list(networks))
    axes[0].set(yscale="log")
    plain_log(axes[0].yaxis, (1, 3))
    return figure
