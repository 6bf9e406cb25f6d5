"""Fig. 9, 10 and 11: layers of networks searched from the most similar earlier layers, and without."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Problem, Search
from sparsemap.files import percent, times
from sparsemap.pieces.contracts import Array
from sparsemap.pieces.study_spec import Study
from sparsemap.plots import Figure, Panel, Series, figure
from sparsemap.problem import design_file
from sparsemap.searching.result import DESIGN_FILE
from sparsemap.searching.start import start_of
from sparsemap.study.cells import Cell
from sparsemap.study.plan import plan_of

from ..report import UJ, Report, by, number, page, times_exact
from ..runs import Runner, StudyRun, arithmetic_mean, geometric_mean

BATCH = 16
"""The batch of the paper's Table 1."""
GENERATION = 100
"""Designs of a generation: the paper's population."""
REACHED = 0.995
"""Share of the improvement of a converged search (Section 5.1)."""
NEAR = (1.02, 1.05, 1.1)
"""Other targets: EDPs over the end of the cold search."""
STARTS = {
    "random, repaired": "-",
    "random": "5.0x",
    "previous layer": "2.3x",
    "similar layer": "1.2x",
    "three similar layers, filled": "-",
}
"""Starts of a search, with Fig. 9's mean EDP over the end."""
LEAST, MOST = 3.3, 7.3
"""Fig. 11: cold over warm generations, from MnasNet to the network with the largest gain."""
PAPERS_MAPPER = "gamma"
METRICS = {"cold": "off", "warm": "edit"}
"""Warm start of the searches of a layer."""


@attrs.frozen(eq=False, slots=False)
class WarmLayer:
    """A distinct layer of a network, searched cold and warm with one seed."""

    network: str
    cold: StudyRun
    warm: StudyRun
    before: Sequence[Cell]
    """The warm searches of all earlier layers."""
    problem: Callable[[], Problem]
    """Makes the problem of the searches."""
    again: StudyRun
    """The cold search with the next seed, for the effect of chance."""

    @property
    def mapper(self) -> str:
        return self.cold.searcher

    @property
    def layer(self) -> str:
        return self.cold.workload

    @property
    def place(self) -> dict[str, Any]:
        """The first columns of a CSV."""
        return {"network": self.network, "layer": self.layer, "mapper": self.mapper, "seed": self.cold.seed}

    @property
    def runs(self) -> dict[str, StudyRun]:
        return {"cold": self.cold, "warm": self.warm}

    @property
    def end(self) -> float:
        """The best EDP of both searches."""
        return min(self.cold.edp, self.warm.edp)

    @property
    def change(self) -> float:
        """EDP at the end, warm over cold."""
        return self.warm.edp / self.cold.edp

    def first(self, how: str) -> float:
        """The best EDP of the first batch of a search over the EDP at the end."""
        return self.runs[how].history["best_score"][0] / self.end

    def target(self, near: float = 0.0) -> float:
        """The score of the converged cold search, or a multiple of its last score."""
        return near * self.cold.edp if near else target(self.cold)

    def speedup(self, near: float = 0.0, chance: bool = False, own: bool = False) -> float:
        """Generations to the cold search's target, cold over warm. `chance`: over the cold search with another seed; `own`:
        each search to its own target."""
        other, goal = self.again if chance else self.warm, self.target(near)
        return generations_to(self.cold, goal) / generations_to(other, target(other) if own else goal)

    @cached_property
    def starts(self) -> dict[str, float]:
        """EDP of each of `STARTS` over the end; earlier layers have the designs of the warm searches."""
        problem = self.problem()
        designs = [design_file.load(Path(cell.folder, DESIGN_FILE), problem.registry) for cell in self.before]
        rng = np.random.default_rng([self.cold.seed, len(self.before)])
        starts = {
            "previous layer": start_of(problem, designs[-1:], fill=False),
            "similar layer": start_of(problem, designs, count=1, fill=False),
            "three similar layers, filled": start_of(problem, designs),
        }
        genomes = {"random, repaired": problem.space.repair(problem.space.sample(GENERATION, rng), rng)}
        genomes |= {"random": first_generation(problem, self.cold.seed)}
        genomes |= {name: start.genomes for name, start in starts.items() if start is not None}
        return {name: float(problem.evaluator.evaluate(rows).edp.min()) / self.end for name, rows in genomes.items()}


Layers = Sequence[WarmLayer]
LayerGroups = Mapping[tuple[str, str], Layers]
"""By mapper and network."""


def first_generation(problem: Problem, seed: int) -> Array:
    """(n, G) the first genomes of the paper's mapper."""
    genomes = Search(problem, PAPERS_MAPPER, 10 * GENERATION, seed).ask()
    return problem.space.low[None, :][:0] if genomes is None else genomes


def generations_to(run: StudyRun, score: float) -> int:
    """Generations until a search reaches a score; the whole budget if never."""
    return max(1, math.ceil(min(run.designs_to(score), run.history["evaluations"][-1]) / GENERATION))


def target(run: StudyRun) -> float:
    """The score after `REACHED` of a search's improvement over its first batch."""
    scores = run.history["best_score"]
    return scores[0] - REACHED * (scores[0] - scores[-1])


def layers_of(runner: Runner, name: str) -> list[WarmLayer]:
    """The layers of a study's networks, all searched."""
    plans = []
    for whole in runner.cells(name, "network"):
        given = {"extends": whole.workload, "name": whole.workload, "batch": BATCH}
        about = {"budget": whole.budget, "seed": whole.seed, **whole.parts, "network": given}
        place = f"{whole.workload}--{whole.hardware}--{whole.searcher}-%s--seed{whole.seed}"
        folders = {metric: Path(whole.folder).with_name(place % how) for how, metric in METRICS.items()}
        cold, warm = (plan_of(runner.registry, folder=at, warm_start=x, **about) for x, at in folders.items())
        plans.append((whole, cold, warm))
    runner.run_cells(name, [cell for _, *both in plans for plan in both for cell in plan.cells])
    found, groups = [], dict[tuple[str, str], list[Any]]()
    for plan in plans:
        groups.setdefault((plan[0].workload, plan[0].searcher), []).append(plan)
    for same in groups.values():
        for (whole, cold, warm), (_, again, _) in zip(same, [*same[1:], same[0]], strict=True):
            for at, cells in enumerate(zip(cold.cells, warm.cells, again.cells, strict=True)):
                one, two, other = map(StudyRun.of, cells)
                problem = partial(warm.problem, cells[1])
                found.append(WarmLayer(whole.workload, one, two, warm.cells[:at], problem, other))
    return found


def report(runner: Runner, name: str) -> Report:
    study, layers = runner.study(name), layers_of(runner, name)
    return {"mse-fig-9": fig_9, "mse-fig-10": fig_10, "mse-fig-11": fig_11}[name](study, layers)


def _page(study: Study, **fields: Any) -> str:
    """A page with the introduction of all three."""
    fields |= {"networks": ", ".join(study.networks), "BATCH": BATCH, "GENERATION": GENERATION}
    what = page(__file__, study.name, study, template="mse-warm-start", **fields)
    return page(__file__, study.name, study, what=what, **fields)


def _gain(layers: Iterable[WarmLayer]) -> float:
    return geometric_mean(layer.speedup() for layer in layers)


# ------------------------------------------------------------------------------------------------------------- Fig. 9


def fig_9(study: Study, layers: Layers) -> Report:
    started = [layer for layer in layers if layer.before]
    mappers, groups = by(started, "mapper"), dict[str, Layers]()
    for mapper, same in mappers.items():
        groups |= {mapper: same} | {f"{mapper}, {network}": mine for network, mine in by(same, "network").items()}
    some = {place: [x for x in same if not x.layer.startswith("classifier")] for place, same in groups.items()}
    table, convolutions = (
        [
            ["start", "paper", *them],
            *([x, STARTS[x], *(times(_mean(same, x)) for same in them.values())] for x in STARTS),
        ]
        for them in (groups, some)
    )
    worse = [
        [f"{one} above {two}", *(percent(_above(same, one, two)) for same in groups.values())]
        for one, two in pairwise([*STARTS][1:4])
    ]
    text = _page(study, table=table, convolutions=convolutions, worse=[["layers", *groups], *worse])
    means = {start: [f"{mapper} {times(_mean(same, start))}" for mapper, same in mappers.items()] for start in STARTS}
    headline = "\n".join(f"{start}: {', '.join(mean)} (paper: {STARTS[start]})" for start, mean in means.items())
    rows = [layer.place | {"edp": layer.end} | layer.starts for layer in started]
    return Report(study.name, headline, text, rows, lambda: draw_9(started))


def _mean(layers: Layers, start: str) -> float:
    return geometric_mean(layer.starts[start] for layer in layers)


def _above(layers: Layers, one: str, two: str) -> float:
    """The share of layers and seeds with a start worse than another."""
    return arithmetic_mean(float(layer.starts[one] > layer.starts[two]) for layer in layers)


def draw_9(started: Layers) -> Figure:
    panels, steps = [], {"y": (1, 2, 5)}
    for (network, mapper), layers in by(started, "network", "mapper").items():
        lines = []
        for start in STARTS:
            means = [_mean(same, start) for same in by(layers, "layer").values()]
            lines.append(Series(start, range(2, len(means) + 2), means, how={"linewidth": 0.8}))
        title, y = f"{network}, {mapper}", "EDP over that at the end (x)"
        panels.append(Panel("distinct layer", y, lines, title=title, log="y", plain=steps))
    return figure(panels, (9.2, 6.4), columns=2, across=3, sharey=True)


# ------------------------------------------------------------------------------------------------------------ Fig. 10


def fig_10(study: Study, layers: Layers) -> Report:
    layers = [x for x in layers if x.cold.seed == study.seeds[0] and x.layer.startswith("features")]
    chosen = [layer for same in by(layers, "mapper").values() for layer in (same[0], same[-1])]
    places = np.array([100, 320, 500, 1000, study.budget])
    runs = [(layer, how, run) for layer in chosen for how, run in layer.runs.items()]
    table = [["mapper", "layer", "search", *map(str, places)]]
    table += [[x.mapper, run.workload, how, *(number(y / UJ) for y in run.best_at(places))] for x, how, run in runs]
    first = [[run.history["best_score"].tolist() for run in layer.runs.values()] for layer in chosen[::2]]
    text = _page(
        study, chosen=chosen, table=table,
        ends=" and ".join(f"{times_exact(layer.change)} with `{layer.mapper}`" for layer in chosen[1::2]),
        same="are the same" if all(cold == warm for cold, warm in first) else "should be the same and are not",
    )  # fmt: skip
    headline = "\n".join(
        f"{x.mapper}, {x.layer}: {times(x.speedup())} fewer generations, EDP {times_exact(x.change)} of cold"
        for x in chosen
    )
    rows = [
        layer.place | {"search": how, "designs": int(at), "edp": score}
        for layer, how, run in runs
        for at, score in zip(run.history["evaluations"], run.history["best_score"], strict=True)
    ]
    return Report(study.name, headline, text, rows, lambda: draw_10(chosen))


def draw_10(layers: Layers) -> Figure:
    panels, y = [], "best EDP (cycles * uJ)"
    for layer in layers:
        lines = [
            Series(how, run.history["evaluations"], run.history["best_score"] / UJ, style, marked=False)
            for (how, run), style in zip(layer.runs.items(), ("-", "--"), strict=False)
        ]
        panels.append(Panel("designs", y, lines, title=f"{layer.layer}, {layer.mapper}", log="y"))
    return figure(panels, (8.4, 6.0), columns=2)


# ------------------------------------------------------------------------------------------------------------ Fig. 11

COLUMNS = ("generations", "by chance", "sums", "own target", "EDP", "worst")
LATER = ("speed-up", "later")
WHY = ("cold begins at", "warm begins at", "warm begins above", "gain there", "gain elsewhere")


def fig_11(study: Study, layers: Layers) -> Report:
    groups, mappers = by(layers, "mapper", "network"), by(layers, "mapper")
    found = {place: _row(same) for place, same in groups.items()}
    table = [["mapper", "network", "paper", *COLUMNS]]
    table += [[*x, times(LEAST) if x[1] == "mnasnet" else f"to {times(MOST)}", *row] for x, row in found.items()]
    later = [["mapper", "target", *LATER, *(f"chance: {column}" for column in LATER)]]
    for mapper, same in mappers.items():
        for label, near in ({f"{100 * REACHED:g} %": 0.0} | {f"{near:g}x": near for near in NEAR}).items():
            later.append([mapper, label, *_later(same, near, False), *_later(same, near, True)])
    close = arithmetic_mean(float(abs(layer.change - 1) <= 0.01) for layer in layers)
    text = _page(
        study, reached=100 * REACHED, table=table, later=later, close=percent(close), LEAST=LEAST, MOST=MOST,
        mapper=PAPERS_MAPPER, starts=STARTS["random"],
        why=[["mapper", *WHY], *([mapper, *_why(same)] for mapper, same in mappers.items())],
    )  # fmt: skip
    lines = (f"{' '.join(x)}: {', '.join(map(' '.join, zip(COLUMNS, row, strict=True)))}" for x, row in found.items())
    rows = []
    for layer in layers:
        runs, goal = {**layer.runs, "again": layer.again}, layer.target()
        generations = {f"generations_{how}": generations_to(run, goal) for how, run in runs.items()}
        rows.append(layer.place | generations | {f"edp_{how}": run.edp for how, run in layer.runs.items()})
    return Report(study.name, "\n".join(lines), text, rows, lambda: draw_11(groups))


def _why(layers: Layers) -> list[str]:
    """First batches of the searches, and the gains of warm searches with a first batch worse than the cold one's."""
    started = [layer for layer in layers if layer.before]
    above = [layer for layer in started if layer.first("warm") > layer.first("cold")]
    rest = [layer for layer in started if layer not in above]
    begins = [times(geometric_mean(layer.first(how) for layer in started)) for how in ("cold", "warm")]
    share = percent(len(above) / len(started)) if started else "-"
    return [*begins, share, *(times(_gain(some)) if some else "-" for some in (above, rest))]


def _row(layers: Layers) -> list[str]:
    changes = [layer.change for layer in layers]
    cold, warm = (sum(generations_to(x.runs[how], x.target()) for x in layers) for how in ("cold", "warm"))
    chance, own = (geometric_mean(x.speedup(**{how: True}) for x in layers) for how in ("chance", "own"))
    ratios = map(times, (_gain(layers), chance, cold / warm, own))
    return [*ratios, *map(times_exact, (geometric_mean(changes), max(changes)))]


def _later(layers: Layers, near: float, chance: bool) -> list[str]:
    """The mean speed-up, and the share of layers and seeds with a later search."""
    found = [layer.speedup(near, chance) for layer in layers]
    return [times(geometric_mean(found)), percent(arithmetic_mean(float(x < 1) for x in found))]


def draw_11(groups: LayerGroups) -> Figure:
    shown: Mapping[str, Callable[[WarmLayer], float]] = {
        "generations, cold over warm (x)": WarmLayer.speedup,
        "EDP at the end, warm over cold (x)": lambda layer: layer.change,
    }
    panels, log = [], {"log": "y", "plain": {"y": (1, 3)}}
    for mapper in dict.fromkeys(mapper for mapper, _ in groups):
        networks = {network: layers for (mine, network), layers in groups.items() if mine == mapper}
        for label, value in shown.items():
            series = []
            for at, (network, layers) in enumerate(networks.items()):
                found, spread = [value(layer) for layer in layers], np.linspace(-0.25, 0.25, len(layers))
                series.append(Series(network, at + spread, found, "", how={"marker": ".", "markersize": 4}))
                mean, black = [geometric_mean(found)] * 2, {"color": "black", "linewidth": 1.6}
                series.append(Series("geometric mean", [at - 0.35, at + 0.35], mean, marked=False, how=black))
            look: Mapping[str, Any] = log if value is WarmLayer.speedup else {}
            panels.append(Panel("", label, series, names=list(networks), title=mapper, levels=[1.0], **look))
    return figure(panels, (8.8, 6.6), columns=2)
